"""The process that calls the user's function: what that reads, prints or leaves hanging is no answer of ours."""

import threading
import time
from pathlib import Path

import pytest

from gilscope.toolkit.processes.forks import Fork
from gilscope.toolkit.processes.helper_process import HelperFailedError
from gilscope.toolkit.scale.child import zygote
from gilscope.toolkit.scale.zygote_process import CallMode, LostZygoteError, ZygoteProcess
from tests.scale.planted import FREE

PROGRAM = """
import sys

def reads():
    return sys.stdin.read(1)

def prints():
    print('{"answer": 1}')

def endless():
    while True:
        pass
"""
pytestmark = pytest.mark.skipif(not FREE, reason="no free-threaded build")


@pytest.fixture(params=FREE)
def process(request, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    with ZygoteProcess(FREE[request.param], [tmp_path]) as process:
        yield process


@pytest.mark.parametrize("name", ["reads", "prints"])
def test_standard_streams_of_the_function_are_not_those_of_the_requests(process, name):
    loaded = process.load(f"program:{name}", None, None, 2)
    assert loaded.objects > 0
    assert process.measure(CallMode(threads=2)).lasted > 0
    (named,) = process.names([0])
    assert named.name


def test_call_that_does_not_return_is_said_and_ended(process, monkeypatch):
    monkeypatch.setattr("gilscope.toolkit.scale.zygote_process.CALL_LIMIT", 2.0)
    said = "a call of program:endless did not return within 2 s; name a part"
    with pytest.raises(LostZygoteError, match=said), process:
        process.load("program:endless", None, None, 2)
    assert not Path(f"/proc/{process._helper.pid}").exists()


@pytest.mark.parametrize("build", FREE)
@pytest.mark.slow   # compiles the core
def test_compilation_of_the_core_is_waited_for_and_said(build, tmp_path, monkeypatch, capfd):
    (tmp_path / "program.py").write_text(PROGRAM)
    began = time.monotonic()
    with ZygoteProcess(FREE[build], [tmp_path]):    # with a core that was compiled before
        start = time.monotonic() - began
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("gilscope.toolkit.scale.zygote_process.START_LIMIT", 5.0 + 5 * start)
    said = []
    monkeypatch.setattr("gilscope.toolkit.scale.zygote_process.announce", lambda *args: said.append(args))
    with ZygoteProcess(FREE[build], [tmp_path]) as process:
        assert process.load("program:prints", None, None, 2).objects > 0
    assert said[0] == ("gilscope's measuring core for this build", 0.0)


def test_lines_of_an_error_are_one_line_of_a_report(process):
    error = process._lost(HelperFailedError("ended: no C compiler (gcc is not on PATH)\ninstall gilscope again\n"))
    assert str(error) == "the measuring process ended: no C compiler (gcc is not on PATH); install gilscope again"


def test_few_samples_say_little_of_a_lock(process, monkeypatch):
    answer = {"sampled": {"passes": 4, "seen": [(7, 2, 4, 0)]}}
    monkeypatch.setattr(process, "_ask", lambda *_args, **_request: answer)
    (seen,) = process.sample(2)
    assert (seen.number, seen.moved, seen.locked) == (7, 0.02, 0.04)      # not 50 and 100 % of four samples
    answer["sampled"]["passes"] = 400
    assert process.sample(2)[0].locked == 0.01


def test_error_says_what_did_not_return():
    stuck = Fork(lambda _write: threading.Event().wait())
    (answer,) = zygote._answers([stuck], 0.01, "the search for the names of its objects")
    assert answer == "the search for the names of its objects did not return within 0 s"
