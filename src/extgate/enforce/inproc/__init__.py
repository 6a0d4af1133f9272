"""Doors inside a framework's own process, one small file each."""
