"""Calls the user's function from several threads at once; the race checker runs this as a script.

The module of the function is imported by the main thread, as in a program; the first calls are made by the threads, as
what is made at the first call may be made twice.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
CALLS = os.path.join(HERE, "..", "..", "workload", "programs", "calls.py")
LEAST_CALLS = 2        # of each thread: the second finds what the first has left
MOST_CALLS = 25
SECONDS = 4.0          # from which on a thread makes no further calls
LONG = 20.0            # likewise, though it has made but one


def _calls() -> ModuleType:
    """Return our module that finds the function, by its file: nothing of gilscope is on the program's path."""
    spec: Any = importlib.util.spec_from_file_location("gilscope_calls", os.path.normpath(CALLS))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Caller(threading.Thread):
    """One thread and its calls."""

    def __init__(self, number: int, name: str, calls: ModuleType, meeting: threading.Barrier) -> None:
        """`name` is looked up by each, so that threads share no more than the program lets them."""
        super().__init__(name=f"caller {number}", daemon=True)   # one that hangs keeps no report back
        self.made = 0
        self.seen = 0.0     # seconds that its longest call took
        self.results: set[str | None] = set()
        self.failure: BaseException | None = None
        self._wanted = name
        self._calls = calls
        self._meeting = meeting

    def run(self) -> None:
        """Make the calls, together with the others, and stay until all have: an ended thread's are in the past."""
        self._meeting.wait()
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001  told by the main thread
            self.failure = error
        self._meeting.wait()

    def _call(self) -> None:
        function = self._calls.function_called(self._wanted)
        began = time.monotonic()
        while not self.made or (self.made < MOST_CALLS
                                and time.monotonic() - began < (LONG if self.made < LEAST_CALLS else SECONDS)):
            before = time.monotonic()
            result = function()
            self.seen = max(self.seen, time.monotonic() - before)
            self._calls.refuse_unawaited(self._wanted, result)
            self.results.add(self._calls.shown(result))
            self.made += 1


def otherwise(function: Any, callers: list[Caller], left: float, shown: Any) -> list[str]:
    """Return what the function gives in threads, and what in the main thread, where each is one thing and they differ.

    One that gives something else at each call cannot be compared.  `shown` returns what stands for a result.
    """
    results = {each for caller in callers for each in caller.results}
    if len(results) != 1 or None in results or 2 * max(each.seen for each in callers) > left:
        return []
    try:
        here = {shown(function()) for _ in range(2)}
    except Exception:  # noqa: BLE001 - the workload's own affair
        return []
    if len(here) != 1 or None in here or here == results:
        return []
    return [str(each) for each in (*results, *here)]


def main(name: str, count: int, told: str, limit: float) -> None:
    """Call the function "package.module:name" from `count` threads; write into the file `told` how often.

    After `limit` seconds the process ends, whatever the threads do: races that were seen are known by then.
    """
    end = time.monotonic() + limit
    calls = _calls()
    function = calls.function_called(name)
    meeting = threading.Barrier(count)
    callers = [Caller(number, name, calls, meeting) for number in range(1, count + 1)]
    for each in callers:
        each.start()
    for each in callers:
        each.join(max(0.0, end - time.monotonic()))
    done = not any(each.failure is not None or each.is_alive() for each in callers)
    # When all else is done: what the first calls make, threads make.
    other = otherwise(function, callers, end - time.monotonic(), calls.shown) if done else []
    with open(told, "w", encoding="ascii") as file:
        json.dump({"calls": sum(each.made for each in callers), "otherwise": other}, file)
    for each in callers:
        if each.failure is not None:
            raise each.failure
    if any(each.is_alive() for each in callers):
        os._exit(0)


if __name__ == "__main__":
    if sys.path and os.path.abspath(sys.path[0]) == HERE:
        del sys.path[0]   # our folder is none of the program's
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4]))
