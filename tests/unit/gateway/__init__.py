"""Tests of extgate.gateway, over real servers on loopback."""
