"""Dialects: documents in, policies out."""
