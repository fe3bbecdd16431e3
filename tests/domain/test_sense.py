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


@pytest.mark.parametrize(
    "host",
    ["example.org", "example.org.", "[::1]:8080", "[::1]:", "h:1", "h:65535", "münchen.example", "l" * 63],
)
def test_a_target_that_http_can_call_is_taken(host: str) -> None:
    check_url(f"https://{host}/hook")


@pytest.mark.parametrize("host", ["api..example.org", ".example.org", "example.org..", "l" * 64 + ".org"])
def test_a_target_whose_host_has_no_name_is_refused(host: str) -> None:
    with pytest.raises(InvalidSetting, match="is no URL to call"):
        check_url(f"https://{host}/hook")


@pytest.mark.parametrize("port", ["0", "65536", "99999", "-1", "http"])
@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "[::1]"])
def test_a_target_whose_port_cannot_be_is_refused(host: str, port: str) -> None:
    with pytest.raises(InvalidSetting, match="has a port that cannot be: write one from 1 to 65535, or none"):
        check_url(f"http://{host}:{port}/hook")


def test_a_target_that_http_cannot_call_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="target"):
        check_url("example.org/hook")


def test_a_version_that_somebody_else_has_changed_is_noticed() -> None:
    check_version("lane", "orders", 3, None)
    check_version("lane", "orders", 3, 3)
    with pytest.raises(VersionChanged):
        check_version("lane", "orders", 4, 3)
