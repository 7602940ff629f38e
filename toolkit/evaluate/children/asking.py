"""Start a process of a build that asks or imports something, wait for it, and read what it wrote down.

A crash, a hang and an early exit are answers.  Nothing of the process is left when this module is done, and the kernel
ends it when we are killed (see `processes.supervised`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gilscope.toolkit import temporary
from gilscope.toolkit.bounded_reading import RESULTS, opened, parse_json, read_text
from gilscope.toolkit.builds.packages.environment import harness_path
from gilscope.toolkit.evaluate.children.surroundings import end_strays, own_variables, users_variables
from gilscope.toolkit.measure.process.running import last_lines
from gilscope.toolkit.processes.sealed_answers import Seal, new_secret
from gilscope.toolkit.processes.supervised import Supervised

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ENTRY = "import sys; sys.path.insert(0, {harness!r}); from {module} import {function}; del sys.path[0]; {function}()"
LAST_WORDS_SECONDS = 2.0   # for a hanging process to say where it stands

# What no program does to itself: a Ctrl-C of ours, of somebody else, a machine short of memory.
FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})

MOST_ANSWERS = 2**28   # bytes; a long journal has some hundred thousand

Kind = Literal["done", "crash", "hang", "exit", "starting"]
Whose = Literal["own", "users"]   # home and variables: of the process alone; the user's


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a process ended."""

    kind: Kind
    reason: str     # one line; "" when it came to its end
    output: str     # the last lines it printed
    lasting: bool = True   # it would end so again; False: it hung, or somebody ended it


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a process wrote down, and how it ended."""

    records: tuple[dict[str, Any], ...]
    ending: Ending


def ask(
    python: Path, module: str, function: str, job: dict[str, Any], *, limit: float, options: Sequence[str] = (),
    variables: Mapping[str, str] | None = None, memo: Path | None = None, whose: Whose = "own",
) -> Told:
    """Run `function` of our `module` in `python` and return what it wrote.

    Args:
        python: The interpreter, of the environment whose packages it shall see.
        module: A module of ours that runs in any build.
        function: Takes no arguments; finds the file of its job in `sys.argv[1]`.
        job: Plain values; `answers` and `harness` are added.
        limit: Seconds, after which the process is ended.
        options: Of the interpreter, like `-X gil=0`.
        variables: Of the environment, beside those that `whose` stands for.
        memo: A folder that keeps answers, as long as it and the interpreter's packages last; a hang is asked again,
            since the machine may have been busy, and so is what was ended from outside.
        whose: "users": it has the user's home and variables, for what the user would run, or an installer.
    """
    question = str(python), function, job, limit, tuple(options), dict(variables or {})
    kept = memo / f"{_digest(module, *question)}.json" if memo else None
    if kept and (told := _remembered(kept)):
        return told
    told = _ask(python, module, function, job, limit, options, variables or {}, whose)
    if kept and told.ending.lasting:
        _remember(kept, told)
    return told


def _ask(
    python: Path, module: str, function: str, job: dict[str, Any], limit: float, options: Sequence[str],
    variables: Mapping[str, str], whose: Whose,
) -> Told:
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
        return Told(records=_records(place / "answers", secret), ending=ending)


def _digest(module: str, *question: object) -> str:
    """Return what stands for a question, asked by this very version of what runs in the children."""
    return hashlib.sha256(json.dumps([_programs(module), module, question]).encode()).hexdigest()[:24]


@cache
def _programs(module: str) -> str:
    """Return what stands for the sources that may run in a child: these here, and those beside its module."""
    folders = {Path(__file__).parent, *map(Path, import_module(module.rpartition(".")[0]).__path__)}
    texts = [file.read_bytes() for folder in sorted(folders) for file in sorted(folder.glob("*.py"))]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def _remembered(kept: Path) -> Told | None:
    try:
        fields = parse_json(read_text(kept, RESULTS))
        return Told(records=tuple(fields["records"]), ending=Ending(**fields["ending"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None   # none yet, or damaged: asked again


def _remember(kept: Path, told: Told) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    # Two processes may have asked the same.
    with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False, encoding="utf-8") as fresh:
        json.dump(asdict(told), fresh)
    Path(fresh.name).replace(kept)


def _run(command: Sequence[str], place: Path, limit: float, env: Mapping[str, str]) -> Ending:
    hung = False
    with (place / "output").open("wb") as output:
        try:
            process = Supervised(command, cwd=place / "here", env=env, stdout=output, stderr=output)
        except OSError as error:
            return Ending(kind="starting", reason=f"cannot start {command[0]}: {error.strerror}", output="",
                          lasting=False)
        with process:
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                hung = True
                process.signal_group(signal.SIGABRT)   # faulthandler's cue
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LAST_WORDS_SECONDS)
    if process.stopped:
        raise KeyboardInterrupt
    return _ending(process.returncode, last_lines(place / "output"), limit, hung=hung)


def _ending(code: int, output: str, limit: float, *, hung: bool) -> Ending:
    if hung:
        return Ending(kind="hang", reason=f"did not end within {limit:g} s", output=output, lasting=False)
    if code < 0:
        return Ending(kind="crash", reason=f"crashed with {signal.Signals(-code).name}", output=output,
                      lasting=-code not in FROM_OUTSIDE)
    if code:
        return Ending(kind="exit", reason=f"ended with exit code {code}", output=output)
    return Ending(kind="done", reason="", output=output)


def _records(path: Path, secret: str) -> tuple[dict[str, Any], ...]:
    """Return what was written with the secret; the last line may be cut, and others may be noise."""
    try:
        with opened(path) as file:
            lines = file.read(MOST_ANSWERS).split(b"\n")[:-1]
    except OSError:
        return ()
    seal = Seal(secret)
    return tuple(fields for line in lines if (fields := seal.opened(line)) is not None)
