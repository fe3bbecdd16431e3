"""Deterministic simulation: real engine code, virtual time, planned faults; one seed, one run."""
