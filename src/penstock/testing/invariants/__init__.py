"""The promises of the guarantees page, executable: one package for every kind of test.

- `afterwards`: what holds once a run is over, from ledger, log and the store's port alone. Any store.
- `moves`: whether one transaction did to one job what the machine allows. Any store.
- `watch`: a SQLite store that is checked after every call, with `calls` (what each may do and must answer),
  `model` (what order says of the picture) and `sqlite` (what a transaction changed).

What is broken is raised as a `facts.Violation`, an AssertionError that names the invariant and the facts.
"""
