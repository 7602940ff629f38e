"""What orders nothing, how modules come to be patched, signals and forks."""

import contextlib
import datetime
import io
import logging
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import traceback

import pytest

from gilscope.toolkit.race import sync
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE, wait_until
from tests.race.sync.layer import CORES, installed, level_in
from tests.race.sync.test_primitives import in_turn


def run_python(source):
    """Run a program in a fresh interpreter, where nothing is imported that it does not import; return its output."""
    done = subprocess.run([sys.executable, "-c", source], cwd=ROOT, text=True, timeout=PATIENCE, check=False,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# -- what orders nothing -------------------------------------------------------------------------------------------


@pytest.fixture
def logger():
    logger = logging.Logger("a logger of the test")  # noqa: LOG001  known to nobody else
    yield logger
    for handler in logger.handlers:
        handler.close()


def test_logging_orders_nothing(core, logger):
    logger.addHandler(logging.StreamHandler(io.StringIO()))
    in_turn(*[lambda: (core.write("x"), logger.warning("line"), core.write("y"))] * 2)
    assert core.raced == {"x", "y"}


def test_module_that_is_checked_relies_on_its_locks():
    with installed(is_checked=lambda name, _path: name == "logging") as core:
        logger = logging.Logger("a logger of the test")  # noqa: LOG001  known to nobody else
        logger.addHandler(logging.StreamHandler(io.StringIO()))
        in_turn(*[lambda: (logger.warning("line"), core.write("x"), logger.warning("line"))] * 2)
        assert not core.raced


def test_handler_of_the_program_may_rely_on_its_lock(core, logger):
    class Counting(logging.Handler):
        def emit(self, record):
            core.write("count")

    logger.addHandler(Counting())
    in_turn(*[lambda: logger.warning("line")] * 2)
    assert not core.raced


def test_stream_and_formatter_of_the_program_may_rely_on_the_handlers_lock(core, logger):
    class Stream:
        def write(self, text):
            core.write("stream")

    class Format(logging.Formatter):
        def format(self, record):
            core.write("format")
            return "text"

    handler = logging.StreamHandler(Stream())
    logger.addHandler(handler)
    in_turn(*[lambda: logger.warning("line")] * 2)
    handler.setStream(io.StringIO())
    handler.setFormatter(Format())
    in_turn(*[lambda: logger.warning("line")] * 2)
    assert not core.raced


def test_what_is_logged_may_take_its_own_lock(core, logger):
    logger.addHandler(logging.StreamHandler(io.StringIO()))

    class Account:
        lock = threading.Lock()

        def __str__(self):
            with self.lock:
                core.write("balance")
            return "account"

    in_turn(*[lambda: logger.warning("%s", Account())] * 2)
    assert not core.raced


def test_caches_of_the_library_order_nothing(core):
    in_turn(*[lambda: (datetime.datetime.strptime("2026", "%Y"), core.write("x"))] * 2)  # noqa: DTZ007
    assert core.raced == {"x"}


def test_print_orders_nothing(core, capsys):
    in_turn(*[lambda: (print("line"), core.write("x"))] * 2)
    assert core.raced == {"x"}


# -- modules imported later ----------------------------------------------------------------------------------------

START = "from tests.race.fakes.core import FakeCore; import gilscope.toolkit.race.sync as sync, sys\n"


def test_nothing_is_imported_for_the_program():
    wanted = "{'queue', 'concurrent.futures', 'asyncio', 'logging', 'multiprocessing', 'signal', 'typing', 'threading'}"
    assert run_python(
        "import sys, gilscope.toolkit.race.sync as sync\n"
        "class Core:\n"
        "  def __getattr__(self, name): return lambda *a, **k: (lambda *a: None)\n"
        f"sync.install(Core()); print(sorted({wanted} & set(sys.modules)))") == "[]\n"


@pytest.mark.parametrize(("module", "check"), [
    ("threading", "threading.Event.set"), ("queue", "queue.Queue.put"), ("asyncio", "asyncio.events.Handle._run"),
    ("concurrent.futures", "concurrent.futures.Future.result"), ("concurrent.futures", "concurrent.futures.wait"),
    ("concurrent.futures", "concurrent.futures.ThreadPoolExecutor.submit"),
    ("asyncio", "asyncio.base_events.BaseEventLoop.call_soon_threadsafe"),
    ("logging", "logging.Handler.createLock"), ("signal", "signal.signal"),
])
def test_module_is_patched_when_it_is_imported_and_as_before_after_undo(module, check):
    assert run_python(
        f"{START}undo = sync.install(FakeCore()); import {module}\n"
        f"wrapped = {check}.__wrapped__; undo(); assert {check} is wrapped\n"
        f"module = sys.modules['{module}']\n"
        "print(type(module.__spec__.loader).__name__, type(module.__loader__).__name__)\n"
        "assert not any(type(finder).__name__ == 'Later' for finder in sys.meta_path)",
    ) == "SourceFileLoader SourceFileLoader\n"


def test_spec_of_a_module_not_imported_answers_as_the_real_one():
    assert run_python(
        f"{START}import importlib.util; sync.install(FakeCore()); sys.modules.pop('queue', None)\n"
        "spec = importlib.util.find_spec('queue')\n"
        "print(spec.origin.endswith('queue.py'), spec.loader.is_package('queue'),"
        " 'deque' in spec.loader.get_source('queue'))",
    ) == "True False True\n"


def test_reloaded_module_is_patched_again():
    assert run_python(
        f"{START}import importlib, queue; sync.install(FakeCore()); importlib.reload(queue)\n"
        "print(hasattr(queue.Queue.put, '__wrapped__'))") == "True\n"


def test_finder_that_fails_to_find_leaves_import_error_as_it_is():
    with installed(), pytest.raises(ModuleNotFoundError, match="No module named"):
        import queue.nothing  # noqa: F401


# -- signals -------------------------------------------------------------------------------------------------------


def test_handler_that_interrupts_a_primitive_is_the_programs_code(core):
    event, levels = threading.Event(), []   # event.set() in the handler would wait for the lock that it interrupts

    def interrupt():
        assert wait_until(lambda: event._cond._waiters)
        # More than one: the first may come between the last look for signals and the sleep that it would have ended.
        assert wait_until(lambda: levels or signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1))
        event.set()

    earlier = signal.signal(signal.SIGUSR1, lambda *_: levels.append(level_in(core)))
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        assert event.wait(PATIENCE)
    finally:
        thread.join()   # no signal comes after the handler
        signal.signal(signal.SIGUSR1, earlier)
    assert set(levels) == {0}


@pytest.mark.parametrize("make", CORES.values(), ids=CORES)
def test_handler_that_runs_while_it_is_installed_finds_itself(make, monkeypatch):
    found = []
    install, earlier = signal.signal, signal.getsignal(signal.SIGUSR1)

    def handler(*_):
        found.append(signal.getsignal(signal.SIGUSR1))

    def install_and_interrupt(number, ours):
        before = install(number, ours)
        signal.raise_signal(number)
        return before

    monkeypatch.setattr(signal, "signal", install_and_interrupt)
    try:
        with installed(make()):
            signal.signal(signal.SIGUSR1, handler)
    finally:
        install(signal.SIGUSR1, earlier)
    assert set(found) == {handler}


def test_handlers_that_are_no_functions_stay_what_they_are(core):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    earlier = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    signal.signal(signal.SIGUSR1, earlier)
    with pytest.raises(TypeError):
        signal.signal(signal.SIGUSR1, "text")


def test_handler_is_the_programs_own_again_after_undo():
    earlier = signal.getsignal(signal.SIGUSR1)
    handler = lambda number, frame: None
    try:
        with installed():
            signal.signal(signal.SIGUSR1, handler)
        assert signal.getsignal(signal.SIGUSR1) is handler
    finally:
        signal.signal(signal.SIGUSR1, earlier)


# -- fork ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def child_of_a_fork():
    """End this process with the block, which exits by itself if all is well: after a failure, too, no test goes on."""
    signal.alarm(int(PATIENCE))     # its default action ends a child that hangs
    try:
        yield
    except BaseException:  # noqa: BLE001  SystemExit, too
        traceback.print_exc()
    finally:
        os._exit(99)


# A thread may hold the lock of a dictionary when another one forks, which nobody gives back in the child: until 3.13
# always, since then sometimes (github.com/python/cpython/issues/144513).
@pytest.mark.skipif(bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
                    reason="a fork without the GIL leaves locks held")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_child_of_a_fork_amid_busy_threads_goes_on(core, recwarn):
    import logging as log
    import queue
    items, stop = queue.Queue(), threading.Event()
    logger = log.Logger("busy")  # noqa: LOG001  known to nobody else
    logger.addHandler(log.StreamHandler(io.StringIO()))

    def work():
        while not stop.is_set():
            items.put(1)
            logger.warning("line")
            items.get()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        child = os.fork()
        if not child:
            with child_of_a_fork():
                logger.warning("line")
                threading.Thread(target=logger.warning, args=("line",)).start()
                threading.enumerate()
                os._exit(0 if level_in(core) == 0 else 1)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_core_is_told_of_the_child():
    output = run_python(
        f"{START}import threading, os, warnings; warnings.simplefilter('ignore')\n"
        "core = FakeCore(); sync.install(core)\n"
        "thread = threading.Thread(target=lambda: (event.wait(), None)); event = threading.Event(); thread.start()\n"
        "child = os.fork()\n"
        "if not child: print(len(core.threads), type(threading._active_limbo_lock).__name__, flush=True); os._exit(0)\n"
        "os.waitpid(child, 0); print(len(core.threads), type(threading._active_limbo_lock).__name__); event.set()")
    assert output == "1 UntrackedLock\n2 UntrackedLock\n"


# -- the rest of the library ---------------------------------------------------------------------------------------


def test_programs_around_the_library_run_as_before():
    program = (
        f"{START}sync.install(FakeCore())\n"
        "import http.server, sched, socketserver, subprocess, threading, time, urllib.request, multiprocessing\n"
        "class Quiet(http.server.SimpleHTTPRequestHandler):\n"
        "  def log_message(self, *arguments): pass\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Quiet)\n"
        "thread = threading.Thread(target=server.serve_forever); thread.start()\n"
        "opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))\n"
        "print(opener.open(f'http://127.0.0.1:{server.server_port}/pyproject.toml').status)\n"
        "server.shutdown(); server.server_close(); thread.join()\n"
        "scheduler = sched.scheduler(); scheduler.enter(0, 1, print, ('scheduled',)); scheduler.run()\n"
        "print(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True, text=True).stdout.strip())\n"
        "if __name__ == '__main__':\n"
        "  context = multiprocessing.get_context('fork')\n"
        "  with context.Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n"
        "  items = context.Queue(); items.put(3); print(items.get()); items.close(); items.join_thread()\n"
        "  from concurrent.futures import ProcessPoolExecutor\n"
        "  with ProcessPoolExecutor(1, mp_context=context) as pool: print(pool.submit(abs, -4).result())\n")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=ROOT, text=True, check=False,
                          capture_output=True, timeout=PATIENCE)
    assert (done.stdout, done.stderr) == ("200\nscheduled\n1\n[1, 2]\n3\n4\n", "")


def test_atexit_comes_after_threads_that_ended_by_themselves():
    assert run_python(
        f"{START}core = FakeCore(); sync.install(core)\n"
        "import atexit, threading\n"
        "atexit.register(lambda: (core.write('x'), print(core.raced)))\n"
        "threading.Thread(target=core.write, args=('x',)).start()") == "set()\n"


def test_describing_without_a_layer_is_possible():
    assert sync.describe(12345) == ("thread 12345", ())
