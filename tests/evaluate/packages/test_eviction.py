"""Which environments go, and when."""

import fcntl
import json
import os
import subprocess
import sys
import time

import pytest

from gilscope.toolkit.builds.uv import uv_command
from gilscope.toolkit.cli import main
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.evaluate.packages import eviction
from gilscope.toolkit.evaluate.packages.eviction import STAMP, clear, hold, make_room, size_of
from gilscope.toolkit.evaluate.packages.fetch_wheels import pip_of
from tests.conformance.builds import ROOT
from tests.faults.test_hostile_packages import add_wheel
from tests.patience import PATIENCE
from tests.processes.test_supervised import told

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
    old, fresh = place("old", days_ago=8), place("fresh", days_ago=0.1)
    hold(old)
    assert (old / STAMP).stat().st_mtime > (fresh / STAMP).stat().st_mtime
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


# Its import tells that it has begun, and goes on in its environment when it may.
WAITS = """import os, time
with open({told!r} + '.part', 'w') as file: file.write(str(os.getpid()))
os.rename({told!r} + '.part', {told!r})
while not os.path.exists({go!r}): time.sleep(0.02)
from waits import later
"""


@pytest.mark.slow
@pytest.mark.builds("free")
def test_two_commands_at_once_with_room_for_neither_are_both_right(build, tmp_path):
    for name in ("index", "tmp"):
        (tmp_path / name).mkdir()
    if uv_command() is None and pip_of(build, tmp_path / "index") is None:
        pytest.skip("this build comes without a pip")
    waits = WAITS.format(told=str(tmp_path / "told"), go=str(tmp_path / "go"))
    add_wheel(tmp_path / "index", "waits", {"waits/__init__.py": waits, "waits/later.py": "x = 1\n"})
    for name, code in (("first", "x = 1\n"), ("other", "import os\nos.abort()\n")):
        add_wheel(tmp_path / "index", name, {f"{name}.py": code})
    env = {name: value for name, value in os.environ.items() if not name.endswith("_PROXY")} | {
        "GILSCOPE_CACHE": str(tmp_path / "cache"), eviction.VARIABLE: "0.000001", "PYTHONPATH": str(ROOT),
        **{f"{tool}_{key}": value for tool in ("PIP", "UV")
           for key, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(tmp_path / "index")))}}

    def start(name):
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "gilscope", "doctor", name, "--builds", build.label,
             f"--build={build.label}={build.executable}", "--json", f"{name}.json", "--timeout", f"{PATIENCE:g}s"],
            cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def answer(name, command):
        shown, _ = command.communicate(timeout=PATIENCE)
        assert (tmp_path / f"{name}.json").exists(), shown
        (judged,) = json.loads((tmp_path / f"{name}.json").read_text())["builds"]
        return {each["name"]: each["status"] for each in judged["packages"]}

    def environments():
        return {path.parent.name for path in (tmp_path / "cache" / "scratch").glob(f"*/{STAMP}")}

    with start("first") as first:
        assert answer("first", first) == {"first": "pure-python"}
    old = environments()
    with start("waits") as waiting:
        try:
            told(tmp_path / "told")
            used = environments() - old
            with start("other") as other:
                assert answer("other", other) == {"other": "crashes"}
            assert environments() & (old | used) == used != set()
            (tmp_path / "go").touch()
            assert answer("waits", waiting) == {"waits": "pure-python"}
        finally:
            waiting.kill()
