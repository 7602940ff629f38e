"""Pinning for real on every build, by psutil and without; and what systems that are not here would do."""

import contextlib
import errno
import os
import subprocess
import sys
import threading
import types
from textwrap import dedent

import pytest

from gilscope.toolkit import cores
from gilscope.toolkit.experiments.affinity import pinning
from tests.conformance.builds import run_child

CPUS = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
needs_affinity = pytest.mark.skipif(not CPUS, reason="this system has no affinity to compare with")
needs_two = pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: nothing to pin away from")

OTHER = """
import sys, threading
event = threading.Event()
thread = threading.Thread(target=event.wait)
thread.start()
print(thread.native_id, flush=True)
sys.stdin.read()
event.set()
"""
WITHOUT = "import sys; sys.modules['psutil'] = None"   # the import fails as it does where there is no wheel

THREADS = dedent("""
    import os, sys, threading
    sys.setswitchinterval(1e-4)
    from gilscope.toolkit.experiments.affinity import pinning

    def cpus_of_work(seen, ran):
        # Field 39 of proc_pid_stat(5): the CPU that the thread runs on.
        path = f"/proc/self/task/{threading.get_native_id()}/stat"
        for _ in range(300):
            sum(range(2000))
            with open(path) as file:
                ran.add(int(file.read().rpartition(")")[2].split()[36]))
        seen.append(os.sched_getaffinity(threading.get_native_id()))

    def in_threads(before):
        seen, ran = [], set()
        threads = [threading.Thread(target=cpus_of_work, args=(seen, ran)) for _ in range(2)]
        before(threads)
        for thread in threads:
            thread.join()
        return seen, ran

    def start(threads):
        for thread in threads:
            thread.start()

    usual = pinning.allowed()
    assert set(usual) == os.sched_getaffinity(0), usual
    for cpu in usual:
        with pinning.pinned([cpu]):
            seen, ran = in_threads(start)
        assert seen == [{cpu}, {cpu}], seen
        assert ran == {cpu}, (cpu, ran)
        assert pinning.allowed() == usual
    seen, _ = in_threads(start)
    assert seen == [set(usual)] * 2, seen
    print("ok", "psutil" if sys.modules.get("psutil") else "os")
""")


@needs_two
@pytest.mark.parametrize("how", ["as it is", "without psutil"])
@pytest.mark.builds("gil", "free")
def test_threads_of_a_pinned_process_run_on_that_cpu_alone(python, how):
    done = run_child(python, "-c", THREADS if how == "as it is" else f"{WITHOUT}\n{THREADS}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ok")
    if how == "without psutil":
        assert done.stdout == "ok os\n"


@pytest.fixture
def without_psutil(monkeypatch):
    monkeypatch.setitem(sys.modules, "psutil", None)


@pytest.fixture(params=["psutil", "os"])
def either_way(request, monkeypatch):
    """Ask the system by psutil and without it."""
    if request.param == "psutil":
        pytest.importorskip("psutil")
    else:
        monkeypatch.setitem(sys.modules, "psutil", None)


@contextlib.contextmanager
def idle_thread():
    """Give the number of a thread that waits until the block is left."""
    leave, known = threading.Event(), threading.Event()
    numbers = []

    def wait():
        numbers.append(threading.get_native_id())
        known.set()
        leave.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    known.wait()
    try:
        yield numbers[0]
    finally:
        leave.set()
        thread.join()


@needs_two
def test_threads_that_run_already_are_pinned_and_get_back_what_they_had(either_way):
    first, second = pinning.allowed()[:2]
    with idle_thread() as older, idle_thread() as own_mind, contextlib.ExitStack() as stack:
        os.sched_setaffinity(own_mind, {second})
        with pinning.pinned([first]):
            assert [os.sched_getaffinity(each) for each in (0, older, own_mind)] == [{first}] * 3
            newer = stack.enter_context(idle_thread())
            assert os.sched_getaffinity(newer) == {first}
        usual = set(pinning.allowed())
        assert [os.sched_getaffinity(each) for each in (0, older, newer)] == [usual] * 3
        assert os.sched_getaffinity(own_mind) == {second}
    assert first in usual
    assert second in usual


@needs_two
def test_another_process_is_pinned_with_its_threads_and_put_back(either_way):
    usual, pipes = os.sched_getaffinity(0), {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", OTHER], **pipes) as other:
        thread = int(other.stdout.readline())
        with pinning.pinned([min(usual)], pid=other.pid):
            assert os.sched_getaffinity(other.pid) == os.sched_getaffinity(thread) == {min(usual)}
            assert os.sched_getaffinity(0) == usual
        assert os.sched_getaffinity(other.pid) == os.sched_getaffinity(thread) == usual
        other.communicate()


@needs_two
def test_helper_that_ends_while_it_is_pinned_leaves_nothing_to_put_back(either_way):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as other:
        with pinning.pinned(pinning.allowed()[:1], pid=other.pid):
            other.communicate("\n")
        with pytest.raises(pinning.PinningError, match="ended"), pinning.pinned([0], pid=other.pid):
            pytest.fail("it is pinned")


@needs_affinity
@pytest.mark.parametrize(("cpus", "words"), [([], "no CPU at all"), ([4095], "cannot pin process .* to CPU 4095")])
def test_what_cannot_be_is_refused_and_changes_nothing(either_way, cpus, words):
    usual = os.sched_getaffinity(0)
    with pytest.raises(pinning.PinningError, match=words), pinning.pinned(cpus):
        pytest.fail("it is pinned")
    assert os.sched_getaffinity(0) == usual


@needs_two
def test_error_inside_the_block_puts_the_cpus_back(either_way):
    usual = os.sched_getaffinity(0)
    with pytest.raises(ZeroDivisionError), pinning.pinned([min(usual)]):
        raise ZeroDivisionError
    assert os.sched_getaffinity(0) == usual


@needs_affinity
def test_blocks_nest(either_way):
    usual = pinning.allowed()
    with pinning.pinned(usual[-1:]):
        with pinning.pinned(usual[-1:]):
            assert pinning.allowed() == usual[-1:]
        assert pinning.allowed() == usual[-1:]
    assert pinning.allowed() == usual


def test_mac_has_no_way(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert pinning.unavailable() == "macOS has no way to pin a process to a CPU"
    with pytest.raises(pinning.PinningError, match="macOS"), pinning.pinned([0]):
        pytest.fail("it is pinned")
    with pytest.raises(pinning.PinningError, match="macOS"):
        pinning.separate()


def test_windows_needs_psutil_and_says_so(monkeypatch, without_psutil):
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    assert pinning.unavailable() == "pinning on win32 needs psutil, which this build does not have (pip install psutil)"


class WindowsProcess:
    """psutil.Process of a system that knows no affinity of single threads."""

    cpus = (0, 1, 2, 3)
    refuses = False
    forgets = False

    def __init__(self, number):
        assert number == os.getpid()

    def cpu_affinity(self, cpus=None):
        if cpus is None:
            return list(type(self).cpus)
        if self.refuses:
            raise PermissionError(errno.EACCES, "Access is denied")
        if not self.forgets:
            type(self).cpus = tuple(cpus)
        return None


@pytest.fixture
def windows(monkeypatch):
    """Give the process of a Windows machine with four CPUs."""
    process = type("Process", (WindowsProcess,), {})
    fake = types.SimpleNamespace(Process=process, Error=KeyError, NoSuchProcess=LookupError)
    monkeypatch.setitem(sys.modules, "psutil", fake)
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.setattr(os, "listdir", lambda _path: (_ for _ in ()).throw(FileNotFoundError))
    monkeypatch.setattr(cores, "_hyperthreads", lambda _cpu: "")
    return process


def test_windows_is_pinned_by_psutil_as_a_whole(windows):
    assert pinning.unavailable() is None
    assert pinning.separate() == (0, 1, 2, 3)
    with pinning.pinned([2]):
        assert windows.cpus == (2,)
    assert windows.cpus == (0, 1, 2, 3)


def test_refusal_of_the_system_is_an_error_of_ours(windows):
    windows.refuses = True
    with pytest.raises(pinning.PinningError, match="Access is denied"), pinning.pinned([2]):
        pytest.fail("it is pinned")


def test_pinning_that_did_nothing_is_noticed(windows):
    windows.forgets = True
    with pytest.raises(pinning.PinningError, match="was to run on CPU 2, but runs on 0,1,2,3"), pinning.pinned([2]):
        pytest.fail("it is pinned")


@needs_affinity
def test_separate_cpus_are_allowed_ones():
    assert set(pinning.separate()) <= os.sched_getaffinity(0)
    assert pinning.separate()
