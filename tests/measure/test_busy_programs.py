"""Programs that use the cores are named, the busiest first."""

import os
import subprocess
import sys

import pytest

from gilscope.toolkit.measure.busy_programs import ProcessTime, busy_programs, process_times
from tests.patience import PATIENCE

pytestmark = pytest.mark.newest


def named(before, after, seconds=2.0):
    """Return what is said of two readings, each a name and CPU seconds by process."""
    readings, now = iter([before, after]), [0.0]

    def pause(_seconds):
        now[0] += seconds

    return busy_programs(lambda: {pid: ProcessTime(*each) for pid, each in next(readings).items()}, pause=pause,
                         clock=lambda: now[0])


def test_busiest_program_is_named_first():
    before = {901: ("make", 5.0), 902: ("bash", 0.0), 903: ("idle", 50.0)}
    after = {901: ("make", 5.8), 902: ("bash", 2.0), 903: ("idle", 50.0)}
    assert named(before, after) == "bash (process 902: 1.0 cores), make (process 901: 0.4 cores)"


def test_processes_of_one_program_are_added_up_with_those_that_have_just_started():
    assert named({901: ("cc1", 5.0)}, {901: ("cc1", 6.0), 902: ("cc1", 0.6)}) == "cc1 (2 processes: 0.8 cores)"


def test_only_what_counts_is_named():
    many = {900 + i: (f"program-{i}", 0.0) for i in range(5)}
    used = {pid: (name, 2.0 - number / 10) for number, (pid, (name, _)) in enumerate(many.items())}
    assert named(many, used).count("program-") == 3
    assert named({901: ("little", 0.0)}, {901: ("little", 0.1)}) == ""


def test_gilscope_itself_is_not_named():
    assert named({os.getpid(): ("gilscope", 0.0)}, {os.getpid(): ("gilscope", 2.0)}) == ""


def test_processes_are_read_by_name_and_time():
    names = "import sys; open('/proc/self/comm', 'w').write('a) (b'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", names], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        found = process_times()[process.pid]
        process.stdin.close()
        process.wait(PATIENCE)
    assert (found.name, found.seconds >= 0) == ("a) (b", True)
