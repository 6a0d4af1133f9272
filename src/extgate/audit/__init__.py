"""The record of what happened at a gate."""
