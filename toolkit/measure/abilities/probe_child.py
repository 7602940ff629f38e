"""Answers what `probe` asks a build before anything is planned; each question is a process of its own in that build.

Started as `python -c "from gilscope.toolkit.measure.abilities.probe_child import main; main()" QUESTION NAME SECRET`;
prints one sealed line.  What is imported may print too, before and after.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from gilscope.toolkit.processes.lifeline import settle
from gilscope.toolkit.processes.sealed_answers import Seal, write_all

ISOLATED = frozenset({"subinterpreters", "interpreter-pool"})  # runners whose workers are own-GIL interpreters


def main() -> None:
    """Answer the question in `sys.argv`."""
    settle()
    question, name, secret = sys.argv[1:]
    seal = Seal(secret)
    answers = {"runners": runners, "import": import_here, "isolated": import_isolated, "versions": versions}
    line = seal.line({"answer": answers[question](name)})
    write_all(1, b"\n" + line)


def runners(_name: str) -> dict[str, str | None]:
    """Return for every runner why this process cannot use it, or None."""
    from gilscope.runners.catalog import RUNNERS

    return {runner.name: runner.unavailable() for runner in RUNNERS}


def versions(names: str) -> dict[str, str]:
    """Return the versions of those distributions, named with commas, that are installed here."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in names.split(","):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def import_here(name: str) -> str | None:
    """Import the module `name`; return None, or why it does not work."""
    try:
        importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 - a module may raise anything while it is imported
        return reason(error)
    return None


def import_isolated(name: str) -> str | None:
    """Import the module `name` in two own-GIL interpreters, one after the other; return None, or why it does not work.

    Twice, since CPython 3.12 aborts only in the second interpreter that imports some modules.
    """
    from gilscope.runners.catalog import find

    runner: Any = find("subinterpreters")
    for _ in range(2):
        with runner.pool(1) as pool:
            (why,) = pool.map(import_here, [name])
            if why is not None:
                return str(why)
    return None


def reason(error: BaseException) -> str:
    """Return one line that says why an import failed: the interpreter's own words where a package wraps them."""
    chain: BaseException | None = error
    while chain is not None:
        for line in str(chain).splitlines():
            if "does not support loading in subinterpreters" in line:
                return line.strip().removeprefix("Original error was: ")
        chain = chain.__cause__ or chain.__context__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
