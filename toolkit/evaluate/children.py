"""Start a process of a build that asks or imports something, wait for it, and read what it wrote down.

A crash, a hang and an early exit are answers.  Nothing of the process is left when this module is done, and the kernel
ends it when we are killed (see `measure.lifeline`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolkit.builds.environment import harness_path

if TYPE_CHECKING:
    from collections.abc import Sequence

ENTRY = "import sys; sys.path.insert(0, {harness!r}); from {module} import {function}; del sys.path[0]; {function}()"
LAST_WORDS_SECONDS = 2.0   # for a hanging process to say where it stands
LAST_LINES = 30
MOST_OUTPUT_BYTES = 16 * 2**20

Kind = Literal["done", "crash", "hang", "exit", "starting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a process ended."""

    kind: Kind
    reason: str     # one line; "" when it came to its end
    output: str     # the last lines it printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a process wrote down, and how it ended."""

    records: tuple[dict[str, Any], ...]
    ending: Ending


def ask(
    python: Path, module: str, function: str, job: dict[str, Any], *, limit: float, options: Sequence[str] = (),
) -> Told:
    """Run `function` of our `module` in `python` and return what it wrote.

    Args:
        python: The interpreter, of the environment whose packages it shall see.
        module: A module of ours that runs in any build.
        function: Takes no arguments; finds the file of its job in `sys.argv[1]`.
        job: Plain values; `answers` and `harness` are added.
        limit: Seconds, after which the process is ended.
        options: Of the interpreter, like `-X gil=0`.
    """
    with tempfile.TemporaryDirectory(prefix="gilscope-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        (place / "here").mkdir()
        harness = str(harness_path())
        whole = {"path": [], **job, "answers": str(place / "answers"), "harness": harness}
        (place / "job.json").write_text(json.dumps(whole), encoding="utf-8")
        code = ENTRY.format(harness=harness, module=module, function=function)
        command = [str(python), "-P", "-s", *options, "-c", code, str(place / "job.json")]
        ending = _run(command, place, limit)
        return Told(records=_records(place / "answers"), ending=ending)


def _run(command: Sequence[str], place: Path, limit: float) -> Ending:
    # Names like PYTHON_GIL and PYTHONPATH would change what is found.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with (place / "output").open("wb") as output:
        try:
            process = subprocess.Popen(
                command, cwd=place / "here", env=env, stdin=subprocess.PIPE, stdout=output, stderr=output,
                start_new_session=True)
        except OSError as error:
            return Ending(kind="starting", reason=f"cannot start {command[0]}: {error.strerror}", output="")
    hung = False
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        hung = True
        process.send_signal(signal.SIGABRT)   # faulthandler's cue
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LAST_WORDS_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdin is not None
        process.stdin.close()
    return _ending(process.returncode, _last_lines(place / "output"), limit, hung=hung)


def _ending(code: int, output: str, limit: float, *, hung: bool) -> Ending:
    if hung:
        return Ending(kind="hang", reason=f"did not end within {limit:g} s", output=output)
    if code < 0:
        return Ending(kind="crash", reason=f"crashed with {signal.Signals(-code).name}", output=output)
    if code:
        return Ending(kind="exit", reason=f"ended with exit code {code}", output=output)
    return Ending(kind="done", reason="", output=output)


def _records(path: Path) -> tuple[dict[str, Any], ...]:
    """Return the whole lines of a journal; the last one may be cut."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return ()
    return tuple(json.loads(line) for line in lines)


def _last_lines(path: Path) -> str:
    with path.open("rb") as source:
        source.seek(max(0, path.stat().st_size - 16384))
        text = source.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-LAST_LINES:])
