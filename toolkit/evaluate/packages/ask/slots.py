"""What extension files declare, asked in a process of the build (`slots_child`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.children.asking import ask
from gilscope.toolkit.evaluate.packages.damaged_library import damage
from gilscope.toolkit.evaluate.packages.facts import Extension

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMIT = 20.0    # seconds for one file; a hook takes milliseconds, a single-phase one may import half a library


def read_extensions(
    python: Path, files: Sequence[tuple[str, str]], *, path: Sequence[str] = (), limit: float = LIMIT,
    memo: Path | None = None,
) -> tuple[Extension, ...]:
    """Return what each extension file says, in the given order; one that says nothing has a problem.

    Args:
        python: Of the build and environment that would load them.
        files: Module name and file.
        path: Folders to add to `sys.path`, which single-phase hooks import from.
        limit: Seconds for one file.
        memo: See `children.ask`.
    """
    if not files:
        return ()
    damaged = {file: why for _, file in files if (why := damage(Path(file)))}
    job = {"files": list(files), "limit": limit, "path": list(path)}
    child = "gilscope.toolkit.evaluate.packages.ask.slots_child"
    told = ask(python, child, "main", job, limit=30 + limit * len(files), memo=memo)
    answers = {int(record["number"]): record for record in told.records}
    silent = {"problem": f"the process that reads it {told.ending.reason or 'gave no answer'}"}
    return tuple(_damaged(name, file, damaged[file]) if file in damaged
                 else _extension(name, file, answers.get(number, silent)) for number, (name, file) in enumerate(files))


def _damaged(name: str, file: str, why: str) -> Extension:
    return Extension(name=name, file=file, problem=why, damaged=True)


def _extension(name: str, file: str, fields: dict[str, object]) -> Extension:
    told = {key: value for key, value in fields.items() if key != "number"}
    return Extension(name=name, file=file, **told)  # type: ignore[arg-type]  # our own child wrote them
