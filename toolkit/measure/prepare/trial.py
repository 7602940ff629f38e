"""The trial before the first round: the user's function is called once per build, for a second, and told about.

Without it a function that raises would fail in every cell of the matrix, one after the other.  `main` runs in the build
being tried; `try_out` starts it and puts into words what came of it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gilscope.runners import catalog
from gilscope.toolkit.cores import queued_seconds
from gilscope.toolkit.measure.cell.subject import RefusedError, Subject, load, pickle_reason
from gilscope.toolkit.measure.machine.other_load import core_demand
from gilscope.toolkit.measure.machine.tree import cpu_seconds
from gilscope.toolkit.measure.process.child_base import (
    StoppedError,
    answered,
    own_frames,
    place_lines,
    report_progress,
    shown,
)
from gilscope.toolkit.measure.process.running import run_child
from gilscope.toolkit.measure.process.spec import ChildSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TRIAL_SECONDS = 1.0   # after that no further payload is tried; the rounds try the rest
PATIENCE = 2.0        # seconds without a word
REPR_CHARACTERS = 60
_OUR_FRAME = re.compile(r'File "([^"]*/gilscope/(toolkit|runners)/[^"]*|<string>)", line')


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec(ChildSpec):
    """The trial in one build; `runner` is one that awaits where the async form is to be tried as well."""

    entry: ClassVar[str] = "gilscope.toolkit.measure.prepare.trial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one build made of the user's function."""

    tasks: int = 0
    pass_seconds: float = 0.0      # of one serial pass over all payloads, estimated from those tried
    demand: float | None = None    # cores' worth that it kept busy
    printed: int = 0               # bytes, by its calls
    unpicklable: str | None = None  # why a result cannot come back from another process
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a build's cells need not be measured."""

    kind: str       # as of model.Failure
    reason: str     # one line
    text: str       # for the user, several lines, without the build
    awaits: bool    # only the async form has it


# --- in the build being tried

def main() -> None:
    """Try the function in `sys.argv[1]` and leave the answer in its folder."""
    spec = TrialSpec.from_json(sys.argv[1])
    answered(spec, lambda: _try(spec))


def _try(spec: ChildSpec) -> dict[str, Any]:
    try:
        subject = load(spec)
    except RefusedError as refused:
        raise StoppedError("refused", str(refused)) from None
    before = _written()  # an import may warn: that is not the function's printing
    answer: dict[str, Any] = {"kind": "tried", "tasks": len(subject.payloads), "awaits": False}
    if subject.task is not None:
        answer |= _calls(spec, subject, subject.task)
    if "failed" not in answer and subject.async_task is not None and catalog.find(spec.runner).awaits:
        awaiting = subject.async_task
        seen = _calls(spec, subject, lambda payload: asyncio.run(awaiting(payload)))
        answer = {**seen, **answer} if "failed" not in seen else {**answer, **seen, "awaits": True}
    return answer | {"printed": _written() - before}


def _written() -> int:
    """Return the size of the file that this process's output goes to."""
    sys.stdout.flush()
    return os.fstat(1).st_size


def _calls(spec: ChildSpec, subject: Subject, task: Callable[[Any], Any]) -> dict[str, Any]:
    """Call `task` with one payload after another for as long as a trial takes; return what that showed."""
    results: list[Any] = []
    # Each of these can end in a queue for a CPU, too: what was queued counts from after `began` to before the end.
    began, queued, cpu = time.perf_counter(), queued_seconds(), cpu_seconds([os.getpid()])
    for index, payload in enumerate(subject.payloads):
        try:
            results.append(task(payload))
        except BaseException as error:  # noqa: BLE001 - whatever it raises is what the trial is for
            where = f"raises for payload {index} (of {len(subject.payloads)}, counted from 0): {cut_repr(payload)}"
            return {"failed": "exception", "where": where, "error": shown(error), "frames": own_frames(error)}
        report_progress(spec)
        if time.perf_counter() - began > TRIAL_SECONDS:
            break
    used, queued = cpu_seconds([os.getpid()]) - cpu, queued_seconds() - queued
    wall = time.perf_counter() - began
    demand = core_demand(wall, used, queued)
    seen: dict[str, Any] = {"pass_seconds": wall / len(results) * len(subject.payloads), "demand": demand,
            "unpicklable": pickle_reason(results[0], "its result")}
    if len(results) == len(subject.payloads):
        try:
            subject.check(results)
        except Exception as error:  # noqa: BLE001 - a check may be a plain assertion
            seen |= {"failed": "wrong-result", "where": "", "error": shown(error), "frames": own_frames(error)}
    return seen


def cut_repr(value: Any) -> str:
    """Return the repr of `value`, its middle left out where it is long."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - a user's class may raise anything
        return f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    half = REPR_CHARACTERS // 2
    return text if len(text) <= REPR_CHARACTERS else f"{text[:half]} ... {text[-half + 5:]}"


# --- in gilscope itself

def try_out(
    question: ChildSpec, python: str, environment: Mapping[str, str], *, build: str, awaits: bool,
    say: Callable[[str], None],
) -> Trial:
    """Return what a trial of the user's function shows in the build that `python` is.

    Args:
        question: A spec with the user's function, its folder and how long a call may take.
        python: What to start.
        environment: Its variables.
        build: Its label, for what is said while it lasts.
        awaits: Whether to try the async form, too.
        say: Told what is being waited for, as soon as that takes a moment.
    """
    assert question.user is not None, "only a user's function is tried"
    fields = {each.name: getattr(question, each.name) for each in dataclasses.fields(question)}
    spec = TrialSpec(**fields | {"runner": "asyncio" if awaits else "serial"})
    with _patience(spec, build, say):
        answer = run_child(python, spec, environment)
    fields = answer.fields
    if answer.kind == "tried" and "failed" not in fields:
        return Trial(
            tasks=fields["tasks"], pass_seconds=fields["pass_seconds"], demand=fields["demand"],
            printed=fields["printed"], unpicklable=fields["unpicklable"],
        )
    name = (question.user.async_function or question.user.function) if fields.get("awaits") else question.user.function
    if answer.kind != "tried":
        called = f"call {_calls_done(spec) + 1} of {name}"
        reason = answer.reason
        if answer.kind == "hang":
            reason = f"{called} did not return within {spec.progress_timeout:g} s; --timeout allows it more"
        elif answer.kind not in {"refused", "starting"}:
            reason = f"{called}: {reason}"
        # The stacks of a process that hangs go down to our own frames, which are no news to anybody.
        output = "\n".join(line for line in answer.output.splitlines() if not _OUR_FRAME.search(line))
        text = f"{reason}\n{_indented(output)}" if output and answer.kind != "refused" else reason
        return Trial(problem=Problem(kind=answer.kind, reason=reason, text=text, awaits=False))
    return Trial(problem=_failed(name, question.user.check, fields))


def _failed(name: str, check: str | None, fields: Mapping[str, Any]) -> Problem:
    subject = f"{name} {fields['where']}" if fields["where"] else f"{check} refuses the results of {name}"
    frames = fields["frames"]
    lines = [*place_lines(frames), fields["error"]]
    place = f" ({frames[-1][0]})" if frames else ""
    refused = "" if fields["where"] else "the check refused the results: "
    return Problem(
        kind=fields["failed"], reason=f"{refused}{fields['error']}{place}", awaits=fields["awaits"],
        text=f"{subject}\n{_indented(chr(10).join(lines))}",
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _calls_done(spec: TrialSpec) -> int:
    try:
        return spec.progress_path.stat().st_size
    except OSError:
        return 0


@contextmanager
def _patience(spec: TrialSpec, build: str, say: Callable[[str], None]) -> Iterator[None]:
    """Say what is being waited for when it takes longer than a moment, and again each time that doubles."""
    over = threading.Event()

    def tell() -> None:
        wait, waited = PATIENCE, 0.0
        while not over.wait(wait):
            waited, wait = waited + wait, waited + wait
            say(f"{build}: waiting for call {_calls_done(spec) + 1} of {spec.workload}, {waited:.0f} s so far; "
                f"a call may take {spec.progress_timeout:g} s (--timeout)")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
