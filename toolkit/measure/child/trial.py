"""Call the user's function for about a second in the build being tried; `measure/trial.py` starts it."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gilscope.runners import catalog
from gilscope.toolkit.cores import queued_seconds
from gilscope.toolkit.measure.child.base import (
    NoValueError,
    answered,
    report_progress,
)
from gilscope.toolkit.measure.child.other_load import core_demand
from gilscope.toolkit.measure.child.process_tree import cpu_seconds
from gilscope.toolkit.measure.child.spec import CellSpec
from gilscope.toolkit.measure.child.subject import LoadedSubject, PayloadsError, load, pickle_reason
from gilscope.toolkit.measure.child.user_code import RefusedError, own_frames, shown

if TYPE_CHECKING:
    from collections.abc import Callable

TRIAL_SECONDS = 1.0   # then no further payload is tried; the rounds run the rest
REPR_CHARACTERS = 60
CALLS_OVER = b"\n"     # in the progress file, after a dot for each call


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec(CellSpec):
    """The request for a trial in one build; with a `runner` that awaits, the async form is tried after the other."""

    entry: ClassVar[str] = "gilscope.toolkit.measure.child.trial"


def main() -> None:
    """Try the function in `sys.argv[1]` and write the answer to its folder."""
    spec = TrialSpec.from_json(sys.argv[1])
    answered(spec, lambda: _try(spec))


def _try(spec: CellSpec) -> dict[str, Any]:
    try:
        subject = load(spec)
    except RefusedError as refused:
        raise NoValueError("refused", str(refused)) from None
    except PayloadsError as failed:
        return {"kind": "tried", "awaits": False, "failed": "exception", "subject": str(failed), "where": "",
                "error": shown(failed.raised), "frames": own_frames(failed.raised)}
    before = _written()  # output of the import is not the function's
    known = set(threading.enumerate())
    answer: dict[str, Any] = {"kind": "tried", "awaits": False}
    if subject.task is not None:
        answer |= _calls(spec, subject, subject.task)
    if "failed" not in answer and subject.async_task is not None and catalog.find(spec.runner).awaits:
        awaiting = subject.async_task
        awaited = _calls(spec, subject, lambda payload: asyncio.run(awaiting(payload)))
        answer = {**awaited, **answer} if "failed" not in awaited else {**answer, **awaited, "awaits": True}
    left = [thread.name for thread in threading.enumerate() if thread not in known]
    return answer | {"printed": _written() - before, "threads": [cut_repr(name) for name in dict.fromkeys(left)]}


def _written() -> int:
    """Return the size of the file that this process's output goes to."""
    sys.stdout.flush()
    return os.fstat(1).st_size


def _calls(spec: CellSpec, subject: LoadedSubject, task: Callable[[Any], Any]) -> dict[str, Any]:
    """Call `task` with one payload after another for the time of a trial; return the fields of the answer."""
    results: list[Any] = []
    wall = queued = cpu = 0.0
    for index, payload in enumerate(subject.payloads):
        # The process may be descheduled during each of these calls: the wall time encloses all queueing that counts.
        began, queued_before, cpu_before = time.perf_counter(), queued_seconds(), cpu_seconds([os.getpid()])
        try:
            results.append(task(payload))
        except BaseException as error:  # noqa: BLE001 - the trial exists to catch them
            where = (f"raises for payload {index} (of {len(subject.payloads)}, counted from 0): {cut_repr(payload)}"
                     if spec.user is None or spec.user.has_payloads else "raises, called without arguments")
            kind = "unavailable" if isinstance(error, ImportError) else "exception"
            return {"failed": kind, "where": where, "error": shown(error), "frames": own_frames(error)}
        cpu += cpu_seconds([os.getpid()]) - cpu_before
        queued += queued_seconds() - queued_before
        wall += time.perf_counter() - began
        # Not a part of the call: it waits until a thread of its own has had a core.
        report_progress(spec)
        if wall > TRIAL_SECONDS:
            break
    with spec.progress_path.open("ab") as file:
        file.write(CALLS_OVER)
    demand = core_demand(wall, cpu, queued)
    fields: dict[str, Any] = {"pass_seconds": wall / len(results) * len(subject.payloads), "demand": demand,
                            "unpicklable": next((reason for result in results
                                                 if (reason := pickle_reason(result, "result"))), None)}
    if len(results) == len(subject.payloads):
        try:
            subject.check(results)
        except Exception as error:  # noqa: BLE001 - a check may be a plain assertion
            fields |= {"failed": "wrong-result", "where": "", "error": shown(error), "frames": own_frames(error)}
    return fields


def cut_repr(value: Any) -> str:
    """Return the repr of `value`, without its middle if it is long."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - a user's class may raise anything
        return f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    half = REPR_CHARACTERS // 2
    return text if len(text) <= REPR_CHARACTERS else f"{text[:half]} ... {text[-half + 5:]}"
