"""What the machine can tell about parallel work, and when it is not believed."""

import pytest

from toolkit.evaluate import machine
from toolkit.evaluate.evaluation import MachineFacts, Missing
from toolkit.evaluate.machine import calibrate, doubts
from toolkit.measure.noise import usable_cores


@pytest.mark.parametrize(("cores", "effective", "queued", "words"), [
    (2, 1.95, 0.02, []), (2, 1.5, 0.15, []), (2, 1.95, None, []),
    (1, 1.0, 0.0, ["one core only"]),
    (2, 1.2, 0.0, ["2 cores do only 1.20 cores' work"]),
    (2, 1.9, 0.4, ["processes wait 40 % of their time"]),
    (4, 1.1, 0.5, ["4 cores do only 1.10", "processes wait 50 %"]),
])
def test_doubts(cores, effective, queued, words):
    found = list(doubts(cores, effective, queued))
    assert len(found) == len(words)
    assert all(text.startswith(word) for text, word in zip(found, words, strict=True))


def test_calibrated_with_real_processes(monkeypatch):
    monkeypatch.setattr(machine, "ROUNDS", 1)
    found = calibrate()
    assert isinstance(found, MachineFacts)
    assert found.cores == usable_cores()
    assert 0 < found.effective <= found.cores * 2   # one lonely round may have met a busy moment
    assert found.run_queue is None or 0 <= found.run_queue <= 1
    assert found.doubts == tuple(doubts(found.cores, found.effective, found.run_queue))


def test_effective_cores_are_the_median_of_the_rounds(monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 2)
    alone, together = iter([100, 100, 100, 100, 100]), iter([190, 60, 195, 192, 400])
    monkeypatch.setattr(machine, "_spin", lambda count: (
        [(next(alone), 10, 0)] if count == 1 else [(next(together), 8, 2), (0, 8, 2)]))
    found = calibrate()
    assert (found.effective, found.run_queue) == (pytest.approx(1.92), pytest.approx(0.2))


@pytest.mark.parametrize("broken", ["raise SystemExit(1)", "print('no numbers')"])
def test_spinner_that_fails_is_a_reason(broken, monkeypatch):
    monkeypatch.setattr(machine, "SPINNER", broken)
    assert isinstance(calibrate(), Missing)
