"""What processes answer, judged; and modules with planted faults called from threads for real."""

from pathlib import Path

import pytest

from gilscope.toolkit.children.asking import ChildAnswer, ProcessEnding
from gilscope.toolkit.hammer.hammering import HammerRequest, c_function, hammer, interpreter_function, judge
from tests.evaluate.places import at_hand

REQUEST = HammerRequest(modules=("_c",), threads=4, seconds=20.0)
ROUND = {"hash": "1", "calls": 4, "values": 1, "few": [["'L0'", 4]], "one_object": True}
TWO = {"hash": "2", "calls": 4, "values": 2, "few": [["'L0'", 2], ["'L1'", 2]], "one_object": False}
DIFFERENT = {"what": "results", "round": 0, "one": ROUND, "several": TWO}


def cell(key="keys: f('a')", **changes):
    usual = {"trials": 5, "called": ["f"], "size": [1, 1], "expected": "1", "one_object": True}
    return {"event": "cell", "key": key, **usual, **changes}


def failure(what="results", key="keys: f('a')", **changes):
    usual = {"found": DIFFERENT, "names": ["f"], "calls": ["f('a')"], "places": ["t.py:3"], "reason": "", "output": ""}
    return {"event": "failure", "key": key, "what": what, **usual, **changes}


def answer(*records, kind="done", reason=""):
    called = {"event": "called", "called": ["f"], "left_out": ["g"]}
    return ChildAnswer(records=(called, *records), ending=ProcessEnding(kind=kind, reason=reason, output=""))


def test_results_that_two_processes_expect_are_compared():
    report = judge(REQUEST, [answer(cell(), failure()), answer(cell())])
    (found,) = report.failures
    assert (found.kind, found.functions, found.failed, found.trials, found.place) == (
        "results-differ", ("f",), 1, 10, "t.py:3")
    assert found.detail == "4 equal calls gave 2 values ('L0', 'L1'), and 1 with one thread"
    assert (report.called, report.left_out, report.trials) == (("f",), ("g",), 10)


@pytest.mark.parametrize("other", [
    [], [cell(expected="2")], [cell(expected="")]], ids=["one process", "other results", "several orders differ"])
def test_results_that_depend_on_the_process_are_not(other):
    assert judge(REQUEST, [answer(cell(), failure()), answer(*other)]).failures == ()


def test_function_counts_as_called_once_threads_have_called_it():
    report = judge(REQUEST, [answer(cell(called=[]))])
    assert (report.called, report.no_time, report.left_out) == ((), ("f",), ("g",))


def test_crash_counts_wherever_it_is_seen():
    crash = failure("crash", "mix: f('a')", found=None, reason="SIGSEGV",
                    output='  Binary file "/x/_c.cpython-314t-x86_64-linux-gnu.so", at c_recall+0x1f [0x7f]\n')
    (found,) = judge(REQUEST, [answer(cell("mix: f('a')", expected=""), crash, crash)]).failures
    assert (found.kind, found.detail, found.failed) == ("crash", "SIGSEGV in c_recall", 2)


def test_smaller_number_is_a_lost_count():
    def state(before, after):
        found = {"what": "state", "one": f"total() gives {before}", "several": f"total() gives {after}"}
        (failed,) = judge(REQUEST, [answer(cell(), failure("state", found=found)), answer(cell())]).failures
        return failed.kind, failed.detail

    assert state(800, 793) == ("counts-lost", "total() gives 793, and 800 with one thread")
    assert state(800, 807)[0] == "results-differ"
    assert state("'a'", "'b'")[0] == "results-differ"


def test_several_equal_objects_count_where_both_processes_have_one():
    objects = failure("objects", found={"what": "objects", "round": 0, "several": ROUND})
    (found,) = judge(REQUEST, [answer(cell(), objects), answer(cell(expected="2"))]).failures
    assert found.kind == "objects-differ"   # their values may depend on the process
    assert judge(REQUEST, [answer(cell(), objects), answer(cell(one_object=False))]).failures == ()


def test_reason_why_nothing_was_called():
    nothing = ChildAnswer(records=(), ending=ProcessEnding(kind="crash", reason="crashed with SIGSEGV", output=""))
    assert judge(REQUEST, [nothing, nothing]).problem == "crashed with SIGSEGV"
    failed = ChildAnswer(records=({"event": "failed", "module": "_c", "error": "ImportError: no"},),
                         ending=ProcessEnding(kind="done", reason="", output=""))
    assert judge(REQUEST, [failed]).problem == "ImportError: no"
    assert judge(REQUEST, [answer()]).problem == ""


@pytest.mark.parametrize("library", ["libc.so.6", "libpython3.14t.so.1.0"])
def test_place_of_a_crash_is_in_an_extension_module(library):
    stack = (f'  Binary file "/usr/lib/{library}", at abort+0x1 [0x7f]\n'
             '  Binary file "/x/pkg/_c.cpython-314t-x86_64-linux-gnu.so", at c_f+0x2 [0x7f]\n')
    assert c_function(stack) == "c_f"
    assert c_function(stack.splitlines()[0]) == ""


def test_crash_without_a_function_of_the_project_says_so():
    stack = "".join(f'  Binary file "/x/{file}", at {place} [0x7f]\n' for file, place in (
        ("bin/python3.15t", "_Py_DumpStack+0x38"), ("bin/python3.15t", "+0x37726c"), ("libc.so.6", "+0x3c050"),
        ("libc.so.6", "+0x1"), ("bin/python3.15t", "_Py_Dealloc+0x26"), ("bin/python3.15t", "_PyEval+0x1")))
    assert (c_function(stack), interpreter_function(stack)) == ("", "_Py_Dealloc")
    assert interpreter_function("Segmentation fault\n") == ""


# Python code stands in for C: a free-threaded build runs it at the same time, too.
FAULTS = {
    "results-differ": '''
labels = {}
def label(key):
    """Return one label for each key.

    >>> label("alpha")
    0
    """
    found = labels.get(key)
    if found is None:
        found = len(labels)
        labels[key] = found
        labels.setdefault(f"{key} again", len(labels))
    return found
''',
    "counts-lost": '''
total = 0
def hit():
    """
    >>> hit()
    """
    global total
    total += 1
def hits():
    """
    >>> hits()
    1
    """
    return total
''',
    "crash": '''
import os
class Box:
    """
    >>> box = Box()
    >>> box.change("text")
    """
    def __init__(self):
        self.inside = 0
    def change(self, text):
        self.inside += 1
        if self.inside == 2:
            os.abort()
        text * 2
        self.inside = 0
''',
}
REPAIRED = '''
import threading
lock, labels, total = threading.Lock(), {}, 0
mine = threading.local()
def label(key):
    """
    >>> label("alpha")
    0
    """
    with lock:
        return labels.setdefault(key, len(labels))
def hit():
    """
    >>> hit()
    1
    """
    global total
    with lock:
        total += 1
        return total
def calls_of_this_thread():
    """
    >>> calls_of_this_thread()
    1
    """
    mine.calls = getattr(mine, "calls", 0) + 1
    return mine.calls
def address(key):
    """
    >>> address("alpha")
    """
    return id(key), hash(key)
'''


@pytest.fixture(scope="module")
def python():
    build = next((each for each in at_hand() if each.label == "3.14t"), None)
    if build is None:
        pytest.skip("no 3.14t at hand")
    return Path(build.executable)


def hammered(python, folder, source, seconds):
    (folder / "standin.py").write_text(source)
    return hammer(python, HammerRequest(modules=("standin",), own=("standin",), folders=(str(folder),), threads=4,
                                        seconds=seconds))


@pytest.mark.slow
@pytest.mark.newest
@pytest.mark.parametrize("kind", FAULTS)
def test_fault_is_shown(kind, python, tmp_path):
    report = hammered(python, tmp_path, FAULTS[kind], 20.0)
    assert kind in {each.kind for each in report.failures}
    assert report.left_out == ()


@pytest.mark.slow
@pytest.mark.newest
def test_correct_code_is_not_blamed(python, tmp_path):
    report = hammered(python, tmp_path, REPAIRED, 10.0)
    assert report.failures == ()
    assert set(report.called) == {"label", "hit", "calls_of_this_thread", "address"}
    assert report.trials > 0


@pytest.mark.slow
@pytest.mark.newest
def test_what_no_test_calls_is_named_and_a_module_that_cannot_be_imported_is_a_problem(python, tmp_path):
    report = hammered(python, tmp_path, "def silent(): pass\n", 2.0)
    assert (report.called, report.left_out) == ((), ("silent",))
    assert "no call of its functions" in report.problem
    assert hammered(python, tmp_path, "raise ImportError('no')\n", 2.0).problem == "ImportError: no"


@pytest.mark.slow
@pytest.mark.newest
def test_call_that_crashes_alone_is_not_blamed_on_threads(python, tmp_path):
    source = 'import os\ndef f():\n    """\n    >>> f()\n    """\n    os.abort()\n'
    report = hammered(python, tmp_path, source, 2.0)
    assert (report.failures, report.called) == ((), ())
