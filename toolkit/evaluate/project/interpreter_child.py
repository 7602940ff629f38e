"""Import a project's modules in subinterpreters, and measure the memory of one and of a new process; a child process.

Runs inside the build under test.  Memory is anonymous pages: what an interpreter or a process has for itself, without
the files (libraries, the interpreter's code) that all map.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

from gilscope.toolkit.children.child import (
    Journal,
    begin,
    forget_toolkit,
    interpreters_module,
    run_in,
    stdlib_modules,
)
from gilscope.toolkit.measure.child.refusal import REFUSAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCRIPT = """import sys
sys.path.extend(path for path in {path!r} if path not in sys.path)
from importlib import import_module
for name in {modules!r}: import_module(name)
"""
# CPython's refusal is at the end of the chain of exceptions, below whatever packages raise.
TRIAL = """
try:
    import_module({name!r})
except BaseException as error:
    import re
    chain = [error]
    while following := chain[-1].__cause__ or chain[-1].__context__: chain.append(following)
    refusals = [found[0] for each in chain if (found := re.search({refusal!r}, str(each)))]
    raise ImportError(refusals[0] if refusals else f'{{type(error).__name__}}: {{error}}') from None
"""


def main() -> None:
    """Try the modules of the job that the command line names, and record what loads and what it takes."""
    job = begin()
    forget_toolkit()
    journal = Journal(job, 0)
    interpreters = interpreters_module()
    if interpreters is None:
        journal.write("unavailable")
        return
    try:
        _measure(job, journal, interpreters)
    except BaseException as error:  # noqa: BLE001  any exception is the answer
        journal.write("failed", error=f"{type(error).__name__}: {error}")
    else:
        journal.write("end")
    os._exit(0)   # imported modules may have waiting threads, and after a failure so may we


def _measure(job: dict[str, Any], journal: Journal, interpreters: Any) -> None:
    # A program has them in its main interpreter, too; and 3.12 and 3.13 crash where a second interpreter imports what
    # the main one never did (gh-136423).
    there = [name for name in job["modules"] if _loads(name)]
    journal.write("imported", modules=there, stdlib=sorted(stdlib_modules()))
    first = interpreters.create()   # alive meanwhile, as the second would reuse the memory that it leaves
    refused = {}
    for name in there:
        script = SCRIPT.format(path=job["path"], modules=[]) + TRIAL.format(name=name, refusal=REFUSAL.pattern)
        if error := run_in(interpreters, first, script):
            refused[name] = error.strip().splitlines()[-1]
    script = SCRIPT.format(path=job["path"], modules=[name for name in there if name not in refused])
    before = own_memory()
    second = interpreters.create()
    if error := run_in(interpreters, second, script):
        raise RuntimeError(error)
    after = own_memory()
    journal.write("measured", refused=refused, process=_process(script),
                  interpreter=None if before is None or after is None else after - before)
    for ident in (first, second):
        interpreters.destroy(ident)


def _loads(name: str) -> bool:
    try:
        importlib.import_module(name)
    except BaseException:  # noqa: BLE001  any exception means that the module is missing
        return False
    return True


def _process(script: str) -> int | None:
    """Return the memory of a new process that has run the script."""
    reader, writer = os.pipe()
    code = f"{script}\nimport os; os.write({writer}, b'.'); sys.stdin.read()"
    process = subprocess.Popen(   # "spawn", not preloaded or forked, as `multiprocessing` calls it
        [sys.executable, "-P", "-s", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[writer])
    os.close(writer)
    ready = os.read(reader, 1)
    os.close(reader)
    memory = own_memory(process.pid)
    process.kill()
    process.communicate()
    if not ready:
        raise RuntimeError("a new process could not import it")
    return memory


def own_memory(pid: int | str = "self") -> int | None:
    """Return the bytes of anonymous memory of this process; None if the system does not report it."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            return next((int(line.split()[1]) * 1024 for line in file if line.startswith(b"RssAnon:")), None)
    except OSError:
        return None
