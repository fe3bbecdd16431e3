"""The way from a queue to an outcome: the router that consumes messages, and the work they point to."""
