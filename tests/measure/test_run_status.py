"""The status file of a run: what one process writes, the one that started it reads."""

import json

import pytest

from gilscope.toolkit.cli import main
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.run_status import RunStatus, StatusFile, read_status


def test_status_comes_back(tmp_path):
    file = StatusFile(tmp_path / "status.json")
    file.update(round=1, rounds=3, cells=9)
    file.update(done=4, seconds_left=12.5)
    assert read_status(tmp_path / "status.json") == RunStatus(round=1, rounds=3, done=4, cells=9, seconds_left=12.5)
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_error_that_ends_a_run_is_kept(tmp_path):
    file = StatusFile(tmp_path / "status.json")
    with pytest.raises(ToolkitError), file.keeping_error():
        raise ToolkitError("no such build")
    assert read_status(tmp_path / "status.json").error == "no such build"


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"round": "first"}', b"\xff"])
def test_status_that_is_missing_or_damaged_is_that_of_a_run_that_has_not_begun(content, tmp_path):
    if content is not None:
        (tmp_path / "status.json").write_bytes(content)
    assert read_status(tmp_path / "status.json") == RunStatus()


def test_run_without_a_status_file_writes_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    StatusFile(None).update(round=1)
    assert list(tmp_path.iterdir()) == []


def test_run_writes_why_it_was_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "no_such_workload", "--status-file", str(tmp_path / "status.json")]) == 2
    assert "no_such_workload" in json.loads((tmp_path / "status.json").read_text())["error"]
