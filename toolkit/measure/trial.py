"""The trial before the first round: the user's function is called in each build for about a second.

Without it a function that raises would fail in every cell of the matrix, one after the other.  Depending on the
outcome the run is refused, leaves builds out, warns, or allows a pass more time.  `child/trial.py` runs in the build.
"""

from __future__ import annotations

import dataclasses
import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.measure.child.trial import CALLS_OVER, TrialSpec
from gilscope.toolkit.measure.child.user_code import place_lines
from gilscope.toolkit.measure.measured_process import TEARDOWN_SECONDS, read_fields, run_child
from gilscope.toolkit.measure.preparation import question_spec
from gilscope.toolkit.model import WRONG_RESULT, Failure
from gilscope.toolkit.units import few, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.measure.abilities import Abilities
    from gilscope.toolkit.measure.cells import Selection
    from gilscope.toolkit.measure.child.spec import CellSpec
    from gilscope.toolkit.measure.preparation import Preparation, Say
    from gilscope.toolkit.measure.settings import Settings
    from gilscope.toolkit.model import Cell, FailureKind

SLOWER = 4.0           # times the serial pass: other cells and contention between tasks may slow a pass that much
PATIENCE = 2.0         # seconds until the first message that it waits
REPEAT = 5.0           # seconds between two of them
UNAVAILABLE: Final = "unavailable"   # the build lacks a module that the function imports when it is called
_OUR_FRAME = re.compile(r'File "([^"]*/gilscope/(toolkit|runners)/[^"]*|<string>)", line')


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """The outcome of the trial in one build."""

    pass_seconds: float = 0.0      # of one serial pass over all payloads, estimated from those tried
    demand: float | None = None    # cores' worth that it kept busy
    printed: int = 0               # bytes that its calls printed
    unpicklable: str | None = None  # why a result cannot be returned from another process
    threads: tuple[str, ...] = ()  # names of threads that its calls started and left running
    ends_late: bool = False        # its process did not end by itself
    problem: TrialProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialProblem:
    """The reason why the cells of a build are not measured."""

    kind: FailureKind
    reason: str     # one line
    text: str       # for the user, several lines, without the build
    awaits: bool    # only the async form fails


def try_out(
    question: CellSpec, python: str, environment: Mapping[str, str], *, build: str, awaits: bool,
    say: Callable[[str], None],
) -> TrialOutcome:
    """Try the user's function in the build of `python`.

    Args:
        question: A spec with the user's function, the folder and the time limit of a call.
        python: The interpreter to start.
        environment: Its environment variables.
        build: The label of the build, for messages.
        awaits: True to try the async form after the blocking one.
        say: Callback for messages while the trial takes long.
    """
    assert question.user is not None, "only a user's function is tried"
    fields = {each.name: getattr(question, each.name) for each in dataclasses.fields(question)}
    spec = TrialSpec(**fields | {"runner": "asyncio" if awaits else "serial"})
    with _patience(spec, build, say):
        answer = run_child(python, spec, environment)
    fields = answer.fields
    if answer.kind == "tried" and "failed" not in fields:
        return TrialOutcome(
            pass_seconds=fields["pass_seconds"], demand=fields["demand"],
            printed=fields["printed"], unpicklable=fields["unpicklable"], threads=tuple(fields["threads"]),
            ends_late=answer.ended_late,
        )
    name = (question.user.async_function or question.user.function) if fields.get("awaits") else question.user.function
    if (failure := answer.failure) is not None:
        called = f"call {number} of {name}" if (number := _next_call(spec)) else f"after the calls of {name}"
        reason = answer.reason
        if failure == "hang":
            reason = f"{called} did not return within {spec.progress_timeout:g} s; --timeout allows it more"
        elif failure not in {"refused", "starting"}:
            reason = f"{called}: {reason}"
        # The stacks of a hanging process include gilscope's own frames, which do not help the user.
        output = "\n".join(line for line in answer.output.splitlines() if not _OUR_FRAME.search(line))
        text = f"{reason}\n{_indented(output)}" if output and failure != "refused" else reason
        return TrialOutcome(problem=TrialProblem(kind=failure, reason=reason, text=text, awaits=False))
    return TrialOutcome(problem=_failed(name, question.user.check, fields))


def _failed(name: str, check: str | None, fields: Mapping[str, Any]) -> TrialProblem:
    subject = fields.get("subject") or (
        f"{name} {fields['where']}" if fields["where"] else f"{check} refuses the results of {name}")
    frames = fields["frames"]
    lines = [*place_lines(frames), fields["error"]]
    place = f" ({frames[-1][0]})" if frames else ""
    refused = "the check refused the results: " if fields["failed"] == WRONG_RESULT else ""
    return TrialProblem(
        kind=fields["failed"], reason=f"{refused}{fields['error']}{place}", awaits=fields["awaits"],
        text=f"{subject}\n{_indented(chr(10).join(lines))}",
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _next_call(spec: TrialSpec) -> int | None:
    """Return the number of the call that has not returned; None if all have."""
    try:
        progress = spec.progress_path.read_bytes()
    except OSError:
        progress = b""
    return None if progress.endswith(CALLS_OVER) else len(progress.rpartition(CALLS_OVER)[2]) + 1


@contextmanager
def _patience(spec: TrialSpec, build: str, say: Callable[[str], None]) -> Iterator[None]:
    """Report what is waited for, first after `PATIENCE`, then every `REPEAT` seconds."""
    over = threading.Event()

    def tell() -> None:
        began, wait = time.monotonic(), PATIENCE
        while not over.wait(wait):
            wait, waited = REPEAT, f"{time.monotonic() - began:.0f} s so far"
            if (number := _next_call(spec)) is None:
                left = tuple((read_fields(spec) or {}).get("threads", ()))
                waits = f", which waits for {_threads(left)}" if left else ""
                say(f"{build}: the calls of {spec.workload} have returned; waiting for the process to end{waits}, "
                    f"{waited}; it is killed {TEARDOWN_SECONDS:g} s after the last call")
                continue
            say(f"{build}: waiting for call {number} of {spec.workload}, {waited}; a call may take "
                f"{spec.progress_timeout:g} s (--timeout)")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def try_builds(
    selection: Selection, prepared: Preparation, folder: Path, *, timeout: float, say: Say
) -> dict[str, TrialOutcome]:
    """Call the user's function for a second in every build that can import it; return the outcome by build.

    Raises:
        ToolkitError: It fails in all of them, or does not return in the first.
    """
    if selection.user is None:
        return {}
    (subject,) = prepared.subjects
    question = dataclasses.replace(
        question_spec(folder, user=selection.user, workload=subject.name), progress_timeout=timeout
    )
    awaits = any(runner.awaits and runner.name in selection.models for runner in RUNNERS)
    trials: dict[str, TrialOutcome] = {}
    for build in prepared.builds:
        if any(prepared.abilities[build.label].modules.get(module) for module in subject.requires):
            continue  # its cells are skipped with that reason
        say(f"trying {subject.name} on {build.label}")
        trial = try_out(
            question, prepared.pythons[build.label], prepared.environments[build.label], build=build.label,
            awaits=awaits, say=say,
        )
        trials[build.label] = trial
        if trial.problem is not None and trial.problem.kind == "hang" and len(trials) == 1:
            break  # other builds would most likely hang for as long
    if trials and all(trial.problem is not None for trial in trials.values()):
        raise ToolkitError("\n".join(group_problems(trials)))
    for text in (*group_problems(trials), *warnings(trials, subject.name, selection.models)):
        say(text)
    return trials


def group_problems(trials: Mapping[str, TrialOutcome]) -> list[str]:
    """Return each distinct problem once, with the builds that have it."""
    builds: dict[str, list[str]] = {}
    for build, trial in trials.items():
        if trial.problem is not None:
            builds.setdefault(trial.problem.text, []).append(build)
    return [f"on {', '.join(labels)}: {text}" for text, labels in builds.items()]


def with_trials(abilities: Mapping[str, Abilities], trials: Mapping[str, TrialOutcome]) -> dict[str, Abilities]:
    """Return the abilities of the builds, without what the trial has shown that they cannot run.

    That is not a failure: models that pickle a result that cannot be pickled, and a build that lacks a module which the
    function imports when it is called.
    """
    found = {}
    for build, each in abilities.items():
        trial = trials.get(build, TrialOutcome())
        lacking = trial.problem.reason if trial.problem is not None and trial.problem.kind == UNAVAILABLE else None
        found[build] = dataclasses.replace(
            each, results=trial.unpicklable,
            modules={name: reason or lacking for name, reason in each.modules.items()},
            isolated={name: reason or lacking for name, reason in each.isolated.items()})
    return found


def failed_cells(cells: Sequence[Cell], trials: Mapping[str, TrialOutcome]) -> tuple[Failure, ...]:
    """Return the cells whose function already failed in the trial as failures."""
    awaiting = {runner.name for runner in RUNNERS if runner.awaits}
    failures = []
    for cell in cells:
        problem = trials.get(cell.build, TrialOutcome()).problem
        if problem is not None and (cell.runner in awaiting or not problem.awaits):
            failures.append(Failure(cell=cell, kind=problem.kind, reason=problem.reason, output=problem.text, round=0))
    return tuple(failures)


def allow_time(settings: Settings, trials: Mapping[str, TrialOutcome], *, by_user: bool, say: Say) -> Settings:
    """Return settings whose time limit allows one pass; only warn if the user set the limit."""
    seconds = max((trial.pass_seconds for trial in trials.values()), default=0.0)
    if seconds <= settings.timeout / SLOWER:
        return settings
    duration = f"one serial pass over all payloads takes about {format_seconds(seconds)}"
    if by_user:
        if seconds > settings.timeout:
            say(f"{duration}, more than --timeout allows ({format_seconds(settings.timeout)}): the cells will fail")
        return settings
    longer = SLOWER * seconds
    say(f"{duration}, so it may take up to {format_seconds(longer)} (--timeout) before it counts as hanging")
    return dataclasses.replace(settings, timeout=longer)


def warnings(trials: Mapping[str, TrialOutcome], function: str, models: Sequence[str]) -> list[str]:
    """Return warnings for the user before the rounds begin."""
    texts = []
    pickling = [runner.name for runner in RUNNERS if runner.pickles and runner.name in models]
    printing = [build for build, trial in trials.items() if trial.printed]
    if printing:
        texts.append(f"{function} prints: that goes to a file and is not shown, and its time is measured, too")
    if pickling and (reason := next((each.unpicklable for each in trials.values() if each.unpicklable), None)):
        texts.append(f"{function}: {reason}, so models that return it from another interpreter or process are skipped: "
                     f"{', '.join(pickling)}. To measure them, return plain data")
    if left := tuple(dict.fromkeys(name for trial in trials.values() for name in trial.threads)):
        late = ("; no process of it ends by itself, so each is killed "
                f"{TEARDOWN_SECONDS:g} s after its values") if any(trial.ends_late for trial in trials.values()) else ""
        its, it = ("Its", "it") if len(left) == 1 else ("Their", "them")
        texts.append(f"{function} leaves {_threads(left)} running{late}. {its} CPU time is measured, too: end {it} "
                     "before the call returns")
    return texts


def _threads(names: Sequence[str]) -> str:
    return f"{'a thread' if len(names) == 1 else 'threads'} ({few(names)})"
