"""Files to begin with."""

import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_init_writes_a_file_that_check_and_dev_like(run: Run, tmp_path: Path) -> None:
    result = run("init")
    assert result.stdout.split() == ["penstock.toml"]
    assert "penstock check" in result.stderr

    assert tomllib.loads((tmp_path / "penstock.toml").read_text())["lanes"]["hello"]["sink"] == "console"
    run("dev", "--once")
    assert "0 errors, 0 warnings" in run("check").stderr
    assert json.loads(run("pools", "show", "web", "--json").stdout)["settings"]["rate"] == "50/s"


def test_every_line_of_the_example_that_is_commented_out_is_right_too(run: Run, tmp_path: Path) -> None:
    run("init")
    file = tmp_path / "penstock.toml"
    lines = file.read_text().splitlines()
    code = [line.removeprefix("# ") if line.startswith("# ") and "=" in line else line for line in lines]
    code = [line.removeprefix("# ") if line.startswith("# [") else line for line in code]
    file.write_text("\n".join(code))

    run("dev", "--once")
    assert json.loads(run("lanes", "show", "orders", "--json").stdout)["settings"]["mode"] == "block_on_error"


def test_init_writes_over_nothing_unless_told_to(run: Run, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text("port = 1")

    assert "--force" in run("init", code=1).stderr
    assert (tmp_path / "penstock.toml").read_text() == "port = 1"
    run("init", "--force")
    assert "sqlite" in (tmp_path / "penstock.toml").read_text()


def test_init_for_prometheus_writes_rules_and_a_dashboard(run: Run, tmp_path: Path) -> None:
    run("init", "--prometheus", "watch")

    assert {path.name for path in (tmp_path / "watch").iterdir()} == {
        "prometheus.yml",
        "prometheus-rules.yml",
        "grafana.json",
    }


def test_a_folder_that_cannot_be_written_is_named(run: Run) -> None:
    assert "choose a folder" in run("init", "/proc/nowhere", code=1).stderr


def test_systemd_likes_the_unit(run: Run, tmp_path: Path) -> None:
    run("init", "--systemd")
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "penstock.service"],
        capture_output=True,
        text=True,
        check=False,
    )
    mine = [line for line in done.stderr.splitlines() if "penstock.service" in line]
    assert [line for line in mine if "is not executable" not in line and "Unknown user" not in line] == []


def test_init_writes_the_schema_that_editors_check_by(run: Run, tmp_path: Path) -> None:
    said = run("init", "--schema")

    assert said.stdout.split() == ["penstock.schema.json"]
    assert "#:schema ./penstock.schema.json" in said.stderr
    written = (tmp_path / "penstock.schema.json").read_text()
    published = Path(__file__).parents[2] / "docs/reference/penstock.schema.json"
    assert written == published.read_text(encoding="utf-8")
