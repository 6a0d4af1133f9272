"""Values and decide(): the standard library only."""
