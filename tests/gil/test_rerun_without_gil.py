"""What the free-threaded build gives: which build that is, and when its run says nothing."""

import os
import sys
from dataclasses import replace

import pytest

from gilscope.toolkit.gil import rerun_without_gil
from gilscope.toolkit.gil.recorder import Recording
from tests.conformance.builds import host
from tests.fakes import make_build
from tests.gil.recorded import make_process

FIRST = Recording(ended=0, wall=1.0, cpu=1.0, processes=(make_process(),))
needs_shim = pytest.mark.usefixtures("shim")


def builds(*labels):
    return [make_build(label, version=f"{label.rstrip('t')}.1", free_threaded=label.endswith("t")) for label in labels]


@pytest.mark.parametrize(("version", "chosen"), [
    ("3.13.1", "3.13t"), ("3.14.2", "3.14t"), ("3.12.4", "3.13t"), ("3.15.0", "3.14t")])
def test_nearest_free_threaded_build_is_taken(version, chosen):
    assert rerun_without_gil.free_build(builds("3.12", "3.14t", "3.13t", "3.13"), version).label == chosen


def test_debug_build_is_taken_where_there_is_no_other():
    free, far = builds("3.13t", "3.14t")
    debug = replace(free, label="3.13t-debug", debug=True)
    assert rerun_without_gil.free_build([debug, far], "3.13.1") == far
    assert rerun_without_gil.free_build([debug], "3.13.1") == debug


def test_without_a_free_threaded_build_there_is_none():
    assert rerun_without_gil.free_build(builds("3.13"), "3.13.1") is None


@pytest.fixture
def run_on(tmp_path, monkeypatch):
    """Give a function that runs source code a second time, on a Python."""
    monkeypatch.chdir(tmp_path)

    def run(python, source):
        (tmp_path / "program.py").write_text(source)
        return rerun_without_gil.run_there(make_build("3.14t", executable=python, version="3.14.1"), ["program.py"],
                                           {**os.environ, "PYTHON_GIL": "1"}, FIRST)

    return run


@needs_shim
def test_program_that_does_not_run_there_says_why(run_on):
    found = run_on(sys.executable, "import there_is_no_such_module")
    assert found.ratio is found.wall is None
    assert found.refused == ("it does not run there (exit code 1: ModuleNotFoundError: No module named "
                             "'there_is_no_such_module')")


@needs_shim
def test_program_that_fails_the_second_time_says_why_in_its_words(run_on):
    found = run_on(sys.executable, "from pathlib import Path\ntried = Path('tried')\n"
                   "number = tried.stat().st_size if tried.exists() else 0\ntried.write_text((number + 1) * 'x')\n"
                   "assert number != 1, 'the second time'")
    assert found.ratio is None
    assert found.refused == "it does not run there (exit code 1: AssertionError: the second time)"


@needs_shim
def test_program_that_hangs_there_is_ended(run_on, monkeypatch):
    monkeypatch.setattr(rerun_without_gil, "LONGER", 0.1)
    found = run_on(sys.executable, "import threading; threading.Event().wait()")
    assert found.ratio is None
    assert "it was ended there after" in found.refused


@needs_shim
@pytest.mark.skipif(host().free_threaded, reason="this Python has no GIL")
def test_gil_that_is_on_there_is_no_answer(run_on):
    assert run_on(sys.executable, "").refused == (
        "an extension module turns the GIL on there; `gilscope doctor` names it")


@needs_shim
@pytest.mark.builds("free")
def test_run_there_is_compared(run_on, python):
    found = run_on(python, "import sys; assert not sys.stdin.read(); print('not seen')")
    assert found.refused is None
    assert found.ratio == pytest.approx(1.0 / found.wall)
    assert len(found.walls) == 3   # a short one
    assert sorted(found.walls)[1] == found.wall
    assert found.cpu > 0
