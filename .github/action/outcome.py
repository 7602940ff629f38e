"""The outcome of a mode, and its consequence for the job.  Pure, but for `read_report`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inputs import FINDINGS, INCONCLUSIVE

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from findings import ActionFinding

CLEAN, FAILED = "clean", "failed"   # results, beside FINDINGS and INCONCLUSIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeOutcome:
    """The findings of a mode, or the reason why there are none.

    Attributes:
        headline: The result in some words, which follow the name of the mode.
        findings: What is shown beside the lines.
        count: The findings in all; there may be one without more words.
        unknown: Why nothing was found out; "" if something was.
        problem: What else went wrong, such as a test that failed; "" for nothing.
        status: The exit status of what went wrong, not 0.
        detail: Markdown below the headline.
        report: gilscope's report as JSON.
        sarif: The findings as SARIF, of the modes whose findings have places.
    """

    headline: str
    findings: tuple[ActionFinding, ...] = ()
    count: int = 0
    unknown: str = ""
    problem: str = ""
    status: int = 1
    detail: str = ""
    report: Path | None = None
    sarif: dict[str, Any] | None = None

    @property
    def result(self) -> str:
        """One of CLEAN, FINDINGS, INCONCLUSIVE and FAILED."""
        if self.count:
            return FINDINGS
        if self.problem:
            return FAILED
        return INCONCLUSIVE if self.unknown else CLEAN

    def exit_status(self, fail_on: AbstractSet[str]) -> int:
        """Return the status that the job's step ends with."""
        if self.problem:
            return self.status
        return int(self.result in fail_on)


def failed(status: int, problem: str) -> ModeOutcome:
    """Return the outcome of a check that could not be made."""
    return ModeOutcome(headline="the check failed", problem=problem, status=status or 1)


def read_report(path: Path, schema: str) -> dict[str, Any] | None:
    """Return a report of gilscope; None if it was not written.

    Raises:
        ValueError: It is another kind of report, or of another version.
    """
    if not path.exists() or not (text := path.read_text(encoding="utf-8")):
        return None
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("schema") != schema:
        raise ValueError(f"{path.name} is no report of the form {schema}: this action and gilscope differ in version")
    return found
