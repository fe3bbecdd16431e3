"""Settings that cannot work, and the nearest ones that do."""

from datetime import timedelta

import pytest

from penstock.domain.lanes import check_version
from penstock.domain.sense import BOUNDS, check_url, within
from penstock.errors import InvalidSetting, VersionChanged


@pytest.mark.parametrize("setting", BOUNDS)
def test_what_is_out_of_bounds_is_brought_within(setting: str) -> None:
    least, most = BOUNDS[setting]

    assert within(setting, timedelta(0)) == least
    assert within(setting, timedelta.max) == most
    assert within(setting, least) == least


def test_a_target_that_http_cannot_call_is_refused() -> None:
    check_url("https://example.org/hook")
    with pytest.raises(InvalidSetting, match="target"):
        check_url("example.org/hook")


def test_a_version_that_somebody_else_has_changed_is_noticed() -> None:
    check_version("lane", "orders", 3, None)
    check_version("lane", "orders", 3, 3)
    with pytest.raises(VersionChanged):
        check_version("lane", "orders", 4, 3)
