"""The frame of every measured process: it reports progress, answers whatever happens, and ends when gilscope does.

It runs in the build being measured and imports little; modules that only a failure needs are imported then.  It drives
pyperf's worker, which writes the values; only this module and the store know pyperf.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import cut
from gilscope.toolkit.measure.child.refusal import REFUSAL
from gilscope.toolkit.measure.child.user_code import LONGEST, own_frames, shown
from gilscope.toolkit.processes import lifeline
from gilscope.toolkit.processes.sealed_answers import Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gilscope.toolkit.measure.child.spec import ProcessSpec
    from gilscope.toolkit.model import FailureKind


class NoValueError(Exception):
    """The cell cannot deliver a value; carries the fields of its answer."""

    def __init__(self, kind: FailureKind, reason: str) -> None:
        super().__init__(reason)
        self.answer = {"kind": kind, "reason": reason}


def answered(spec: ProcessSpec, measure: Callable[[], dict[str, Any] | None]) -> None:
    """Run `measure` and write its answer to the spec's folder; an exception becomes an answer.

    `measure` returns None if it has delivered its answer itself.
    """
    lifeline.end_with_parent()
    set_alarm(spec)
    lifeline.prefer_oom_kill()
    try:
        answer = measure()
    except NoValueError as stopped:
        if stopped.__cause__ is not None:
            _write_traceback(stopped.__cause__)
        answer = stopped.answer
    except BaseException as error:
        if spec.answer_path.exists():  # the values are taken; an error while the pool is closed is a note on them
            raise
        answer = describe_error(error)  # an exception of the workload is the cell's result
    if answer is not None:
        deliver(spec, answer)


def import_pyperf() -> None:
    """Import what `take_values` needs, so that the first turn of a process does not."""
    import pyperf  # noqa: F401 - imported for `take_values`


def take_values(
    spec: ProcessSpec, clock: Callable[[int], float], *, loops: int, values: int = 1, warmups: int = 0,
) -> None:
    """Take the values with pyperf's worker and write its file; `clock(loops)` returns their wall seconds."""
    import pyperf

    runner = pyperf.Runner()
    part = spec.result_path.with_suffix(".part")
    pipe = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    runner.parse_args([
        "--worker", "--pipe", str(pipe), "--worker-task", "0", "--loops", str(loops), "--values", str(values),
        "--warmups", str(warmups), *_affinity(),
    ])
    with _own_argv(spec):
        runner.bench_time_func(spec.name, clock)
    part.rename(spec.result_path)


def _affinity() -> list[str]:
    """Keep pyperf from pinning to isolated CPUs: the kernel would leave all threads on one of them."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    return ["--affinity", ",".join(map(str, sorted(os.sched_getaffinity(0))))]


@contextlib.contextmanager
def _own_argv(spec: ProcessSpec) -> Iterator[None]:
    # pyperf records the command line as metadata; the spec in it would be noise in every file.
    saved, sys.argv = sys.argv, [spec.name]
    try:
        yield
    finally:
        sys.argv = saved


def gil_enabled() -> bool | None:
    """Return True if the GIL is on in this process; None if the interpreter cannot tell (3.12: it is always on)."""
    ask = getattr(sys, "_is_gil_enabled", None)
    return None if ask is None else bool(ask())


def hash_seed() -> str:
    """Return the seed of text hashes that this process was started with; "random": it drew its own."""
    return os.environ.get("PYTHONHASHSEED") or "random"


def refuse_wrong_gil(model: str, wanted: bool | None, on: bool | None) -> None:  # noqa: FBT001 - states, not switches
    """Refuse values that were taken with the GIL in a state that contradicts the model.

    Raises:
        NoValueError: The GIL was on instead of off, or off instead of on.
    """
    if wanted is not None and on is not None and on is not wanted:
        was, needed = ("on" if state else "off" for state in (on, wanted))
        raise NoValueError("gil", f"{model} needs the GIL {needed}; it was {was} at the end")


def report_progress(spec: ProcessSpec) -> None:
    """Report the end of a pass, and set the alarm that dumps every thread's stack if the next one hangs."""
    with spec.progress_path.open("ab") as file:
        file.write(b".")
    set_alarm(spec)


def set_alarm(spec: ProcessSpec) -> None:
    """Dump every thread's stack unless there is progress in time."""
    faulthandler.dump_traceback_later(spec.progress_timeout, exit=False)


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return the answer for an exception, and print its traceback.

    An extension module that the work imports may refuse to be loaded in an interpreter of its own: then the build
    cannot run the cell.
    """
    _write_traceback(error)
    if isinstance(error, ImportError) and (refusal := _refusal(error)):
        return {"kind": "unavailable", "reason": refusal}
    if isinstance(error, SystemExit):
        return {"kind": "exit", "reason": f"the task called sys.exit({cut(repr(error.code), LONGEST)})",
                "code": "SystemExit"}
    if isinstance(error, MemoryError):
        return {"kind": "exception", "reason": "out of memory (MemoryError)", "code": "MemoryError"}
    return {"kind": "exception", "reason": shown(error), "frames": own_frames(error), "code": type(error).__name__}


def _refusal(error: BaseException) -> str | None:
    """Return CPython's refusal to load an extension module in an interpreter, however a package wraps it."""
    from traceback import format_exception

    found = REFUSAL.search("".join(format_exception(error)))
    return found[0] if found else None


def _write_traceback(error: BaseException) -> None:
    import traceback

    for part in traceback.format_exception(error):
        sys.stderr.write(cut(part, 2 * LONGEST))


def deliver(spec: ProcessSpec, answer: dict[str, Any]) -> None:
    """Write the answer atomically: it is complete or absent."""
    part = spec.answer_path.with_suffix(".part")
    part.write_bytes(Seal(spec.secret).line(answer))
    part.rename(spec.answer_path)
