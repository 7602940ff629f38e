"""A pytest plugin that runs each test in several threads at once, with pytest-run-parallel or by simpler rules.

Imports nothing of gilscope, since it runs in the process of a project's own tests.  Tests that cannot run in threads
are listed with the reason.
"""

from __future__ import annotations

import functools
import json
import os
import threading

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

THREADS = int(os.environ.get("GILSCOPE_AT_ONCE", "0"))
THEIRS = "_run-parallel"    # name of pytest-run-parallel's plugin
# These fixtures change state of the whole process, which threads would see of each other.
UNSAFE_FIXTURES = {"capsys", "capteesys", "capsysbinary", "capfd", "capfdbinary", "monkeypatch", "recwarn"}
UNSAFE_MARKS = ("thread_unsafe", "parallel_threads", "asyncio", "anyio")

together: set[str] = set()
alone: dict[str, str] = {}
failing: list[str] = []


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Configure pytest-run-parallel, if it is installed, before it reads its options."""
    if hasattr(config.option, "parallel_threads"):
        config.option.parallel_threads = str(THREADS)
        config.option.ignore_gil_enabled = True   # the witness checks the GIL
    config.addinivalue_line("markers", "thread_unsafe: mark the test function as single-threaded")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Take over the selection of pytest-run-parallel, or select the tests to run in threads."""
    theirs = session.config.pluginmanager.get_plugin(THEIRS)
    if theirs is not None:
        together.update(theirs.run_in_parallel)
        alone.update({name: str(why) for name, why in theirs.thread_unsafe.items()})
        return
    for item in session.items:
        if reason := _reason(item):
            alone[item.nodeid] = reason
        else:
            item.obj = _in_threads(item.obj)   # type: ignore[attr-defined]  # a Function has it
            together.add(item.nodeid)


def _reason(item: pytest.Item) -> str:
    """Return why a test must run in one thread; "" if it can run in several."""
    if type(item) is not pytest.Function:
        return "is no plain function"
    if item.cls is not None and hasattr(item.cls, "assertEqual"):
        return "is of unittest"
    if mark := next((name for name in UNSAFE_MARKS if item.get_closest_marker(name)), None):
        return f"is marked {mark}"
    if fixtures := UNSAFE_FIXTURES.intersection(item.fixturenames):
        return f"uses {', '.join(sorted(fixtures))}"
    return ""


def _in_threads(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(*arguments: Any, **named: Any) -> None:
        errors: list[BaseException] = []
        begin = threading.Barrier(THREADS)

        def once() -> None:
            begin.wait()
            try:
                function(*arguments, **named)
            except BaseException as error:  # noqa: BLE001  pytest's outcomes are not subclasses of Exception
                errors.append(error)

        threads = [threading.Thread(target=once) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    return inner


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record the tests that fail in several threads."""
    if report.when == "call" and report.failed and report.nodeid in together:
        failing.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write the results to a file."""
    if path := os.environ.get("GILSCOPE_AT_ONCE_TOLD"):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"together": len(together), "alone": alone, "failing": failing}, file)
