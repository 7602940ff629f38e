"""Call the user's function from several threads at once; the race checker runs this file as a script.

The main thread imports the function's module, as in a program.  The first calls are made by the threads, because state
that the first call creates may be created twice.
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
CALLS = os.path.join(HERE, "..", "..", "..", "measure", "child", "calls.py")
LEAST_CALLS = 2        # by each thread: the second call finds the state that the first has left
MOST_CALLS = 25
SECONDS = 4.0          # after which a thread makes no further calls
LONG = 20.0            # the same for a thread that has made only one call


def _calls() -> ModuleType:
    """Load our module by its path: nothing of gilscope is on the program's path."""
    spec: Any = importlib.util.spec_from_file_location("gilscope_calls", os.path.normpath(CALLS))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class CallingThread(threading.Thread):
    """A thread and its calls."""

    def __init__(self, number: int, name: str, calls: ModuleType, meeting: threading.Barrier, wanted: int = 0) -> None:
        """Set up; each thread looks up `name`, so that threads share only what the program shares.

        Args:
            number: Of the thread.
            name: Of the function.
            calls: The module with the rules for functions that are called.
            meeting: Where the threads begin and end together.
            wanted: Number of calls to make; 0 for at most MOST_CALLS in SECONDS.
        """
        super().__init__(name=f"caller {number}", daemon=True)   # a hanging thread must not delay the report
        self.made = 0
        self.seen = 0.0     # duration of its longest call
        self.results: set[str | None] = set()
        self.failure: BaseException | None = None
        self._name = name
        self._wanted = wanted
        self._calls = calls
        self._meeting = meeting

    def run(self) -> None:
        """Call the function while the others do, and wait for them: accesses of an ended thread would be ordered."""
        self._meeting.wait()
        try:
            self._call()
        except BaseException as error:  # noqa: BLE001  the main thread reports it
            self.failure = error
        self._meeting.wait()

    def _call(self) -> None:
        function = self._calls.function_called(self._name)
        began = time.monotonic()
        while self._goes_on(time.monotonic() - began):
            before = time.monotonic()
            result = function()
            self.seen = max(self.seen, time.monotonic() - before)
            self._calls.refuse_unawaited(self._name, result)
            self.results.add(self._calls.shown(result))
            self.made += 1

    def _goes_on(self, seconds: float) -> bool:
        """Return True if another call is to be made after these seconds."""
        if self._wanted or not self.made:
            return self.made < max(1, self._wanted)
        return self.made < MOST_CALLS and seconds < (LONG if self.made < LEAST_CALLS else SECONDS)


def differing(function: Any, callers: list[CallingThread], left: float, shown: Any) -> list[str]:
    """Return the function's results in threads and in the main thread if each is constant and they differ.

    Results that vary between calls cannot be compared.  `shown` returns a text for a result.
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


def main(name: str, count: int, told: str, limit: float, wanted: int) -> None:
    """Call the function "package.module:name" from `count` threads; write the number of calls into the file `told`.

    Each thread makes `wanted` calls, or if it is 0 as many as fit.  After `limit` seconds the process ends, whatever
    the threads do: the races observed by then are known.
    """
    end = time.monotonic() + limit
    calls = _calls()
    function = calls.function_called(name)
    meeting = threading.Barrier(count)
    callers = [CallingThread(number, name, calls, meeting, wanted) for number in range(1, count + 1)]
    for each in callers:
        each.start()
    for each in callers:
        each.join(max(0.0, end - time.monotonic()))
    done = not any(each.failure is not None or each.is_alive() for each in callers)
    # Last, because whatever the first calls create, the threads must create.
    other = differing(function, callers, end - time.monotonic(), calls.shown) if done else []
    with open(told, "w", encoding="ascii") as file:
        json.dump({"calls": sum(each.made for each in callers), "differs": other}, file)
    for each in callers:
        if each.failure is not None:
            raise each.failure
    if any(each.is_alive() for each in callers):
        os._exit(0)


if __name__ == "__main__":
    if sys.path and os.path.abspath(sys.path[0]) == HERE:
        del sys.path[0]   # our folder is not the program's
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4]), int(sys.argv[5]))
