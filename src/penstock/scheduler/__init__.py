"""The engine: due → order → limit → claim → confirm → send → settle. Begin at node.py, then cycle.py."""
