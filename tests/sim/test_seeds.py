"""A run says which seeds it runs, and others can be asked for."""

import os
import subprocess
import sys


def test_the_start_seed_is_printed_and_may_be_chosen() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "tests/sim/test_families.py"]
    environment = {**os.environ, "PENSTOCK_SEED": "4000"}

    told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    assert told.count("simulation: start seed 4000 (PENSTOCK_SEED)") == 1
    assert "[steady-4000-4019]" in told
