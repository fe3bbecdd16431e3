"""How a broker is reached, for those who send to it (sinks) and those who receive from it (sources).

One file per broker: what `[sinks.NAME]` says of it, and what its driver's errors mean. Drivers are imported
only there and in the sinks and sources themselves.
"""
