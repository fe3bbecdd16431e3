"""Durable dispatch scheduler: jobs wait in a database and leave it in order, on time and no faster than allowed."""

__version__ = "0.1.0.dev0"
