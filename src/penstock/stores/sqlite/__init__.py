"""Penstock on SQLite: one file, one machine."""
