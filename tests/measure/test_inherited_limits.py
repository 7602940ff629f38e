"""A measured process has the signals and files it should, whoever started gilscope; what else it has is told."""

import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from gilscope.toolkit.measure.inherited_limits import InheritedLimits, inherited_limits
from gilscope.toolkit.processes.lifeline import OPEN_FILES
from tests.conformance.builds import ROOT
from tests.measure.children import USERCODE, make_spec, measure, target
from tests.patience import PATIENCE

USUAL = InheritedLimits(nice=0, policy="", cpus=(0, 1), online=2, files=OPEN_FILES, limits={}, cpu_seconds=None)
MEASURES = """
import sys
from tests.measure.test_inherited_limits import measured
measured(sys.argv[1])
"""
RUNS_TESTS = """
import os, sys
from pathlib import Path
from gilscope.toolkit.evaluate.project.suite.running import run_bounded
folder = Path(sys.argv[1])
ending = run_bounded([sys.executable, sys.argv[2], str(folder / "told")], folder, dict(os.environ), folder / "output",
                     limit=120, quiet=120)
assert ending.succeeded, (ending, (folder / "output").read_text())
"""
ASKS = """
import sys
from gilscope.toolkit.measure.abilities import _ask
from tests.measure.children import USERCODE
import os
_ask(sys.executable, {**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"] + os.pathsep + str(USERCODE)}, "import",
     "tells_at_import")
"""


def measured(folder):
    """Measure the function that tells what it has inherited."""
    answer = measure(make_spec(folder, target("standing:tell", payload=repr(f"{folder}/told"))))
    assert answer.kind == "measured", answer


def _odd():
    """Be as a job in a script's background of an odd CI runner; runs in a child between fork and exec."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    os.umask(0o077)
    os.nice(5)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


@pytest.mark.parametrize("script", [MEASURES, RUNS_TESTS, ASKS], ids=["measured", "tests", "asked"])
def test_whoever_starts_gilscope_signals_and_files_are_as_they_should_be(script, tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(tmp_path), str(USERCODE / "standing.py")], preexec_fn=_odd,
        env={**os.environ, "PYTHONPATH": str(ROOT), "GILSCOPE_TOLD": str(tmp_path / "told")}, check=False,
        capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "told").read_text())
    assert set(told["ignored"]) <= {"SIGPIPE", "SIGXFSZ"}   # Python's own doing
    assert told["interruptible"]
    assert told["blocked"] == []
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert told["files"] == (OPEN_FILES if most < 0 else min(most, OPEN_FILES))
    assert told["nice"] == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)   # meant by who said `nice gilscope`
    assert len(told["cpus"]) <= 1


@pytest.mark.parametrize(("changes", "said"), [
    ({}, None),
    ({"nice": 5}, "with nice 5"),
    ({"policy": "batch"}, "with the batch scheduling policy"),
    ({"cpus": (0, 2, 3), "online": 8}, "on 3 of the machine's 8 CPUs (0,2-3)"),
    ({"files": 64}, "with at most 64 open files"),
    ({"limits": {"address space": 1 << 30}}, "with address space limited to 1024 MiB"),
    ({"cpu_seconds": 60, "nice": 1}, "with nice 1, with 60 s of CPU time per process"),
])
def test_what_is_kept_and_unusual_is_said(changes, said):
    sentence = replace(USUAL, **changes).sentence()
    assert sentence == (said and f"gilscope was started {said}; so were the measured processes")


def test_what_is_kept_is_what_this_process_has():
    found = inherited_limits()
    assert found.nice == os.getpriority(os.PRIO_PROCESS, 0)
    assert 0 < len(found.cpus) <= found.online
