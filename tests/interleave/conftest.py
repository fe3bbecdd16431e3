"""So that a failing assert of a scenario says as much as one in a test file."""

import pytest

pytest.register_assert_rewrite("tests.interleave.scenarios", "tests.interleave.world")
