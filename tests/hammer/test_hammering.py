"""Made-up answers of processes are judged, and modules with planted faults are called from real threads."""

import json
import shutil

import pytest

from gilscope.toolkit.children.asking import ChildAnswer, ProcessEnding
from gilscope.toolkit.hammer.hammering import HammerRequest, c_function, hammer, interpreter_function, judge
from gilscope.toolkit.hammer.trials import state_entry

LIMITS = (5.0, 30.0, 180.0)   # seconds: chance decides how soon a fault is shown

REQUEST = HammerRequest(modules=("_c",), threads=4, seconds=20.0)
ROUND = {"hash": "1", "calls": 4, "values": 1, "few": [["'L0'", 4]], "one_object": True}
TWO = {"hash": "2", "calls": 4, "values": 2, "few": [["'L0'", 2], ["'L1'", 2]], "one_object": False}
DIFFERENT = {"what": "results", "round": 0, "one": ROUND, "several": TWO}


def repeated(key="keys: f('a')", **changes):
    usual = {"trials": 5, "called": ["f"], "size": [1, 1], "expected": "1", "one_object": True}
    return {"event": "repeated", "key": key, **usual, **changes}


def failure(what="results", key="keys: f('a')", **changes):
    usual = {"found": DIFFERENT, "names": ["f"], "calls": ["f('a')"], "places": ["t.py:3"], "reason": "", "output": "",
             "count": 1, "beside": []}
    return {"event": "failure", "key": key, "what": what, **usual, **changes}


def answer(*records, kind="done", reason="", complete=True, called=("f",)):
    called = {"event": "called", "called": [*called], "left_out": ["g"], "complete": complete}
    return ChildAnswer(records=(called, *records), ending=ProcessEnding(kind=kind, reason=reason, output=""))


def test_results_that_two_processes_expect_are_compared():
    report = judge(REQUEST, [answer(repeated(), failure()), answer(repeated())])
    (found,) = report.failures
    assert (found.kind, found.functions, found.failed, found.trials, found.place) == (
        "results-differ", ("f",), 1, 10, "t.py:3")
    assert found.detail == "4 equal calls gave 2 values ('L0', 'L1'), and 1 with one thread"
    assert (report.called, report.left_out, report.trials) == (("f",), ("g",), 10)


@pytest.mark.parametrize("other", [[], [repeated(expected="2")], [repeated(expected="")]],
                         ids=["one process", "other results", "several orders differ"])
def test_results_that_depend_on_the_process_are_not(other):
    assert judge(REQUEST, [answer(repeated(), failure()), answer(*other)]).failures == ()


def test_function_counts_as_called_once_threads_have_called_it():
    report = judge(REQUEST, [answer(repeated(called=[]))])
    assert (report.called, report.no_time, report.left_out) == ((), ("f",), ("g",))


def test_crash_counts_wherever_it_is_seen():
    crash = failure("crash", "mix: f('a')", found=None, reason="SIGSEGV",
                    output='  Binary file "/x/_c.cpython-314t-x86_64-linux-gnu.so", at c_recall+0x1f [0x7f]\n')
    (found,) = judge(REQUEST, [answer(repeated("mix: f('a')", expected=""), crash, crash)]).failures
    assert (found.kind, found.detail, found.failed) == ("crash", "SIGSEGV in c_recall", 2)


@pytest.mark.parametrize(("before", "after", "kind"), [
    (800, 793, "counts-lost"),
    (800, 807, "results-differ"),
    (1.0, 1e-05, "counts-lost"),
    (1e-05, 1.0, "results-differ"),     # 1 is not less, although 5 would be more
    (2, 1e+16, "results-differ"),
    ("a1", "a0", "results-differ"),     # texts that end with digits
    (True, False, "results-differ"),
    (1, None, "results-differ"),
])
def test_smaller_number_is_a_lost_count(before, after, kind):
    found = {"what": "state", "one": state_entry("total() gives", before),
             "several": state_entry("total() gives", after)}
    found = json.loads(json.dumps(found))
    (failed,) = judge(REQUEST, [answer(repeated(), failure("state", found=found)), answer(repeated())]).failures
    assert failed.kind == kind
    assert failed.detail == f"total() gives {after!r}, and {before!r} with one thread"


def test_failures_of_a_process_that_did_not_say_its_trials_count():
    crash = failure("crash", found=None, reason="SIGSEGV", count=2)
    report = judge(REQUEST, [answer(crash, kind="hang", reason="did not end")])
    (found,) = report.failures
    assert (found.failed, found.trials) == (2, 2)


def test_slow_trials_are_counted_and_blame_nothing():
    slow = {"event": "slow", "names": ["f"]}
    report = judge(REQUEST, [answer(repeated(), slow, slow), answer(repeated(), {**slow, "names": ["g", "f"]})])
    assert (report.failures, report.slow, report.slow_functions) == ((), 3, ("f", "g"))
    assert (report.trials, report.problem) == (10, "")


def test_several_equal_objects_count_where_both_processes_have_one():
    objects = failure("objects", found={"what": "objects", "round": 0, "several": ROUND})
    (found,) = judge(REQUEST, [answer(repeated(), objects), answer(repeated(expected="2"))]).failures
    assert found.kind == "objects-differ"   # their values may depend on the process
    assert judge(REQUEST, [answer(repeated(), objects), answer(repeated(one_object=False))]).failures == ()


def test_crash_and_failed_import_are_reasons_why_nothing_was_called():
    nothing = ChildAnswer(records=(), ending=ProcessEnding(kind="crash", reason="crashed with SIGSEGV", output=""))
    assert judge(REQUEST, [nothing, nothing]).problem == "crashed with SIGSEGV"
    failed = ChildAnswer(records=({"event": "failed", "module": "_c", "error": "ImportError: no"},),
                         ending=ProcessEnding(kind="done", reason="", output=""))
    assert judge(REQUEST, [failed]).problem == "ImportError: no"
    assert judge(REQUEST, [failed, answer(repeated())]).problem == ""


@pytest.mark.parametrize(("answers", "reason"), [
    ([answer()], "there was no time for a trial"),
    ([answer(repeated(trials=0), complete=False)],
     "finding calls in its tests and documentation took more than 20 s"),
    ([answer(called=())], "no call of its functions was found in its tests or documentation that can be repeated"),
    ([answer({"event": "alone", "key": "k", "names": ["f"], "ending": "SIGSEGV"})],
     "its calls fail in one thread, too: f SIGSEGV"),
    ([answer(repeated(trials=1), {"event": "slow", "names": ["f"]})], "no trial ended in time"),
    ([answer(kind="hang", reason="did not end within 90 s")], "did not end within 90 s"),
])
def test_without_a_trial_that_ended_there_is_a_reason(answers, reason):
    assert judge(REQUEST, answers).problem == reason


def test_search_that_was_cut_is_said():
    assert judge(REQUEST, [answer(repeated())]).complete
    assert not judge(REQUEST, [answer(repeated()), answer(repeated(), complete=False)]).complete


@pytest.mark.parametrize("library", ["libc.so.6", "libpython3.14t.so.1.0", "libstdc++.so.6", "libm-2.36.so"])
def test_place_of_a_crash_is_in_an_extension_module(library):
    stack = (f'  Binary file "/usr/lib/{library}", at abort+0x1 [0x7f]\n'
             '  Binary file "/x/pkg/_c.cpython-314t-x86_64-linux-gnu.so", at c_f+0x2 [0x7f]\n')
    assert c_function(stack) == "c_f"
    assert c_function(stack.splitlines()[0]) == ""


@pytest.mark.parametrize(("frames", "named"), [
    (["_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJRKiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
      "_ZN5Route5visitEi"], "Route::visit"),
    (["_ZN5Route5visitEi.isra.0", "_ZN8pybind1112cpp_function10dispatcherEP7_objectS2_S2_"], "Route::visit"),
    (["_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJRKiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_"],
     "std::vector::_M_realloc_insert"),     # all that there is
    (["c_f", "_ZN5Route5visitEi"], "c_f"),
    ([("_ZZN8pybind1112cpp_function10initializeIZL22pybind11_init__longestRNS_7module_EEUlNS_4dictEE_mJS4_EJNS_4nameENS_"
       "5scopeENS_7siblingEEEEvOT_PFT0_DpT1_EDpRKT2_ENUlRNS_6detail13function_callEE1_4_FUNESM_")],
     "a lambda in PYBIND11_MODULE(_longest)"),     # of pybind11 2.13
])
@pytest.mark.skipif(shutil.which("c++filt") is None, reason="no c++filt")
def test_function_of_cpp_is_named_as_in_its_source(frames, named):
    assert c_function("".join(f'  Binary file "/x/_c.so", at {each}+0x2 [0x7f]\n' for each in frames)) == named


def test_without_a_demangler_the_symbol_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert c_function('  Binary file "/x/_c.so", at _ZN5Route5visitEi+0x2 [0x7f]\n') == "_ZN5Route5visitEi"


def test_crash_without_a_function_of_the_project_says_so():
    stack = "".join(f'  Binary file "/x/{file}", at {place} [0x7f]\n' for file, place in (
        ("bin/python3.15t", "_Py_DumpStack+0x38"), ("bin/python3.15t", "+0x37726c"), ("libc.so.6", "+0x3c050"),
        ("libc.so.6", "+0x1"), ("bin/python3.15t", "_Py_Dealloc+0x26"), ("bin/python3.15t", "_PyEval+0x1")))
    assert (c_function(stack), interpreter_function(stack)) == ("", "_Py_Dealloc")
    assert interpreter_function("Segmentation fault\n") == ""


# Python code stands in for C: a free-threaded build runs it at the same time, too.  Where a core is given away, another
# thread gets there also if other programs have the cores.
FAULTS = {
    "results-differ": '''
import os
labels = {}
def label(key):
    """Return one label for each key.

    >>> label("alpha")
    0
    """
    found = labels.get(key)
    if found is None:
        found = len(labels)
        if found < 20:    # each takes milliseconds on a busy machine
            os.sched_yield()
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
FAULTS["hang"] = '''
import os, threading
one, other = threading.Lock(), threading.Lock()
def there():
    """
    >>> there()
    """
    with one:
        os.sched_yield()
        with other:
            pass
def back():
    """
    >>> back()
    """
    with other:
        os.sched_yield()
        with one:
            pass
'''
FIXED = '''
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


# A thread that ends with it held stops the others, whatever overlaps.
LOCK = '''
import threading
class Lock:
    """
    >>> lock = Lock()
    >>> lock.acquire()
    True
    >>> lock.release()
    """
    def __init__(self):
        self._lock = threading.RLock()
    def acquire(self):
        return self._lock.acquire()
    def release(self):
        self._lock.release()
'''


def test_crash_that_needs_nothing_beside_is_shown_as_such():
    stack = '  Binary file "/x/_c.cpython-314t-x86_64-linux-gnu.so", at c_recall+0x1f [0x7f]\n'
    beside = failure("crash", "mix: f('a')", found=None, reason="SIGSEGV", beside=["repr()", "len()"], output=stack)
    less = failure("crash", "mix: f('b')", found=None, reason="SIGBUS", beside=["len()"], calls=["f('b')"],
                   places=["t.py:9"])
    alone = failure("crash", "same: f('c')", found=None, reason="SIGABRT", calls=["f('c')"], places=["t.py:12"])
    named = failure("crash", "same: f('d')", found=None, reason="SIGSEGV", calls=["f('d')"], places=["t.py:15"],
                    output=stack)
    for records, shown in (((beside,), ("SIGSEGV in c_recall", ("repr()", "len()"), "t.py:3")),
                           ((beside, less), ("SIGBUS", ("len()",), "t.py:9")),
                           ((beside, less, alone), ("SIGABRT", (), "t.py:12")),
                           ((beside, less, alone, named), ("SIGSEGV in c_recall", (), "t.py:15"))):
        (found,) = judge(REQUEST, [answer(repeated(), *records)]).failures
        assert (found.detail, found.beside, found.place, found.failed) == (*shown, len(records))


def test_seconds_that_others_had_the_cores_are_added_up():
    answers = [answer(repeated(), {"event": "short", "missing": 4.0}), answer(repeated())]
    assert judge(REQUEST, answers).missing == 4.0


def hammered(python, folder, source, seconds):
    (folder / "standin.py").write_text(source)
    return hammer(python, HammerRequest(modules=("standin",), own=("standin",), folders=(str(folder),), threads=4,
                                        seconds=seconds, limit=seconds))


@pytest.mark.slow
@pytest.mark.builds("free")
@pytest.mark.parametrize("kind", FAULTS)
def test_fault_is_shown(kind, python, tmp_path):
    for seconds in LIMITS:
        report = hammered(python, tmp_path, FAULTS[kind], seconds)
        if kind in {each.kind for each in report.failures}:
            break
    assert kind in {each.kind for each in report.failures}
    assert report.left_out == ()


BESIDE = '''
import os, threading
class Box:    # its length may be asked for by the thread that puts, or when all are through
    """
    >>> box = Box()
    >>> box.put(1)
    """
    def __init__(self):
        self.putters = set()
    def put(self, number):
        self.putters.add(threading.get_ident())
    def __len__(self):
        if len(self.putters) > 1 and threading.get_ident() != threading.main_thread().ident:
            os.abort()
        return 0
def total(numbers):
    """
    >>> total([1, 2])
    3
    """
    for _ in range(100):
        if not numbers:
            os.abort()
    return sum(numbers)
'''


@pytest.mark.slow
@pytest.mark.builds("free")
def test_crash_names_what_other_threads_did_to_the_same_object(python, tmp_path):
    for seconds in LIMITS:
        report = hammered(python, tmp_path, BESIDE, seconds)
        beside = [(each.functions, each.beside) for each in report.failures if each.kind == "crash"]
        put = [names for names, did in beside if "Box.put" in names and "len()" in did]
        if put and (("total",), ("changes of its list",)) in beside:
            break
    assert put
    assert (("total",), ("changes of its list",)) in beside


@pytest.mark.slow
@pytest.mark.builds("free")
def test_correct_code_is_not_blamed(python, tmp_path):
    functions = {"label", "hit", "calls_of_this_thread", "address"}
    for seconds in LIMITS:     # a busy machine may leave no time for all of them
        report = hammered(python, tmp_path, FIXED, seconds)
        assert report.failures == ()
        if functions <= {*report.called}:
            break
    assert {*report.called} == functions
    assert report.trials > 0


@pytest.mark.slow
@pytest.mark.builds("free")
def test_lock_that_one_thread_holds_is_no_hang(python, tmp_path):
    for seconds in LIMITS:
        report = hammered(python, tmp_path, LOCK, seconds)
        assert report.failures == ()
        if "Lock.acquire" in report.waiting and {"Lock", "Lock.release"} <= {*report.called} and not report.slow:
            break
    assert (report.failures, report.slow, report.left_out) == ((), 0, ())
    assert "Lock.acquire" in report.waiting
    assert {"Lock", "Lock.release"} <= {*report.called}


@pytest.mark.builds("free")
def test_what_no_test_calls_is_named_and_a_module_that_cannot_be_imported_is_a_problem(python, tmp_path):
    report = hammered(python, tmp_path, "def silent(): pass\n", 60.0)
    assert (report.called, report.left_out) == ((), ("silent",))
    assert "no call of its functions" in report.problem
    assert hammered(python, tmp_path, "raise ImportError('no')\n", 60.0).problem == "ImportError: no"


@pytest.mark.builds("free")
def test_call_that_crashes_alone_is_not_blamed_on_threads(python, tmp_path):
    source = 'import os\ndef f():\n    """\n    >>> f()\n    """\n    os.abort()\n'
    report = hammered(python, tmp_path, source, 60.0)
    assert (report.failures, report.called) == ((), ())
