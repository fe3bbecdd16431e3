"""`penstock.toml` and the environment: what a process is told when it starts.

Lanes and pools live in the database; in a file they are input for `penstock lanes apply` and `penstock dev`.
"""
