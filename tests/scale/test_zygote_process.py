"""The process that calls the user's function: what that reads, prints or leaves hanging is no answer of ours."""

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from gilscope.toolkit.processes.forks import Fork
from gilscope.toolkit.processes.helper_process import HelperFailedError
from gilscope.toolkit.scale.child import zygote
from gilscope.toolkit.scale.object_sampler import ObjectSampler, contended_locks
from gilscope.toolkit.scale.zygote_process import (
    COMPILE_LIMIT,
    START_LIMIT,
    WINDOWS,
    CallMode,
    LostZygoteError,
    ZygoteProcess,
)

PROGRAM = """
import sys

def reads():
    return sys.stdin.read(1)

def prints():
    print('{"answer": 1}')

def endless():
    while True:
        pass

import threading
LOCK, TABLE = threading.Lock(), [None] * 500_000

def under_a_lock():
    with LOCK:
        TABLE.copy()      # holds it for nearly all of the time: a thread that has no core, too

def under_no_lock():
    TABLE.copy()
"""
pytestmark = pytest.mark.builds("free")


@pytest.fixture
def process(python, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    with ZygoteProcess(python, [tmp_path]) as process:
        yield process


@pytest.mark.parametrize("name", ["reads", "prints"])
def test_standard_streams_of_the_function_are_not_those_of_the_requests(process, name):
    loaded = process.load(f"program:{name}", None, None, 2)
    assert loaded.objects > 0
    assert process.measure_cleanly(CallMode(threads=2)).lasted > 0
    (named,) = process.names([0])
    assert named.name


@pytest.mark.parametrize(("name", "blamed"), [("under_a_lock", "program.LOCK"), ("under_no_lock", "program.TABLE")])
def test_list_is_in_the_way_only_where_threads_wait_for_it(process, name, blamed):
    process.load(f"program:{name}", None, None, 2)
    seen = ()
    while not any(each.waited for each in seen):
        seen = ObjectSampler(process, 2, 1.0).sample()
    named = process.names([each.number for each in contended_locks(seen)])
    assert [each.name for each in named] == [blamed]


def test_call_that_does_not_return_is_said_and_ended(process, monkeypatch):
    monkeypatch.setattr("gilscope.toolkit.scale.zygote_process.CALL_LIMIT", 1.0)
    said = "a call of program:endless did not return within 1 s; name a part"
    with pytest.raises(LostZygoteError, match=said), process:
        process.load("program:endless", None, None, 2)
    assert not Path(f"/proc/{process._helper.pid}").exists()


@pytest.mark.slow   # compiles the core
def test_compilation_of_the_core_is_said(python, tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    said = []
    monkeypatch.setattr("gilscope.toolkit.scale.zygote_process.announce", lambda *args: said.append(args))
    with ZygoteProcess(python, [tmp_path]) as process:
        assert process.load("program:prints", None, None, 2).objects > 0
    assert said[0] == ("gilscope's measuring core for this build", 0.0)


def test_compilation_of_the_core_may_take_longer_than_a_start(monkeypatch):
    process, limits = object.__new__(ZygoteProcess), []
    states = iter([{"compiling": 0.0}, {"compiling": 5.0}, {"ready": True}])
    monkeypatch.setattr(process, "_answer", lambda limit: limits.append(limit) or next(states))
    process._wait_until_ready()
    assert limits == [START_LIMIT, COMPILE_LIMIT, COMPILE_LIMIT]


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


def measured(process, monkeypatch, one_core):
    """Return the lengths of the measurements that `measure_cleanly` took, and its result; nothing disturbs them."""
    asked = []

    def answer(**request):
        asked.append(request["windows"])
        thread = [(0, 10**8, 10**8, 0)]
        return {"rows": [thread] * request["threads"], "calls": 1000, "switches": 0, "collections": 0,
                "handoff": 33.0, "one_core": one_core(len(asked))}

    monkeypatch.setattr(process, "_ask", answer)
    found = process.measure_cleanly(CallMode(threads=2))
    return asked, found


def test_measurement_on_hyperthreads_of_one_core_is_taken_again(process, monkeypatch):
    asked, found = measured(process, monkeypatch, lambda number: number < 3)
    assert len(asked) == 3
    assert (found.one_core, found.calls) == (0, 2000)      # of the last alone


def test_machine_with_one_core_is_measured_as_it_is(process, monkeypatch):
    asked, _ = measured(process, monkeypatch, lambda _: True)
    assert len(asked) == len(WINDOWS)      # then it is clear that there is no other core
    asked, found = measured(process, monkeypatch, lambda _: True)
    assert (len(asked), found.one_core, found.enough()) == (1, 1, True)
    process.handoffs.append(26.0)      # there is another core, after all
    asked, _ = measured(process, monkeypatch, lambda _: True)
    assert len(asked) == len(WINDOWS)


@pytest.mark.parametrize(("loads", "one_core"), [      # before and after, of each thread
    (((0.25, 0.25), (0.26, 0.25)), False), (((0.5, 0.49), (0.49, 0.5)), True),
    (((0.25, 0.25), (0.5, 0.49)), True),      # the host moved them meanwhile
    (((0.25, 0.49), (0.49, 0.25)), False),    # each had a neighbour on the other hyperthread of its core for a while
    (((0.5, 0.25, 0.5), (0.25, 0.25, 0.25)), True),
])
def test_busy_multipliers_tell_that_two_threads_share_a_core(loads, one_core, monkeypatch):
    measuring = zygote.Zygote(SimpleNamespace(multiplier_load=iter([0.31, 0.25, 0.27] * 2).__next__))
    measuring._each = 1e-3
    answers = [{"rows": [[]], "loads": [load], "handoffs": [33.0], "switches": 0, "collections": 0, "sampled": None}
               for load in zip(*loads, strict=True)]
    monkeypatch.setattr(zygote, "_answers", lambda *_: answers)
    monkeypatch.setattr(measuring, "_fork", lambda _action: None)
    assert measuring.measure(len(answers), 1.0, processes=True)["one_core"] is one_core


@pytest.mark.quiet   # both threads must have a core at the same time; times of the hardware
def test_threads_hand_a_cache_line_to_each_other(process):
    process.load("program:prints", None, None, 2)
    for _ in range(50):      # a neighbour of this machine may take a core
        process.measure(CallMode(threads=2))
        process.measure(CallMode(threads=2, processes=True))
        if len(process.handoffs) > 1 or process.on_one_core > 1:
            break
    if process.on_one_core < 2:
        assert len(process.handoffs) > 1
        assert all(1 < each < 2_000 for each in process.handoffs)
    before = len(process.handoffs)
    process.measure(CallMode(threads=1))      # it has nobody to hand it to
    assert len(process.handoffs) == before


def test_error_says_what_did_not_return():
    stuck = Fork(lambda _write: threading.Event().wait())
    (answer,) = zygote._answers([stuck], 0.01, "the search for the names of its objects")
    assert answer == "the search for the names of its objects did not return within 0 s"
