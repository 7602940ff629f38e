"""Answer one question of `measure/abilities.py` in the build it is about; each question has a process of its own.

Started as `python -c "from gilscope.toolkit.measure.child.abilities import main; main()" QUESTION NAME SECRET`;
prints one sealed line.  The imported modules may print before and after it.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

from gilscope.toolkit.measure.child.refusal import REFUSAL
from gilscope.toolkit.processes.lifeline import restore_defaults
from gilscope.toolkit.processes.sealed_answers import Seal, write_all


def main() -> None:
    """Answer the question in `sys.argv`."""
    restore_defaults()
    question, name, secret = sys.argv[1:]
    seal = Seal(secret)
    answers = {"runners": runners, "import": import_here, "isolated": import_isolated, "versions": versions}
    line = seal.line({"answer": answers[question](name)})
    write_all(1, b"\n" + line)


def runners(_name: str) -> dict[str, str | None]:
    """Return by runner the reason why this process cannot use it, or None if it can."""
    from gilscope.runners.catalog import RUNNERS

    return {runner.name: runner.unavailable() for runner in RUNNERS}


def versions(names: str) -> dict[str, str]:
    """Return the versions of the installed ones among distributions whose names are separated by commas."""
    from importlib.metadata import PackageNotFoundError, version

    installed = {}
    for name in names.split(","):
        with contextlib.suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def import_here(name: str) -> str | None:
    """Import the module `name`; return None, or the reason why it fails."""
    try:
        importlib.import_module(name)
    except BaseException as error:  # noqa: BLE001 - a module may raise anything while it is imported
        return reason(error)
    return None


def import_isolated(name: str) -> str | None:
    """Import the module `name` in two own-GIL interpreters, one after the other; return None, or why it fails.

    With some modules CPython 3.12 aborts only in the second interpreter that imports them.
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
    """Return the reason of a failed import in one line: the interpreter's message, even if a package wraps it."""
    chain: BaseException | None = error
    while chain is not None:
        if refusal := REFUSAL.search(str(chain)):
            return refusal[0]
        chain = chain.__cause__ or chain.__context__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
