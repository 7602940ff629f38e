"""What the machine can tell about parallel work, and when it is not believed."""

import os
import signal
import subprocess
import sys

import pytest

from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.evaluate.project import machine_calibration
from gilscope.toolkit.evaluate.project.machine_calibration import LEAST_SPINS, Calibration, Spin, doubts, facts, spin
from gilscope.toolkit.evaluate.sections import Missing
from gilscope.toolkit.measure.inherited_limits import InheritedLimits
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE


def look(effective, *, ran=18, waited=2, lasted=20):
    return Spin(cores=2, effective=effective, ran=ran, waited=waited, lasted=lasted)


@pytest.mark.parametrize(("cores", "effective", "queued", "words"), [
    (2, 1.95, 0.02, []), (2, 1.5, 0.15, []), (2, 1.95, None, []),
    (1, 1.0, 0.0, ["one core only"]), (2, 1.9, 0.16, ["processes wait 16 % of their time"]),
    (2, 1.49, 0.0, ["2 cores do only 1.49 cores' work"]),
    (2, 1.2, 0.0, ["2 cores do only 1.20 cores' work"]),
    (2, 1.9, 0.4, ["processes wait 40 % of their time"]),
    (4, 1.1, 0.5, ["4 cores do only 1.10", "processes wait 50 %"]),
])
def test_doubts(cores, effective, queued, words):
    found = list(doubts(cores, effective, queued))
    assert len(found) == len(words)
    assert all(text.startswith(word) for text, word in zip(found, words, strict=True))


def test_spun_by_real_processes():
    found = spin(usable_cores())
    assert found.effective > 0
    assert found.ran > 0
    assert found.lasted > 0
    assert found.given > 0


@pytest.mark.parametrize(("waits", "waited"), [((10, 5), 15), ((0, 0), 0), ((10, -1), None), ((-1, -1), None)])
def test_effective_cores_are_what_each_does_against_one_alone(monkeypatch, waits, waited):
    asked = []
    many = [(700, 90, waits[0], 125), (700, 95, waits[1], 200)]
    monkeypatch.setattr(machine_calibration, "_spun", lambda count, rounds: (
        asked.append((count, rounds)), [(700, 99, 1, 100)] if count == 1 else many)[1])
    assert spin(2) == Spin(cores=2, effective=100 / 125 + 100 / 200, ran=185, waited=waited, lasted=200)
    assert asked == [(1, 0), (2, 700)]   # as often as one did alone


def test_facts_are_of_all_looks():
    found = facts([look(1.9), look(0.6), look(1.95), look(1.92), look(4.0)])
    assert (found.cores, found.effective, found.run_queue) == (2, pytest.approx(1.92), pytest.approx(0.1))
    assert found.doubts == ()


def test_facts_tell_how_gilscope_was_started(monkeypatch):
    started = InheritedLimits(nice=5, policy="", cpus=(0, 1), online=2, files=1024, limits={}, cpu_seconds=None)
    monkeypatch.setattr(machine_calibration, "inherited_limits", lambda: started)
    assert facts([look(1.9)]).inherited == "gilscope was started with nice 5; so were the measured processes"


def test_cores_that_were_given_are_told_by_time():
    # That both cores are slower than one alone is another matter.
    assert look(1.3, ran=36, lasted=20).given == pytest.approx(1.8)


def test_waits_that_the_system_does_not_tell_are_not_known():
    assert facts([look(1.9, waited=None)]).run_queue is None


def test_few_looks_become_enough():
    calibration = Calibration(lambda cores: look(1.0 * cores))
    calibration.take(0)
    assert calibration.facts().cores == 2
    assert len(calibration.spins) == LEAST_SPINS


@pytest.mark.parametrize("broken", ["raise SystemExit(1)", "print('no numbers')", "print('true\\n[0, 0, 0, 0]')",
                                    "print('true\\n5')"])
def test_spinner_that_fails_is_a_reason(broken, monkeypatch):
    monkeypatch.setattr(machine_calibration, "SPINNER", broken)
    calibration = Calibration()
    calibration.take(0)
    assert "could not be calibrated" in calibration.facts().reason
    assert isinstance(calibration.facts(), Missing)


def test_spinning_process_ends_with_who_started_it(capfd):
    helper = machine_calibration._started().wait_until_ready(PATIENCE)
    assert helper.ready is True
    process = helper._process
    assert process.communicate(timeout=PATIENCE)[0] == ""   # its standard input is closed, as when we are killed
    assert process.returncode == 1
    assert capfd.readouterr().err == ""


def test_spinning_process_whose_reader_is_gone_ends_without_a_word():
    reader, writer = os.pipe()
    os.close(reader)   # as when a Ctrl-C meets us just after the start
    with os.fdopen(writer, "w") as stdout:
        done = subprocess.run([sys.executable, "-c", f"import sys\n{machine_calibration.SPINNER}"], check=False,
                              stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


QUIET_SPIN = Spin(cores=2, effective=1.95, ran=100, waited=1, lasted=51)
BUSY_SPIN = Spin(cores=2, effective=1.1, ran=100, waited=80, lasted=90)


def waited(spins, limit=100.0):
    """Return what waiting comes to, what was said, and the pauses."""
    now, said, pauses, seen = [0.0], [], [], iter(spins)

    def pause(seconds):
        pauses.append(seconds)
        now[0] += seconds

    quiet = machine_calibration.wait_quiet(
        limit, said.append, spinning=lambda _: next(seen), programs=lambda: "make (process 9: 1.0 cores)", pause=pause,
        clock=lambda: now[0])
    return quiet, said, pauses


def test_waits_until_it_is_quiet_for_several_looks(monkeypatch):
    monkeypatch.setattr(machine_calibration, "usable_cores", lambda: 2)
    quiet, said, pauses = waited([BUSY_SPIN, QUIET_SPIN, BUSY_SPIN, QUIET_SPIN, QUIET_SPIN, QUIET_SPIN])
    assert (quiet, len(pauses)) == (True, 2)
    assert said[0].startswith("wait for the machine to become quiet: 2 cores do only 1.10 cores' work")
    assert said[0].endswith("; make (process 9: 1.0 cores)")


def test_waits_no_longer_than_it_may(monkeypatch):
    monkeypatch.setattr(machine_calibration, "usable_cores", lambda: 2)
    quiet, said, pauses = waited([BUSY_SPIN] * 9, limit=25.0)
    assert (quiet, len(pauses)) == (False, 3)
    assert said[-1].startswith("the machine did not become quiet in 25 s")


def test_one_core_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(machine_calibration, "usable_cores", lambda: 1)
    assert waited([BUSY_SPIN]) == (False, [], [])
