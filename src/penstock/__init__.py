"""Durable dispatch scheduler: jobs leave their database on time, in order, no faster than allowed."""

__version__ = "0.1.0.dev0"
