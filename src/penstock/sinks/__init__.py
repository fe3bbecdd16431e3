"""Where jobs are sent: one module per kind, none knows another; `open.py` finds them by name."""
