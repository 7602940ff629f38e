"""Cases of SubinterpreterExecutor, each for a process of its own: `python cases.py FOLDER CASE ...`."""

import array
import asyncio
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from concurrent import futures
from pathlib import Path
from unittest import mock

from gilscope.runners.errors import TeardownError
from gilscope.runners.executor import BrokenSubinterpreters, SubinterpreterExecutor
from tests.executor import tasks
from tests.patience import PATIENCE, wait_until

OFFSET = 100   # a global that functions of this file name


def helper(number):
    return number + OFFSET


class Mine:
    def __init__(self, number):
        self.number = number

    def plus(self, number):
        return Mine(self.number + number)


def mine(number, plus=1, *, twice=2):
    return twice * (helper(number) + plus) + len(json.dumps([]))


def factorial(number):
    return number * factorial(number - 1) if number else 1


def raised_by(call):
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - whatever it is
        return error
    raise AssertionError("nothing was raised")


def case_calls(_folder):
    with SubinterpreterExecutor(2) as executor:
        assert executor.submit(tasks.square, 7).result(PATIENCE) == 49
        assert executor.submit(tasks.add, 1, other=2).result(PATIENCE) == 3
        mixed = [executor.submit(tasks.add, n, **({"other": n} if n % 2 else {})) for n in range(300)]
        assert [each.result(PATIENCE) for each in mixed] == [n + (n if n % 2 else 10) for n in range(300)]
        assert executor.submit(int, "ff", base=16).result(PATIENCE) == 255
        error = executor.submit(tasks.fail_at, 3, 3).exception(PATIENCE)
        assert type(error) is LookupError
        assert "raise LookupError(number)" in "".join(traceback.format_exception(error))
        assert type(executor.submit(tasks.leave_by_exit).exception(PATIENCE)) is SystemExit
        assert "cannot pickle" in str(executor.submit(tasks.return_lock).exception(PATIENCE))
        assert "pickle" in str(executor.submit(tasks.square, threading.Lock()).exception(PATIENCE))
        good = [executor.submit(tasks.size_of, [n] if n != 50 else [threading.Lock()]) for n in range(100)]
        assert [n for n, each in enumerate(good) if each.exception(PATIENCE)] == [50]
        assert executor.submit(tasks.dig, 500).result(PATIENCE) == 500


def case_map(_folder):
    with SubinterpreterExecutor(2) as executor:
        assert list(executor.map(tasks.square, range(5000))) == [n * n for n in range(5000)]
        assert list(executor.map(tasks.add, range(10), range(10), chunksize=4)) == [2 * n for n in range(10)]
        assert list(executor.map(tasks.square, [])) == []
        results = executor.map(tasks.square, itertools.count(), buffersize=3)
        assert list(itertools.islice(results, 500)) == [n * n for n in range(500)]
        results.close()
        results = executor.map(tasks.fail_at, range(100), [5] * 100)
        assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
        assert type(raised_by(lambda: next(results))) is LookupError
        reading, writing = os.pipe()
        waiting = executor.map(tasks.wait_for, [reading], timeout=0.01)
        assert type(raised_by(lambda: next(waiting))) is TimeoutError
        os.write(writing, b"x")
        for wrong in ({"chunksize": 0}, {"buffersize": 0}):
            assert type(raised_by(lambda wrong=wrong: executor.map(tasks.square, [], **wrong))) is ValueError


def case_functions_of_all_kinds(_folder):
    """Functions of modules and of this script, which each worker runs again, are sent; others are refused by name."""
    with SubinterpreterExecutor(2) as executor:
        assert list(executor.map(mine, range(3))) == [mine(n) for n in range(3)]
        assert executor.submit(mine, 1, 5, twice=3).result(PATIENCE) == mine(1, 5, twice=3)
        assert executor.submit(factorial, 5).result(PATIENCE) == 120
        assert executor.submit(Mine(3).plus, 4).result(PATIENCE).number == 7
        assert list(executor.map(functools.partial(mine, plus=5), range(3))) == [mine(n, 5) for n in range(3)]
        assert list(executor.map(int, ["1", "2"])) == [1, 2]
        growing = [1]
        assert executor.submit(growing.count, 1).result(PATIENCE) == 1
        growing.append(1)
        assert executor.submit(growing.count, 1).result(PATIENCE) == 2      # not as it was then
        free = OFFSET
        refused = raised_by(lambda: executor.submit(lambda n: n + free, 1))
        assert type(refused) is TypeError
        assert "lambda" in str(refused), refused
        assert "put a function at the top level of a module" in str(refused)
        assert isinstance(raised_by(lambda: executor.submit(threading.Lock().acquire).result(PATIENCE)), TypeError)


def case_what_does_not_fit_a_packet(_folder):
    with SubinterpreterExecutor(2) as executor:
        for size in (3000, 4000, 4090, 5000, 70_000, 3_000_000):
            assert executor.submit(tasks.size_of, bytes(size)).result(PATIENCE) == size
            assert len(executor.submit(tasks.many_bytes, size).result(PATIENCE)) == size
            assert list(executor.map(tasks.size_of, [bytes(size)] * 20)) == [size] * 20
            assert [len(each) for each in executor.map(tasks.many_bytes, [size] * 20)] == [size] * 20


def case_buffers(_folder):
    with SubinterpreterExecutor(2) as executor:
        for size in (0, 10, 5000, 100_000, 1_000_000):
            owner = array.array("q", range(size // 8))
            found = executor.submit(tasks.total, memoryview(owner)).result(PATIENCE)
            assert (found[0], found[2:]) == ("memoryview", ("q", sum(owner))), found
            resize(owner)
        data = bytearray(200_000)
        views = [memoryview(data)[:100_000], memoryview(data)[100_000:]]
        assert executor.submit(tasks.add, *[len(each) for each in views]).result(PATIENCE) == 200_000
        assert list(executor.map(tasks.size_of, views * 10)) == [100_000] * 20
        assert executor.submit(tasks.size_of, data=views[0]).result(PATIENCE) == 100_000
        nested = [views[0], {"nested": views[1], "small": views[0][:9]}]
        assert executor.submit(tasks.total_of_all, nested).result(PATIENCE) == 0
        nested.clear()
        error = executor.submit(tasks.total, memoryview(data)[::2]).exception(PATIENCE)
        assert "contiguous" in str(error), error
        assert "no memoryview" in str(executor.submit(tasks.refuse_views, views[0]).exception(PATIENCE))
        views.clear()
        resize(data)


def resize(data):
    """Append when nothing holds a buffer any more (3.14 gives it back between two steps of the main thread)."""
    def is_free():
        try:
            data.append(1)
        except BufferError:
            return False
        return True

    assert wait_until(is_free)


def case_cancel(_folder):
    reading, writing = os.pipe()
    with SubinterpreterExecutor(1) as executor:
        busy = [executor.submit(tasks.wait_for, reading) for _ in range(2)]     # all that may be on its way
        waiting = [executor.submit(tasks.square, n) for n in range(20)]
        called = []
        waiting[3].add_done_callback(called.append)
        assert [each.cancel() for each in waiting[:5]] == [True] * 5
        assert waiting[0].cancel()
        assert called == [waiting[3]]
        assert not busy[0].cancel()
        assert type(raised_by(lambda: waiting[0].result(PATIENCE))) is futures.CancelledError
        done, _ = futures.wait(waiting[:5], PATIENCE)
        assert done == set(waiting[:5])
        os.write(writing, b"xx")
        assert [each.result(PATIENCE) for each in waiting[5:]] == [n * n for n in range(5, 20)]
        assert not waiting[6].cancel()
        assert all(each.cancelled() for each in waiting[:5])


def case_futures(_folder):
    with SubinterpreterExecutor(2) as executor:
        sent = [executor.submit(tasks.square, n) for n in range(2000)]
        assert sorted(each.result() for each in futures.as_completed(sent, PATIENCE)) == [n * n for n in range(2000)]
        assert {each.result() for each in futures.as_completed(sent, PATIENCE)} == {n * n for n in range(2000)}
        assert not futures.wait(sent, PATIENCE).not_done
        seen, all_seen, lock = [], threading.Event(), threading.Lock()

        def look(future):
            with lock:
                seen.append(future.result())
                if len(seen) == 1000:
                    all_seen.set()

        for n in range(1000):
            executor.submit(tasks.square, n).add_done_callback(look)
        assert all_seen.wait(PATIENCE)
        assert sorted(seen) == [n * n for n in range(1000)]
        reading, writing = os.pipe()
        one, got = executor.submit(tasks.wait_for, reading), []
        threads = [threading.Thread(target=lambda: got.append(one.result(PATIENCE))) for _ in range(5)]
        for each in threads:
            each.start()
        assert type(raised_by(lambda: one.result(0.01))) is TimeoutError
        assert one.running()
        os.write(writing, b"x")
        for each in threads:
            each.join(PATIENCE)
        assert got == [b"x"] * 5
        again = executor.submit(tasks.square, 3)
        chained = []
        again.add_done_callback(lambda _: chained.append(executor.submit(tasks.square, 4)))
        assert again.result(PATIENCE) == 9
        while not chained:
            pass
        assert chained[0].result(PATIENCE) == 16

        async def ask():
            loop = asyncio.get_running_loop()
            return await asyncio.gather(loop.run_in_executor(executor, tasks.square, 5),
                                        asyncio.wrap_future(executor.submit(tasks.add, 1)))

        assert asyncio.run(ask()) == [25, 11]


def case_several_callers(_folder):
    with SubinterpreterExecutor(2) as executor:
        found = {}

        def call(name):
            sent = [executor.submit(tasks.square, n) for n in range(2000)]
            found[name] = [each.result(PATIENCE) for each in sent] == [n * n for n in range(2000)] == list(
                executor.map(tasks.square, range(2000)))

        threads = [threading.Thread(target=call, args=(name,)) for name in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(PATIENCE)
        assert found == dict.fromkeys(range(4), True)


def case_each_task_runs_once(folder):
    """Frames that end early, with a failure or as they take too long: nothing is lost or doubled."""
    with SubinterpreterExecutor(2) as executor:
        path = str(folder / "notes")
        list(executor.map(tasks.note, [path] * 2000, range(2000)))     # learns that many fit into a frame
        sent = [executor.submit(tasks.note_or_fail, path, n) for n in range(2000, 4000)]
        assert [n for n, each in enumerate(sent, 2000) if each.exception(PATIENCE)] == [
            n for n in range(2000, 4000) if n % 7 == 3]
        assert sorted(map(int, Path(path).read_text().split())) == list(range(4000))
        assert list(executor.map(tasks.nap_after, range(3000), [2800] * 3000)) == list(range(3000))


def case_undone_tasks_come_back_while_a_caller_takes_others(_folder):
    """A frame ends early at the worst moment: between a caller's look at the first task that waits and its removal."""
    reading, writing = os.pipe()
    with SubinterpreterExecutor(1) as executor:
        dispatcher = executor._dispatcher
        batch = executor._send_batch(tasks.wait_and_fail, [(reading,)] * 2, 2)
        count = dispatcher._count

        def count_late(*args):
            dispatcher._count = count
            os.write(writing, b"x")
            assert wait_until(lambda: batch.results)
            return count(*args)

        dispatcher._count = count_late
        results = executor.map(tasks.square, [3])
        os.write(writing, b"x")
        assert wait_until(lambda: not batch.missing)
        assert list(results) == [9]


def case_shutdown_while_undone_tasks_come_back(_folder):
    reading, writing = os.pipe()
    os.write(writing, b"xx")
    executor = SubinterpreterExecutor(1)
    executor._dispatcher._learn = lambda *_: executor.shutdown(wait=False)     # when the first reply has come
    batch = executor._send_batch(tasks.wait_and_fail, [(reading,)] * 2, 2)
    assert wait_until(lambda: not batch.missing)
    executor.shutdown()
    assert [each.parts[0] for place in (0, 1) for each in batch.results[place]] == ["builtins.LookupError"] * 2


def case_worker_that_ends(_folder):
    """As with processes, all that is unfinished fails, and says why."""
    with SubinterpreterExecutor(2) as executor:
        reading, writing = os.pipe()
        sent = [executor.submit(tasks.spoil_replies), *(executor.submit(tasks.wait_for, reading) for _ in range(9))]
        mapped = executor.map(tasks.wait_for, [reading] * 9)
        sent[0].exception(PATIENCE)
        os.close(writing)
        for each in sent:
            assert isinstance(error := each.exception(PATIENCE), BrokenSubinterpreters), error
            assert "a subinterpreter ended: " in str(error)
            assert "no reply from here" in str(error)
        assert isinstance(raised_by(lambda: next(mapped)), BrokenSubinterpreters)
        assert isinstance(raised_by(lambda: executor.submit(tasks.square, 1)), BrokenSubinterpreters)
        assert isinstance(raised_by(lambda: executor.map(tasks.square, [1])), futures.BrokenExecutor)


def case_what_cannot_be_rebuilt(_folder):
    """Arguments and results whose unpickling fails: their tasks fail, no other."""
    with SubinterpreterExecutor(2) as executor:
        sent = [executor.submit(tasks.size_of, [tasks.Bomb(n in (7, 70))]) for n in range(100)]
        assert [n for n, each in enumerate(sent) if each.exception(PATIENCE)] == [7, 70]
        assert "it goes off" in str(sent[7].exception())
        assert "it goes off" in str(executor.submit(tasks.Bomb, armed=True).exception(PATIENCE))
        error = executor.submit(tasks.needs_readline).exception(PATIENCE)
        assert isinstance(error, ImportError), error
        assert executor.submit(tasks.square, 2).result(PATIENCE) == 4


def case_initializer(_folder):
    with SubinterpreterExecutor(2, initializer=tasks.set_up, initargs=("ready",)) as executor:
        assert {each.result(PATIENCE) for each in [executor.submit(tasks.get_prepared) for _ in range(50)]} == {"ready"}
    error = raised_by(lambda: SubinterpreterExecutor(2, initializer=tasks.refuse_to_start))
    assert type(error) is BrokenSubinterpreters
    assert "not today" in str(error), error
    for wrong in (0, 65):
        assert type(raised_by(lambda wrong=wrong: SubinterpreterExecutor(wrong))) is ValueError


def case_shutdown(_folder):
    reading, writing = os.pipe()
    executor = SubinterpreterExecutor(1)
    sent = [executor.submit(tasks.wait_for, reading), *(executor.submit(tasks.square, n) for n in range(50))]
    executor.shutdown(wait=False)
    assert type(raised_by(functools.partial(executor.submit, tasks.square, 1))) is RuntimeError
    assert type(raised_by(functools.partial(executor.map, tasks.square, [1]))) is RuntimeError
    os.write(writing, b"x")
    assert [each.result(PATIENCE) for each in sent[1:]] == [n * n for n in range(50)]
    executor.shutdown()


def case_shutdown_that_cancels(_folder):
    reading, writing = os.pipe()
    executor = SubinterpreterExecutor(1)
    busy = [executor.submit(tasks.wait_for, reading) for _ in range(2)]
    waiting = [executor.submit(tasks.square, n) for n in range(50)]
    mapped = executor.map(tasks.square, range(10))
    ends = []
    running = threading.Thread(target=lambda: ends.append(raised_by(lambda: executor.run(tasks.square, range(10)))))
    before = len(executor._dispatcher.pending)
    running.start()
    assert wait_until(lambda: len(executor._dispatcher.pending) > before)
    executor.shutdown(wait=False, cancel_futures=True)
    assert all(each.cancelled() for each in waiting)
    running.join(PATIENCE)
    assert isinstance(ends[0], futures.CancelledError)
    assert isinstance(raised_by(lambda: next(mapped)), futures.CancelledError)
    os.write(writing, b"xx")
    assert [each.result(PATIENCE) for each in busy] == [b"x"] * 2
    executor.shutdown()


def case_shutdown_by_a_callback(_folder):
    executor, ended = SubinterpreterExecutor(1), threading.Event()

    def shut_down(_future):
        executor.shutdown()
        ended.set()

    executor.submit(tasks.square, 1).add_done_callback(shut_down)
    assert ended.wait(PATIENCE)
    executor.shutdown()


def case_executor_that_is_dropped(_folder):
    """What was submitted is done, wherever the garbage collector finds it: here on the thread that sends a task."""
    before = threading.active_count()
    sent = [SubinterpreterExecutor(1).submit(tasks.square, 6)]
    with SubinterpreterExecutor(1) as other:
        for number in range(3):
            dropped = SubinterpreterExecutor(1)
            sent.append(dropped.submit(tasks.square, 6))
            dropped.itself = dropped
            del dropped
            assert other.submit(tasks.size_of, tasks.CollectsGarbage(number)).result(PATIENCE) == number
    assert [each.result(PATIENCE) for each in sent] == [36] * 4
    assert wait_until(lambda: threading.active_count() == before)


def case_callback_that_ends_the_collector(_folder):
    """SystemExit in a callback, which `concurrent.futures` does not catch: all fails, nothing hangs."""
    reading, writing = os.pipe()
    with SubinterpreterExecutor(1) as executor:
        first, other = [executor.submit(tasks.wait_for, reading) for _ in range(2)]
        first.add_done_callback(lambda _: sys.exit("no more"))
        os.write(writing, b"xx")
        assert "no more" in str(other.exception(PATIENCE))
    os.close(writing)


def case_many_workers(_folder):
    with SubinterpreterExecutor(24) as executor:
        assert list(executor.map(tasks.square, range(3000))) == [n * n for n in range(3000)]


def case_sockets_in_place_of_packets(_folder):
    """The sockets that systems other than Linux use."""
    with mock.patch.object(sys, "platform", "darwin"):
        executor = SubinterpreterExecutor(2)
    with executor:
        assert list(executor.map(tasks.square, range(5000))) == [n * n for n in range(5000)]
        for size in (3000, 4000, 4090, 5000):
            assert list(executor.map(tasks.size_of, [bytes(size)] * 20)) == [size] * 20


def case_start_method_of_a_script(folder):
    """A script without a main guard does not start executors in executors."""
    script = folder / "script.py"
    script.write_text("from gilscope import SubinterpreterExecutor\ndef one(): return 1\n"
                      "with SubinterpreterExecutor(1) as executor: print(executor.submit(one).exception())\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert "start executors only below `if __name__" in done.stdout, (done.stdout, done.stderr)


def case_nothing_is_left(_folder):
    def counts():
        return len([*Path("/proc/self/fd").iterdir()]), threading.active_count()

    def use():
        with SubinterpreterExecutor(3) as executor:
            list(executor.map(tasks.many_bytes, [5000] * 20))
            list(executor.map(tasks.size_of, [bytes(9000)] * 20))
            executor.submit(tasks.size_of, memoryview(bytes(100_000))).result(PATIENCE)

    use()
    before = counts()
    for _ in range(5):
        use()
    assert counts() == before, (before, counts())


def case_interrupt(_folder):
    reading, writing = os.pipe()
    said, saying = os.pipe()
    with SubinterpreterExecutor(1) as executor:
        busy = executor.submit(tasks.say_and_wait, saying, reading)
        sender = threading.Thread(target=lambda: (os.read(said, 1), os.kill(os.getpid(), signal.SIGINT)))

        def wait():
            sender.start()
            while not futures.wait([busy], 0.05).done:   # a signal just before a lock is waited for wakes nobody
                pass

        assert type(raised_by(wait)) is KeyboardInterrupt
        os.write(writing, b"x")
        assert busy.result(PATIENCE) == b"x"
        assert executor.submit(tasks.square, 2).result(PATIENCE) == 4


def case_interrupts_while_it_submits(_folder):
    """Whatever KeyboardInterrupt cuts short, what was submitted is done."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    with SubinterpreterExecutor(2) as executor:
        for number in range(1, 101):
            sent = []
            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, number * 2e-5)
                    # Not for ever: the callback of a weak reference may swallow the interrupt.
                    for _ in range(20_000):
                        sent.append(executor.submit(tasks.square, number))  # noqa: PERF401 - some, if interrupted
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            assert {each.result(PATIENCE) for each in sent} <= {number * number}


def case_deadline(_folder):
    reading, writing = os.pipe()
    executor = SubinterpreterExecutor(1)
    busy = executor.submit(tasks.wait_for, reading)
    error = raised_by(lambda: executor.stop(0.1))
    assert type(error) is TeardownError
    assert "1 of 1 subinterpreters did not end" in str(error)
    os.write(writing, b"x")
    assert busy.result(PATIENCE) == b"x"
    executor.shutdown()


def main(folder, *cases):
    for case in cases or [name.removeprefix("case_") for name in globals() if name.startswith("case_")]:
        print(json.dumps({"case": case}), flush=True)
        try:
            globals()[f"case_{case}"](Path(folder))
            error = None
        except BaseException:  # noqa: BLE001 - the other cases are tried, too
            error = traceback.format_exc()
        print(json.dumps({"case": case, "error": error}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
