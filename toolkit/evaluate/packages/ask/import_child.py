"""The processes that import other people's packages: once as a program would, or in interpreters of their own.

Runs inside the build asked about.  Whatever happens (crash, hang, exit) is read from the journal by who started it.
"""

from __future__ import annotations

import faulthandler
import json
import sys

from gilscope.toolkit.evaluate.packages.ask import watch
from gilscope.toolkit.evaluate.packages.ask.bounds import bound_files
from gilscope.toolkit.measure.process import lifeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCRIPT = """import json, sys
sys.path.insert(0, {harness!r})
from gilscope.toolkit.evaluate.packages.ask.watch import import_all
del sys.path[0]
with open({job!r}, encoding='utf-8') as source: job = json.load(source)
sys.path.extend(path for path in job['path'] if path not in sys.path)
import_all(job, {turn})
"""


def main() -> None:
    """Import the modules of the job that the standard arguments name, in this interpreter."""
    job = begin()
    watch.import_all(job)


def interpreters_main() -> None:
    """Do it in an interpreter with its own GIL, and end that; as often as the job says."""
    job = begin()
    watch.forget_toolkit()
    journal = watch.Journal(job["answers"], -1)
    interpreters = interpreters_module()
    if interpreters is None:
        journal.write("unavailable")
        return
    for turn in range(job["turns"]):
        ident = interpreters.create()
        script = SCRIPT.format(harness=job["harness"], job=job["file"], turn=turn)
        error = run_in(interpreters, ident, script)
        journal.write("ran", number=turn, error=error)
        interpreters.destroy(ident)
        journal.write("destroyed", number=turn)


def begin() -> dict[str, Any]:
    """Return the job that the standard arguments name, after what every one of these processes does first."""
    lifeline.hold()
    faulthandler.enable()   # a crash, and the signal that ends a hang, leave the Python stack in the output
    bound_files()
    with open(sys.argv[1], encoding="utf-8") as source:
        job: dict[str, Any] = json.load(source)
    job["file"] = sys.argv[1]
    sys.argv[1:] = []       # some packages read the command line when they are imported
    sys.path.extend(path for path in job["path"] if path not in sys.path)
    return job


def interpreters_module() -> Any:
    """Return the module that makes interpreters with a GIL of their own; None where there is none."""
    # 3.13 and later; before 3.14 there is no public module for them.
    try:
        import _interpreters  # type: ignore[import-not-found]  # private, without stubs
    except ImportError:
        pass
    else:
        return _interpreters
    try:
        import _xxsubinterpreters  # type: ignore[import-not-found]  # likewise
    except ImportError:
        return None
    return _xxsubinterpreters


def run_in(interpreters: Any, ident: Any, script: str) -> str | None:
    """Run `script` in an interpreter; return what it raised."""
    try:
        problem = interpreters.run_string(ident, script)
    except Exception as error:  # noqa: BLE001  3.12 raises where 3.13 returns
        return str(error)
    return None if problem is None else str(getattr(problem, "formatted", problem))
