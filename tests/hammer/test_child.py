"""The process that hammers: what it writes, with a module of Python in place of one of C, on the build of the tests."""

import json
import os
import sys

from gilscope.toolkit.processes.sealed_answers import Seal
from tests.conformance.builds import run_child
from tests.patience import PATIENCE

STANDIN = '''
def add(number):
    """
    >>> add(5)
    6
    """
    return number + 1
def silent(): ...
'''
CHILD = """
import sys
from gilscope.toolkit.hammer import child

child.main(float(sys.argv.pop()))
"""


def written(folder, *, files=(), find_seconds=PATIENCE, **changes):
    """Return the records of the process by their events."""
    (folder / "standin.py").write_text(STANDIN)
    job = {"path": [], "answers": str(folder / "answers"), "secret": "secret", "harness": "", "first": [str(folder)],
           "modules": ["standin"], "own": [], "files": [[str(file), file.name] for file in files], "threads": 2,
           "seed": 1, "seconds": 0.2, "limit": 0.2, "sizes": {}, "confirm": [], **changes}
    (folder / "job.json").write_text(json.dumps(job))
    done = run_child(sys.executable, "-c", CHILD, str(folder / "job.json"), str(find_seconds), timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    answers = (folder / "answers").read_bytes()
    (folder / "answers").unlink()
    found = {}
    for line in answers.splitlines():
        record = Seal("secret").opened(line)
        found.setdefault(record["event"], []).append(record)
    return found


def test_calls_are_made_from_several_threads_and_counted(tmp_path):
    found = written(tmp_path)
    assert [(each["called"], each["left_out"], each["complete"]) for each in found["called"]] == [
        (["add"], ["silent"], True)]
    assert {name for each in found["repeated"] for name in each["called"]} == {"add"}
    assert sum(each["trials"] for each in found["repeated"]) > 0
    assert "failure" not in found
    assert len(found["end"]) == 1


def test_time_that_others_had_the_cores_until_the_limit_is_written(tmp_path):
    found = written(tmp_path, seconds=1e6, limit=0.2)
    (record,) = found["short"]
    assert 1e6 - PATIENCE < record["missing"] <= 1e6


def test_time_for_finding_calls_is_not_taken_from_the_time_for_making_them(tmp_path):
    test = tmp_path / "test_a.py"
    test.write_text("import standin\ndef test_add():\n    assert standin.add(1) == 2\n")
    os.mkfifo(endless := tmp_path / "test_b.py")     # takes all the time for reading, which is more than `seconds`
    for seconds in (0.5, 5.0, 50.0, PATIENCE):     # the first that suffices for the calls
        found = written(tmp_path, files=(test, endless), find_seconds=seconds)
        if found["called"][0]["called"]:
            break
    assert [(each["called"], each["complete"]) for each in found["called"]] == [(["add"], False)]
    assert sum(each["trials"] for each in found["repeated"]) > 0


def test_module_that_cannot_be_imported_is_named(tmp_path):
    found = written(tmp_path, modules=["no_such_module", "standin"])
    assert [each["module"] for each in found["failed"]] == ["no_such_module"]
    assert found["repeated"]


def test_results_in_one_thread_alone_are_confirmed_without_trials(tmp_path):
    found = written(tmp_path, confirm=["keys: add(5)"], sizes={"keys: add(5)": [7, 2]})
    (only,) = found["repeated"]
    assert (only["key"], only["trials"], only["size"]) == ("keys: add(5)", 0, [7, 2])
    assert only["expected"]
