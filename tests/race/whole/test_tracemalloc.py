"""A race is found in a program that uses tracemalloc, or what was forgotten is told."""

import re

import pytest

from tests.race.whole.corpus_runs import RACE_FOUND, run_checked

PROGRAM = """
import threading, tracemalloc
total, gate = 0, threading.Barrier(2)
def work(number):
    global total
    gate.wait()
    for _ in range(20):
        if number == 0:     # two threads must not start it at the same time: without a GIL, it is not safe
            {each}
        total += 1
        if number == 0:
            {after}
{before}
threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
START, STOP = "tracemalloc.start()", "tracemalloc.stop()"
INCOMPLETE = 3


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("before", [START, f"{START}; {STOP}"])
def test_race_is_found_of_threads_that_are_started_later(tmp_path, python, before):
    checked = checked_program(tmp_path, python, before=before)
    assert checked.races, checked.stderr
    assert (checked.code, checked.problem) == (RACE_FOUND, "")


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("after", ["pass", STOP])
def test_race_is_found_or_accesses_are_said_to_be_forgotten(tmp_path, python, build, after):
    checked = checked_program(tmp_path, python, each=START, after=after)
    if not checked.races and build.free_threaded:
        assert re.search(r"tracemalloc or another tool .* accesses to [0-9]+ objects? were forgotten", checked.stderr)
        assert checked.code == INCOMPLETE
    else:
        assert checked.code == RACE_FOUND


def checked_program(folder, python, *, before="", each="pass", after="pass"):
    program = folder / "racy.py"
    program.write_text(PROGRAM.format(before=before, each=each, after=after))
    return run_checked(python, program)
