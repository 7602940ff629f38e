"""Run one of our modules in a child process of a build, and read its journal.

A crash, a hang and an early exit are answers.  Nothing of the process survives, and the kernel ends it if we are killed
(see `processes.supervised`).  The process runs other people's code, so it gets folders of its own and few variables,
none with a token or a password.  That is no sandbox: the code runs as the user and reads what the user can read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gilscope.toolkit import temporary
from gilscope.toolkit.bounded_reading import last_lines, opened
from gilscope.toolkit.builds.environment import harness_path
from gilscope.toolkit.keyed_store import KeyedStore
from gilscope.toolkit.processes.sealed_answers import Seal, new_secret
from gilscope.toolkit.processes.supervised import Supervised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENTRY = "import sys; sys.path.insert(0, {harness!r}); from {module} import {function}; del sys.path[0]; {function}()"
LAST_WORDS_SECONDS = 2.0   # for faulthandler to print the stacks of a hanging process

# Signals from outside: Ctrl-C, another user, or a machine short of memory.
FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

MOST_ANSWERS = 2**28   # bytes; a long journal has several hundred thousand

EndingKind = Literal["done", "crash", "hang", "exit", "starting"]
Whose = Literal["own", "users"]   # home folder and variables: temporary ones, or the user's


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnding:
    """How a process ended."""

    kind: EndingKind
    reason: str     # one line; "" if it ended normally
    output: str     # the last lines of its output
    lasting: bool = True   # it would end the same way again; False after a hang or a signal from outside


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildAnswer:
    """The records that a child process wrote, and how it ended."""

    records: tuple[dict[str, Any], ...]
    ending: ProcessEnding


def ask(  # noqa: PLR0913 - what differs between children, most of it seldom
    python: Path, module: str, function: str, job: dict[str, Any], *, limit: float, options: Sequence[str] = (),
    variables: Mapping[str, str] | None = None, memo: Path | None = None, whose: Whose = "own",
) -> ChildAnswer:
    """Run `function` of our `module` in `python` and return the records that it wrote.

    Args:
        python: The interpreter of the environment under test.
        module: A module of ours that runs in any build.
        function: Takes no arguments, and finds the file of its job in `sys.argv[1]`.
        job: Plain values; `answers`, `secret` and `harness` are added.
        limit: Seconds after which the process is ended.
        options: Options of the interpreter, such as `-X gil=0`.
        variables: Environment variables in addition to those that `whose` selects.
        memo: A folder that stores answers, valid as long as it exists.  A hang, or a process ended from outside, is not
            stored, because the machine may have been busy.
        whose: "users" for the user's home and variables, for the user's own code or an installer.
    """
    answers = KeyedStore(memo) if memo else None
    question = json.dumps([str(python), module, function, job, limit, list(options), dict(variables or {})])
    key = _programs(module), question
    stored: ChildAnswer | None = answers.get(ChildAnswer, *key) if answers else None
    if stored:
        return stored
    answer = _ask(python, module, function, job, limit=limit, options=options, variables=variables or {}, whose=whose)
    if answers and answer.ending.lasting:
        answers.put(answer, *key)
    return answer


def _ask(  # noqa: PLR0913 - those of `ask`
    python: Path, module: str, function: str, job: dict[str, Any], *, limit: float, options: Sequence[str],
    variables: Mapping[str, str], whose: Whose,
) -> ChildAnswer:
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        place = Path(name)
        (place / "here").mkdir()
        harness, secret = str(harness_path()), new_secret()
        whole = {"path": [], **job, "answers": str(place / "answers"), "secret": secret, "harness": harness}
        (place / "job.json").write_text(json.dumps(whole), encoding="utf-8")
        code = ENTRY.format(harness=harness, module=module, function=function)
        command = [str(python), "-P", "-s", *options, "-c", code, str(place / "job.json")]
        env = {**(users_variables() if whose == "users" else own_variables(place)), **variables}
        try:
            ending = _run(command, place, limit, env)
        finally:
            end_strays(name)
        return ChildAnswer(records=_records(place / "answers", secret), ending=ending)


@cache
def _programs(module: str) -> str:
    """Return a hash of the sources that may run in a child: this folder, and the folder of its module."""
    folders = {Path(__file__).parent, *map(Path, import_module(module.rpartition(".")[0]).__path__)}
    texts = [file.read_bytes() for folder in sorted(folders) for file in sorted(folder.glob("*.py"))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def _run(command: Sequence[str], place: Path, limit: float, env: Mapping[str, str]) -> ProcessEnding:
    hung = False
    with (place / "output").open("wb") as output:
        try:
            process = Supervised(command, cwd=place / "here", env=env, stdout=output, stderr=output)
        except OSError as error:
            return ProcessEnding(kind="starting", reason=f"cannot start {command[0]}: {error.strerror}", output="",
                                 lasting=False)
        with process:
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                hung = True
                process.signal_group(signal.SIGABRT)   # makes faulthandler print the stacks
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LAST_WORDS_SECONDS)
    if process.stopped:
        raise KeyboardInterrupt
    return _ending(process.returncode, last_lines(place / "output"), limit, hung=hung)


def _ending(code: int, output: str, limit: float, *, hung: bool) -> ProcessEnding:
    if hung:
        return ProcessEnding(kind="hang", reason=f"did not end within {limit:g} s", output=output, lasting=False)
    if code < 0:
        return ProcessEnding(kind="crash", reason=f"crashed with {signal.Signals(-code).name}", output=output,
                             lasting=-code not in FROM_OUTSIDE)
    if code:
        return ProcessEnding(kind="exit", reason=f"ended with exit code {code}", output=output)
    return ProcessEnding(kind="done", reason="", output=output)


def _records(path: Path, secret: str) -> tuple[dict[str, Any], ...]:
    """Return the records sealed with the secret; the last line may be cut, and others may be noise."""
    try:
        with opened(path) as file:
            lines = file.read(MOST_ANSWERS).split(b"\n")[:-1]
    except OSError:
        return ()
    seal = Seal(secret)
    return tuple(fields for line in lines if (fields := seal.opened(line)) is not None)


# Encoding and time zone, the user, and the places of programs and libraries.
PASSED_ON = ("PATH", "LANG", "LANGUAGE", "TZ", "USER", "LOGNAME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
FOLDERS = {"HOME": "home", "TMPDIR": "tmp", "XDG_CACHE_HOME": "home/.cache", "XDG_CONFIG_HOME": "home/.config",
           "XDG_DATA_HOME": "home/.local/share", "XDG_STATE_HOME": "home/.local/state", "XDG_RUNTIME_DIR": "run"}


def own_variables(place: Path) -> dict[str, str]:
    """Return the variables of a process whose home and other folders are created below `place`."""
    folders = {name: place / below for name, below in FOLDERS.items()}
    for folder in folders.values():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {name: value for name, value in os.environ.items() if name in PASSED_ON or name.startswith("LC_")} | {
        name: str(folder) for name, folder in folders.items()}


def users_variables() -> dict[str, str]:
    """Return the user's variables except for those like PYTHON_GIL and PYTHONPATH, which would change results."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def end_strays(place: str) -> None:
    """Kill processes that were started with folders below `place` and left their process group, as daemons do.

    They are recognised by the variables that they were started with, as the kernel shows them.
    """
    mark = f"HOME={place}/".encode()
    with contextlib.suppress(OSError):
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, ValueError):
                if mark in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)
