"""Which environments go, and when."""

import fcntl
import json
import os
import time

import pytest

from gilscope.toolkit.cli import main
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.evaluate.packages import eviction
from gilscope.toolkit.evaluate.packages.eviction import STAMP, clear, hold, make_room, size_of

GIB = 2**30


@pytest.fixture
def place(monkeypatch, tmp_path):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(eviction, "_HELD", {})

    def make(name, *, gib=1.0, days_ago=0.0):
        folder = tmp_path / "scratch" / name
        folder.mkdir(parents=True)
        (folder / STAMP).write_text(json.dumps({"bytes": gib * GIB / eviction.GROWTH}))
        when = time.time() - days_ago * 24 * 3600
        os.utime(folder / STAMP, (when, when))
        return folder

    yield make
    for handle in eviction._HELD.values():
        os.close(handle)


def test_the_longest_unused_go_until_the_rest_fits(place):
    first, second, third = (place(f"3.14.{days}-0123", days_ago=days) for days in (1, 3, 2))
    count, size = make_room(2.5 * GIB)
    assert (first.exists(), second.exists(), third.exists()) == (True, False, True)
    assert (count, round(size / GIB, 3)) == (1, 1.0)


def test_what_nobody_used_in_a_week_goes_although_there_is_room(place):
    old, fresh = place("old", days_ago=8), place("fresh")
    make_room(100 * GIB)
    assert (old.exists(), fresh.exists()) == (False, True)
    assert [path.name for path in fresh.parent.iterdir()] == ["fresh"]


def test_use_makes_young(place):
    old = place("old", days_ago=8)
    hold(old)
    assert time.time() - (old / STAMP).stat().st_mtime < 24 * 3600
    hold(old)   # once more is no other lock


def test_what_this_process_uses_stays(place):
    used = place("used", days_ago=8)
    hold(used)
    assert clear() == (0, 0.0)
    assert used.exists()


def test_size_leaves_out_what_is_linked(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "large").write_bytes(b"x" * 4096)
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer" / "link").symlink_to(tmp_path / "inner")
    assert size_of(tmp_path / "outer") < 4096


def test_what_another_process_uses_stays(place):
    used, free = place("used"), place("free")
    with used.with_name("used.used").open("a") as handle:   # as another process would hold it
        fcntl.flock(handle, fcntl.LOCK_SH)
        assert clear()[0] == 1
    assert (used.exists(), free.exists()) == (True, False)


def test_limit_is_the_users(place, monkeypatch):
    place("first", days_ago=1)
    place("second")
    monkeypatch.setenv(eviction.VARIABLE, "1.5")
    assert make_room()[0] == 1
    monkeypatch.setenv(eviction.VARIABLE, "much")
    with pytest.raises(ToolkitError, match="GILSCOPE_CACHE_GIB='much' is no number"):
        make_room()


def test_size_is_that_of_all_files(tmp_path):
    (tmp_path / "inner").mkdir()
    for name, count in (("one", 3), ("inner/two", 4)):
        (tmp_path / name).write_bytes(b"x" * count)
    assert size_of(tmp_path) == 7


def test_command_clears(place, tmp_path, capsys):
    place("one")
    (tmp_path / "wheels" / "any").mkdir(parents=True)
    (tmp_path / "evaluations" / "any").mkdir(parents=True)
    assert main(["doctor", "--clear-cache"]) == 0
    assert "1 environment removed, about 1.0 GiB" in capsys.readouterr().out
    assert not (tmp_path / "wheels").exists()
    assert not (tmp_path / "evaluations").exists()
