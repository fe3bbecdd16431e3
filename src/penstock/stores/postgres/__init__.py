"""Penstock on PostgreSQL: many nodes."""
