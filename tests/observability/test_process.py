"""What a process knows of itself."""

import sys
from pathlib import Path

import pytest

from penstock.observability.live import Live
from penstock.observability.process import memory, process_figures


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says it in /proc")
def test_a_process_knows_its_memory_and_how_late_its_loop_is() -> None:
    live = Live(lambda: 0.0)
    live.loop_delayed(0.0025)
    found = process_figures(live)

    assert found["loop_delay_us"] == 2500
    assert 2**20 < found["memory"] < 2**40


@pytest.mark.parametrize("text", [None, "", "1", "a b"])
def test_where_the_system_does_not_say_it_is_unknown(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "statm").write_text(text)

    assert memory(tmp_path / "statm") is None
