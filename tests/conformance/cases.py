"""What every pool must do: python cases.py RUNNER CASE ... tries cases one after the other in one process.

It prints a line of JSON when a case begins, so that a crash has a name, and one when it has ended; or one line that
says why this Python does not have the runner.
"""

import gc
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import traceback
from concurrent.futures import BrokenExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from gilscope.runners import _teardown, _worker, processes
from gilscope.runners.catalog import RUNNERS, find
from gilscope.runners.errors import TeardownError, WorkerError
from tests.conformance import tasks
from tests.executor.tasks import spoil_replies
from tests.patience import wait_until

WORKERS = 2
IN_PROCESS = {"serial", "threads", "free-threaded", "asyncio"}  # nothing travels, so nothing must pickle
INTERPRETERS = {"subinterpreters", "interpreter-pool"}
PROCESSES = {"processes-spawn", "processes-forkserver", "processes-fork"}
APART = {*PROCESSES, "dask"}             # each worker a process of its own
DASK = {"dask", "dask-threads"}          # which keep threads of their own for as long as the process lives
# The runners of a case that is not for all of them.
ONLY = {
    "exception_that_cannot_be_rebuilt": {"subinterpreters"},   # the standard pools break, or hand it over
    "task_without_a_name": {"subinterpreters"},                # the standard pools say so themselves
    "deep_recursion": {"subinterpreters"},                     # the stack is the model's own
    "loop_ends": {"subinterpreters"},                          # only our interpreters have a loop of ours
    "interpreter_cannot_start": INTERPRETERS,
    "async_form": {runner.name for runner in RUNNERS if runner.awaits},
    "worker_dies": APART,                                      # the others' workers die with this process
    "unpicklable_result": INTERPRETERS | APART,                # of the others nothing is pickled
    "unpicklable_payload": INTERPRETERS | APART | DASK,
    "thread_left_behind": INTERPRETERS | APART,                # of the others it is not the pool's
    "every_worker_is_up": {"threads", "free-threaded"} | INTERPRETERS | APART | DASK,   # not of one thread
    # No common descriptors in processes; every_worker_is_up covers them.
    "workers_run_together": {"threads", "free-threaded", "dask-threads"} | INTERPRETERS,
}
# The runners for which a case needs a process of its own: it kills, it leaves something behind, it counts what is left,
# or it needs a main interpreter that has imported nothing.
ALONE = {
    "worker_dies": APART, "thread_left_behind": INTERPRETERS | APART, "stdlib_inside": INTERPRETERS,
    "workers_import_together": INTERPRETERS, "nothing_leaks": {*IN_PROCESS, *INTERPRETERS, *PROCESSES, *DASK},
}


def cases_of(name):
    """Return the cases of a runner: those that share a process, and those that need one each."""
    cases = [case.removeprefix("case_") for case in globals() if case.startswith("case_")]
    mine = [case for case in cases if name in ONLY.get(case, {name})]
    alone = [case for case in mine if name in ALONE.get(case, ())]
    return [case for case in mine if case not in alone], alone


def open_pool(runner, shared=None):
    return runner.pool(1 if runner.name == "serial" else WORKERS, shared)


def raised_by(call):
    """Return what a call raises; fail when it raises nothing."""
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - SystemExit is one of the cases
        return error
    raise AssertionError("nothing was raised")


def text_of(error):
    return "".join(traceback.format_exception(error))


def case_results_in_order(runner):
    with open_pool(runner) as pool:
        assert pool.map(tasks.uneven, range(40)) == list(range(40))


def case_three_maps_in_a_row(runner):
    with open_pool(runner) as pool:
        for start in (0, 10, 20):
            assert pool.map(tasks.square, range(start, start + 9)) == [n * n for n in range(start, start + 9)]
        assert pool.map(tasks.square, []) == []
        assert pool.map(tasks.square, [3]) == [9]


def case_exception_has_its_traceback(runner):
    with open_pool(runner) as pool:
        error = raised_by(lambda: pool.map(tasks.divide_by, [1, 0, 2]))
        assert type(error) is ZeroDivisionError, error
        assert "the line a traceback must show" in text_of(error), text_of(error)
        assert pool.map(tasks.square, [4, 5]) == [16, 25]  # still usable


def case_first_exception_wins(runner):
    with open_pool(runner) as pool:
        error = raised_by(lambda: pool.map(tasks.divide_by, [2, "text", 0, 1]))
        assert type(error) is TypeError, error


def case_system_exit_is_an_exception(runner):
    with open_pool(runner) as pool:
        assert type(raised_by(lambda: pool.map(tasks.raise_system_exit, [0]))) is SystemExit
        assert pool.map(tasks.square, [4, 5]) == [16, 25]


def case_unpicklable_exception(runner):
    with open_pool(runner) as pool:
        error = raised_by(lambda: pool.map(tasks.raise_locked, [0]))
        if runner.name in IN_PROCESS:
            assert type(error) is tasks.LockedError
        if runner.name == "subinterpreters":
            assert type(error) is WorkerError
            assert "LockedError" in str(error)
            assert "raise LockedError" in text_of(error)
        assert pool.map(tasks.square, [4, 5]) == [16, 25]


def case_exception_that_cannot_be_rebuilt(runner):
    with open_pool(runner) as pool:
        error = raised_by(lambda: pool.map(tasks.raise_picky, [0]))
        assert type(error) is WorkerError
        assert "PickyError" in str(error)
        assert pool.map(tasks.square, [4, 5]) == [16, 25]


def case_unpicklable_result(runner):
    with open_pool(runner) as pool:
        assert isinstance(raised_by(lambda: pool.map(tasks.return_lock, [0])), Exception)
        assert pool.map(tasks.square, [4, 5]) == [16, 25]


def case_unpicklable_payload(runner):
    with open_pool(runner) as pool:
        assert isinstance(raised_by(lambda: pool.map(tasks.identity, [1, threading.Lock(), 2])), Exception)
        assert pool.map(tasks.square, [4, 5]) == [16, 25]


def case_task_without_a_name(runner):
    with open_pool(runner) as pool:
        assert "lambda" in str(raised_by(lambda: pool.map(lambda payload: payload, [0])))


def case_big_payloads(runner):
    block = bytes(range(256)) * (256 * 1024)  # 64 MiB
    with open_pool(runner) as pool:
        for result in pool.map(tasks.identity, [block, block]):
            assert result == block


def case_worker_dies(runner):
    for death in (tasks.exit_at_once, tasks.kill_self):
        with open_pool(runner) as pool:
            error = raised_by(lambda pool=pool, death=death: pool.map(death, [0]))
            assert isinstance(error, BrokenProcessPool) or type(error).__name__ == "KilledWorker", error
        assert not multiprocessing.active_children()


def case_loop_ends(runner):
    with runner.pool(1) as pool:
        error = raised_by(lambda: pool.map(spoil_replies, [0]))
        assert isinstance(error, BrokenExecutor), error
        assert "a subinterpreter ended" in str(error)
        assert "a subinterpreter ended" in str(raised_by(lambda: pool.map(tasks.square, [1])))


def case_interpreter_cannot_start(runner):
    path, sys.path[:] = sys.path[:], ["/nowhere"]
    try:
        error = raised_by(lambda: open_pool(runner).__enter__())
    finally:
        sys.path[:] = path
    assert isinstance(error, Exception), error
    assert threading.active_count() == 1


def case_thread_left_behind(runner):
    _teardown.CLOSE_SECONDS = 1.0

    def leave():
        with open_pool(runner) as pool:
            assert pool.map(tasks.leave_thread_behind, [0, 1]) == ["left", "left"]

    if runner.name in INTERPRETERS:
        error = raised_by(leave)
        assert type(error) is TeardownError, error
        assert "left a thread behind" in str(error)
    else:
        leave()
        assert not multiprocessing.active_children()


def case_body_raises(runner):
    def fail():
        with open_pool(runner) as pool:
            pool.map(tasks.square, [1])
            raise LookupError("from the body")

    error = raised_by(fail)
    assert type(error) is LookupError
    assert not getattr(error, "__notes__", [])
    assert not multiprocessing.active_children()
    assert runner.name in DASK or threading.active_count() == 1, threading.enumerate()


def case_every_worker_is_up(runner):
    if runner.name in APART:
        with open_pool(runner) as pool:
            up = {process.pid for process in multiprocessing.active_children()}
            states = pool.map(_worker.gil_state, [None] * WORKERS)
            assert {pid for _, pid in states} == up
            assert len(up) == WORKERS
    elif runner.name == "dask-threads":
        with open_pool(runner) as pool:   # they wait for each other
            assert len(pool.map(_worker.gil_state, [None] * WORKERS)) == WORKERS
            assert sum("Dask-Default" in thread.name for thread in threading.enumerate()) == WORKERS
    else:
        with open_pool(runner):
            assert threading.active_count() == 1 + WORKERS + (runner.name == "subinterpreters")   # its collector


def case_gil_state(runner):
    expected = getattr(sys, "_is_gil_enabled", lambda: None)()
    with open_pool(runner) as pool:
        states = pool.map(_worker.gil_state, [None] * (1 if runner.name == "serial" else WORKERS))
    assert [state for state, _ in states] == [expected] * len(states)


def case_workers_run_together(runner):
    """Each of two tasks waits for the other: they end only when both run at once."""
    (here, there), (back, forth) = os.pipe(), os.pipe()
    with open_pool(runner) as pool:
        from tests.conformance import meeting
        assert pool.map(meeting.meet, [(there, back), (forth, here)]) == ["met", "met"]


def case_shared(runner):
    users = {
        "dict": (tasks.add_to_dict, tasks.read_items, list(range(50))),
        "list": (tasks.add_to_list, tasks.read_items, [*range(50), 49]),
        "object": (tasks.set_value, tasks.read_value, 49),
    }
    for kind in sorted(runner.shares - {"counter"}):
        change, read, expected = users[kind]
        with open_pool(runner, kind) as pool:
            pool.map(change, range(50))
            pool.map(change, [49])
            assert pool.map(read, [None]) == [expected], kind
    if "counter" in runner.shares:
        with open_pool(runner, "counter") as pool:
            pool.map(tasks.add_to_counter, [500] * 8)
            assert pool.map(tasks.read_value, [None]) == [500 * 8]
    for kind in {"counter", "dict", "list", "object"} - runner.shares:
        assert "cannot share" in str(raised_by(lambda kind=kind: open_pool(runner, kind).__enter__()))


def case_async_form(runner):
    with open_pool(runner) as pool:
        assert pool.map(tasks.square_later, range(9)) == [n * n for n in range(9)]


def case_stdlib_inside(runner):
    with open_pool(runner) as pool:
        assert pool.map(tasks.use_stdlib, [0, 1, 2]) == [("e3b0", 7, "3.0", "2000-01-01")] * 3
        if not runner.awaits:
            assert pool.map(tasks.use_asyncio, [2, 3, 4]) == [4, 9, 16]


def case_workers_import_together(runner):
    """Two interpreters that import `datetime` at once crash 3.13 in most runs unless the main one had it first."""
    with open_pool(runner) as pool:
        for name in ("datetime", "sqlite3", "decimal", "ssl", "json", "asyncio"):
            pool.map(tasks.import_module, [name] * WORKERS)


def case_deep_recursion(runner):
    with open_pool(runner) as pool:
        assert pool.map(tasks.recurse_in_c, [0, 1]) == ["RecursionError"] * 2


def case_nothing_leaks(runner):
    def leftovers():
        wait_until(lambda: len(list(Path("/proc/self/task").iterdir())) == threading.active_count())
        gc.collect()  # without the GIL what another thread let go of last stays until its owner comes round
        folders = [Path("/proc/self/fd"), Path(tempfile.gettempdir())]  # a temporary folder of our own
        counts = [len(list(folder.iterdir())) for folder in folders]
        return *counts, threading.active_count(), len(multiprocessing.active_children())

    def use_one():
        with open_pool(runner) as pool:
            pool.map(tasks.square, range(4))

    for _ in range(2):  # the fork server, the resource tracker and imported modules stay
        use_one()
    before = leftovers()
    for _ in range(6):
        use_one()

    def none_grew():
        return all(now <= then for now, then in zip(leftovers(), before, strict=True))

    if runner.name in DASK:   # its threads are told to end, not waited for: one of `before` may have ended since
        wait_until(none_grew)
    assert none_grew(), (before, leftovers())


def main(name, *cases):
    runner = find(name)
    if reason := runner.unavailable():
        print(json.dumps({"unavailable": reason}))
        return
    # However late the machine lets workers end that do end.
    _teardown.CLOSE_SECONDS, processes.KILLED_SECONDS = 300.0, 120.0
    for case in cases:
        print(json.dumps({"case": case}), flush=True)
        try:
            globals()[f"case_{case}"](runner)
            error = None
        except BaseException:  # noqa: BLE001 - the other cases are tried, too
            error = traceback.format_exc()
        print(json.dumps({"case": case, "error": error}), flush=True)
    if "thread_left_behind" in cases:
        os._exit(0)  # as TeardownError says


if __name__ == "__main__":
    main(*sys.argv[1:])
