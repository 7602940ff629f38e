"""Run pip several times in one process: pip is imported once, and each run is a fork.

Runs inside the environment to install into, so that pip chooses files for that build.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path

from gilscope.toolkit.builds.package_installer import gave_up, listed_files
from gilscope.toolkit.children.child import Journal
from gilscope.toolkit.processes import lifeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Modules that every download imports; other versions of pip may lack them and import theirs in each fork.
USUAL = ("pip._internal.cli.main", "pip._internal.commands.download", "pip._internal.resolution.resolvelib.resolver")
MOST_TOLD = 4000   # characters of a run's output


def main() -> None:
    """Run pip with each command line of the job, several at once, and record how each ended."""
    lifeline.restore_defaults()
    job: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path.insert(0, job["pip"])
    tempfile.tempdir = str(Path.cwd())   # removed with this process, however it ends
    for name in USUAL:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    journal = Journal(job, 0)
    waiting = list(enumerate(job["runs"]))[::-1]
    running: dict[int, int] = {}
    while waiting or running:
        while waiting and len(running) < job["at_once"]:
            number, words = waiting.pop()
            running[_start(words, f"output-{number}")] = number
        process, status = os.wait()
        number = running.pop(process)
        text = Path(f"output-{number}").read_text(encoding="utf-8", errors="replace")
        if gave_up(text):
            waiting.clear()   # the others would only take as long to find the same
        journal.write("ran", number=number, code=os.waitstatus_to_exitcode(status), output=text[-MOST_TOLD:],
                      files=listed_files(text))


def _start(words: list[str], path: str) -> int:
    """Run pip in a fork that prints to the file `path`; return the process ID."""
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        output = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv[:] = ["pip", *words]
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)   # skip exit handlers of the parent process
    return 0
