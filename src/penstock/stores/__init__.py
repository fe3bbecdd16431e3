"""Databases of jobs: implementations of `penstock.ports.store.Store`, all held to one conformance suite."""
