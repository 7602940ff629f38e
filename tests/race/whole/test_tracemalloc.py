"""A race is found in a program that uses tracemalloc, on every build."""

import pytest

from tests.race.whole.corpus_runs import RACE_FOUND, run_checked

PROGRAM = """
import threading, tracemalloc
total, gate = 0, threading.Barrier(2)
def work():
    global total
    gate.wait()
    for _ in range(20):
        {each}
        total += 1
        {after}
{before}
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
START, STOP = "tracemalloc.start()", "tracemalloc.stop()"


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize(("before", "each", "after"), [
    (START, "", ""), (f"{START}; {STOP}", "", ""), ("", START, ""), ("", START, STOP)])
def test_race_is_found(tmp_path, python, before, each, after):
    program = tmp_path / "racy.py"
    program.write_text(PROGRAM.format(before=before, each=each, after=after))
    checked = run_checked(python, program)
    assert checked.races, checked.stderr
    assert (checked.code, checked.problem) == (RACE_FOUND, "")
