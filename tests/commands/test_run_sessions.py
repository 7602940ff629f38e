"""`gilscope run` with several sessions: when each starts, and what is refused; no clock is waited for."""

import dataclasses
import datetime

import pytest

from gilscope.toolkit.commands.run.sessions import (
    NAP_SECONDS,
    begin_session,
    lacks_sessions,
    seconds_until_next,
    wait_for_session,
)
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.cells import Selection
from gilscope.toolkit.measure.settings import RunRequest, Settings
from gilscope.toolkit.model import Phase
from tests.fakes import MACHINE, make_run

HOUR = 3600.0
SETTINGS = Settings(rounds=5, values=2, warmups=0, min_seconds=0.01, timeout=1.0)
REQUEST = RunRequest(
    selection=Selection(workloads=("primes",), user=None, models=(), workers=(1,), phases=(Phase.STEADY,),
                        size="small"),
    settings=SETTINGS, units={}, paths=(), packages=(), sessions=3, every=2 * HOUR)


class Clock:
    def __init__(self, now):
        self.now = now
        self.naps = []
        self.interrupt_after = None

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.naps.append(seconds)
        self.now += seconds
        if self.interrupt_after is not None and len(self.naps) > self.interrupt_after:
            raise KeyboardInterrupt


@pytest.fixture
def run():
    return make_run()


def begun(run):
    return datetime.datetime.fromisoformat(run.sessions[-1].started).timestamp()


def test_next_session_is_due_so_long_after_the_last_began(run):
    clock = Clock(begun(run) + HOUR)
    assert seconds_until_next(run, 2 * HOUR, clock) == HOUR
    clock.now += 5 * HOUR
    assert seconds_until_next(run, 2 * HOUR, clock) == 0


def test_wait_says_when_the_session_starts_and_ends_then(run, capsys):
    clock = Clock(begun(run) + HOUR)
    wait_for_session(run, REQUEST, clock=clock, sleep=clock.sleep)
    assert clock.now == begun(run) + 2 * HOUR
    assert max(clock.naps) == NAP_SECONDS   # so that a machine that slept notices the time
    said = capsys.readouterr().err
    at = datetime.datetime.fromtimestamp(begun(run) + 2 * HOUR).astimezone()
    assert f"session 2 of 3 starts at {at:%H:%M}, in 1 h 00 min" in said


def test_session_that_is_due_starts_without_a_word(run, capsys):
    clock = Clock(begun(run) + 3 * HOUR)
    wait_for_session(run, REQUEST, clock=clock, sleep=clock.sleep)
    assert (clock.naps, capsys.readouterr().err) == ([], "")


def test_ctrl_c_while_waiting_says_how_to_go_on(run, capsys):
    clock = Clock(begun(run))
    clock.interrupt_after = 3
    with pytest.raises(KeyboardInterrupt):
        wait_for_session(run, REQUEST, clock=clock, sleep=clock.sleep)
    assert f"{run.label} has 1 of 3 sessions; to go on: gilscope run --resume {run.label}" in capsys.readouterr().err


def test_session_begins_after_the_rounds_so_far(run):
    run = dataclasses.replace(run, answered=run.cells[:1])
    again = begin_session(run, REQUEST, MACHINE)
    assert [each.first_round for each in again.sessions] == [0, run.rounds_done]
    assert (again.rounds_planned, again.answered, again.stopped) == (run.rounds_done + 5, (), "running")
    assert (lacks_sessions(again, REQUEST), lacks_sessions(again, dataclasses.replace(REQUEST, sessions=2))) == (
        True, False)
    with pytest.raises(ToolkitError, match=r"session 2 of .* has no complete round"):
        begin_session(again, REQUEST, MACHINE)


@pytest.mark.parametrize(("change", "words"), [
    ({"cpu_model": "Another"}, "cpu_model was 'Made-up CPU'.*is 'Another' now"),
    ({"system": "Linux-6.2.0"}, "system was"), ({"cores": 2}, "cores was 8 .* is 2 now"),
])
def test_another_machine_is_refused(run, change, words):
    with pytest.raises(ToolkitError, match=words):
        begin_session(run, REQUEST, dataclasses.replace(MACHINE, **change))


def test_another_host_name_or_governor_is_not(run):
    begin_session(run, REQUEST, dataclasses.replace(MACHINE, hostname="other", memory_bytes=None))
