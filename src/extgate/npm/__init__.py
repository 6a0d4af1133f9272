"""Packages for other runtimes' own package managers, as they are published and as `apply` writes them."""
