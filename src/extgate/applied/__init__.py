"""Putting a runtime under a profile: what is written into its own files, kept account of, and taken back."""
