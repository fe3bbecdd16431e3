"""Pure rules: arguments in, values out; no I/O, no clock, no randomness of their own."""
