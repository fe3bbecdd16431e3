"""Where the router gets messages from: one file per kind. Drivers are imported only there."""
