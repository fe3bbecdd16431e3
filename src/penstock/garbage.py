"""What was made at start-up stays: the garbage collector need not look at it again and again.

A full collection looks at every object there is, and nothing is sent meanwhile. With all modules loaded that
took fifty milliseconds, several times a minute; without them it takes one or two.
"""

import gc


def spare_what_is_loaded() -> None:
    """Leave all that is there now out of later collections."""
    gc.collect()
    gc.freeze()
