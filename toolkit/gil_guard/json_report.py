"""`pytest --gil=off --gil-json FILE`: what the session found, as toolkit/report/schemas/guard.json describes it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import in_json

if TYPE_CHECKING:
    from gilscope.toolkit.gil_guard.causes import GilCause

SCHEMA = "gilscope/guard/1"
TOOL = "pytest --gil=off"
# When the GIL was turned on.
START, COLLECTION, TEST, BETWEEN, END = "start", "collection", "test", "between tests", "end"


@dataclass(slots=True, kw_only=True)
class GuardRecord:
    """The findings of a session with --gil=off; a worker of pytest-xdist sends it to its controller as plain values."""

    checked: bool = True             # False: the build has the GIL, or is told to keep it off whatever is imported
    tests: int = 0                   # that have run
    with_gil: int = 0                # of these, with the GIL on
    in_threads: int = 0              # of these, with project code in a second thread
    threads_known: bool = True
    failed_otherwise: bool = False   # something failed for another reason than the GIL
    findings: list[dict[str, Any]] = field(default_factory=list)

    def add(self, cause: GilCause, when: str, where: str = "") -> None:
        """Add something that turned the GIL on, during the test or the collection of a file with that node ID."""
        places = [{"path": path, "line": line} for path, line in cause.imported_by]
        finding = {"when": when, "where": where, "module": cause.module, "package": cause.package,
                   "version": cause.version, "imported_by": places, "text": cause.text}
        if finding not in self.findings:   # every worker imports what conftest.py imports
            self.findings.append(finding)

    def merge(self, answer: dict[str, Any]) -> None:
        """Add what a worker sent."""
        self.tests += answer["tests"]
        self.with_gil += answer["with_gil"]
        self.in_threads += answer["in_threads"]
        self.threads_known &= answer["threads_known"]
        self.failed_otherwise |= answer["failed_otherwise"]
        self.findings += [each for each in answer["findings"] if each not in self.findings]

    def plain(self) -> dict[str, Any]:
        """Return the values for a controller."""
        return asdict(self)

    def write(self, path: str) -> None:
        """Write the document.

        Raises:
            OSError: The file cannot be written.
        """
        values = self.plain()
        if not values.pop("threads_known"):
            values["in_threads"] = None
        document = {"schema": SCHEMA, "tool": TOOL, **values}
        Path(path).write_text(in_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n", encoding="utf-8")
