"""Calls that are found in files and docstrings and tried alone, in forks of a process of its own."""

import json
import os
import sys
import textwrap

import pytest

from tests.conformance.builds import run_child
from tests.patience import PATIENCE

LIMITS = (0.5, 5.0, 50.0, PATIENCE)   # seconds: the first that suffices for the calls that end

FIND = """
import json, sys, time
from gilscope.toolkit.hammer import candidates
from gilscope.toolkit.hammer.candidates import find_candidates
from gilscope.toolkit.hammer.targets import DefinedCallables

job = json.loads(sys.argv[1])
sys.path.insert(0, job["folder"])
for name in job["modules"]:
    __import__(name)
passed = 0.0

class SlowCall(candidates.RepeatableCall):
    def __init__(self, recipe):
        global passed
        passed += job["import_seconds"]
        super().__init__(recipe)

candidates.RepeatableCall = SlowCall
found = find_candidates(job, job["modules"], DefinedCallables(job["modules"]), job["seconds"],
                        try_seconds=job["try_seconds"], clock=lambda: time.monotonic() + passed)
print(json.dumps({"complete": found.complete, "found": [
    [each.name, each.call.recipe.shown, each.made, each.containers, each.vary, sorted(each.reached)]
    for each in found.candidates], "failed": [[each.name, each.recipe.shown, each.reason] for each in found.failed]}))
"""


def find(folder, files, *, modules=("_bisect",), own=("bisect",), seconds=PATIENCE,
         try_seconds=PATIENCE, import_seconds=0.0):
    named = []
    for name, text in files.items():
        if text is None:
            if not (folder / name).exists():
                os.mkfifo(folder / name)    # whoever opens it waits for ever
        else:
            (folder / name).write_text(textwrap.dedent(text))
        named.append([str(folder / name), name])
    job = {"folder": str(folder), "modules": modules, "own": own, "files": named, "seconds": seconds,
           "try_seconds": try_seconds, "import_seconds": import_seconds}
    done = run_child(sys.executable, "-c", FIND, json.dumps(job), timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


INSORT = """
    from bisect import insort
    def test_values_stay_sorted():
        values = [1, 3]
        insort(values, 2)
        assert values == [1, 2, 3]
"""


def test_call_of_a_test_is_found_and_says_what_it_reaches(tmp_path):
    assert find(tmp_path, {"test_a.py": INSORT}) == {
        "complete": True, "failed": [],
        "found": [["insort_right", "insort(values, 2)", "", True, False, ["insort_right"]]]}


def test_at_most_four_calls_of_a_function_and_each_once(tmp_path):
    lines = [f"    insort([1, 3], {each})" for each in (5, 5, 6, 7, 8, 9)]
    text = "\n".join(["from bisect import insort", "def test_a():", *lines])
    shown = [each[1] for each in find(tmp_path, {"test_a.py": text})["found"]]
    assert shown == [f"insort([1, 3], {each})" for each in (5, 6, 7, 8)]


STANDIN = '''
    import os, threading
    class Box:
        """
        >>> box = Box()
        >>> box.put("text")
        """
        def put(self, text): ...
    def works(key):
        """
        >>> works("a")
        """
    def fails():
        """
        >>> fails()
        """
        raise ValueError
    def crashes():
        """
        >>> crashes()
        """
        os.abort()
    def hangs():
        """
        >>> hangs()
        """
        threading.Event().wait()
    def last_one(text_that_is_long):
        """
        >>> last_one("a text that is so long that it is tried last")
        """
'''


def test_calls_that_fail_crash_or_hang_alone_are_left_out_and_those_after_them_are_found(tmp_path):
    (tmp_path / "standin.py").write_text(textwrap.dedent(STANDIN))
    for seconds in LIMITS:     # on a busy machine, others take long, too
        found = find(tmp_path, {}, modules=("standin",), own=(), try_seconds=seconds)
        if [reason.startswith("did not end") for *_, reason in found["failed"]].count(True) == 1:
            break
    assert found["complete"]
    assert {each[0]: each[2:5] for each in found["found"]} == {
        "Box": ["", False, False], "Box.put": ["Box", False, True], "works": ["", False, True],
        "last_one": ["", False, True]}
    assert {name: (shown, reason) for name, shown, reason in found["failed"]} == {
        "fails": ("fails()", "ValueError: "), "crashes": ("crashes()", "crashed with SIGABRT"),
        "hangs": ("hangs()", f"did not end within {seconds:g} s")}


def test_finding_ends_with_its_time_and_says_so(tmp_path):
    (tmp_path / "standin.py").write_text(textwrap.dedent(STANDIN))
    for seconds in LIMITS:
        found = find(tmp_path, {}, modules=("standin",), own=(), seconds=seconds)
        assert not found["complete"]
        names = [each[0] for each in found["found"]]
        if "Box" in names:
            break
    assert "Box" in names
    assert "last_one" not in names    # after the one that hangs


def test_calls_before_the_time_was_up_are_tried(tmp_path):
    lines = [f"    insort([1, 3], {each})" for each in range(9)]
    text = "\n".join(["from bisect import insort", "def test_a():", *lines])
    found = find(tmp_path, {"test_a.py": text}, import_seconds=PATIENCE / 6)
    assert not found["complete"]
    assert [each[1] for each in found["found"]] == [f"insort([1, 3], {each})" for each in range(4)]


def test_file_that_takes_for_ever_costs_what_comes_after_it_alone(tmp_path):
    later = INSORT.replace("2)", "5)")
    for seconds in LIMITS:
        found = find(tmp_path, {"test_a.py": INSORT, "test_b.py": None, "test_c.py": later}, seconds=seconds)
        assert not found["complete"]
        if found["found"]:
            break
    assert [each[1] for each in found["found"]] == ["insort(values, 2)"]


@pytest.mark.parametrize("text", ["", "def broken(:", "from bisect import insort\nthings = insort"])
def test_files_without_calls_give_none(text, tmp_path):
    assert find(tmp_path, {"test_a.py": text}) == {"complete": True, "found": [], "failed": []}
