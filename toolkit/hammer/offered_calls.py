"""Find a call of each public function, type and method of a module, in tests and doctests, for a build."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.children.asking import ask
from gilscope.toolkit.hammer.candidates import FIND_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

CHILD = "gilscope.toolkit.hammer.child"
LIMIT_SECONDS = FIND_SECONDS + 70.0   # to start, to import the module, and to finish what finding has begun
PAGES = (".md", ".rst", ".txt")
NOT_READ = frozenset({"build", "dist", "node_modules", "venv", "env", "site-packages", "__pycache__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedCall:
    """A public callable of a module with a call of it, or the reason why there is none that works."""

    name: str                             # "mean", "NormalDist.cdf"
    shown: str = ""                       # "mean([1, 2])"; "": no call was found
    place: str = ""                       # "tests/test_mean.py:12"
    recipe: dict[str, Any] | None = None  # see `calls.CallRecipe.plain`; None: it does not work alone
    problem: str = ""                     # "ValueError: ...", "crashed with SIGSEGV"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedCalls:
    """The public callables of a module, in its order."""

    calls: tuple[OfferedCall, ...] = ()
    complete: bool = True                 # False: the time was over before all calls were found and tried
    gil: bool = False                     # it is on, as an import turns it on
    problem: str = ""                     # why there are none


def find_calls(
    python: Path, module: str, folders: Sequence[Path], files: Sequence[tuple[Path, str]],
) -> OfferedCalls:
    """Return the call of each public callable that takes longest, of those that work alone.

    Args:
        python: The interpreter of an environment that has what the module needs.
        module: It, its doctests and those of its package are read.
        folders: Where it is imported from.
        files: Tests, and pages with examples, each with its name in reports.
    """
    job = {"path": [], "first": [*map(str, folders)], "modules": [module], "own": [],
           "files": [[str(file), name] for file, name in files]}
    answer = ask(python, CHILD, "find_calls", job, limit=LIMIT_SECONDS)
    by_event: dict[str, list[dict[str, Any]]] = {}
    for record in answer.records:
        by_event.setdefault(record["event"], []).append(record)
    if "end" not in by_event:
        why = [str(each["error"]) for each in by_event.get("failed", ())]
        return OfferedCalls(problem=f"{module} cannot be imported: {why[0]}" if why else
                            f"the search for calls {answer.ending.reason}")
    fields = ("name", "shown", "place", "recipe", "problem")
    calls = tuple(OfferedCall(**{name: each[name] for name in fields if name in each})
                  for each in answer.records if each["event"] == "offered")
    (end,) = by_event["end"]
    return OfferedCalls(calls=calls, complete=end["complete"], gil=end["gil"])


def call_files(root: Path) -> list[Path]:
    """Return the tests and the pages with examples in a folder, the tests first."""
    tests: list[Path] = []
    pages: list[Path] = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in NOT_READ and not name.startswith("."))
        inside = Path(folder).relative_to(root)
        is_tests = any(part in {"test", "tests", "testing"} for part in inside.parts)
        for name in sorted(files):
            path = root / inside / name
            if name.endswith(".py") and (is_tests or name.startswith("test") or name.endswith("_test.py")):
                tests.append(path)
            elif name.endswith(PAGES):
                pages.append(path)
    return tests + pages
