"""One module per screen; each has `routes(site)`."""
