"""The gate and the doors that ask it."""
