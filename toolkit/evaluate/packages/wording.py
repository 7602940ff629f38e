"""How a package that was looked at is named in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.doctor import version_of
from gilscope.toolkit.evaluate.packages.judge.status import Status

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.packages.doctor import Finding


def named(finding: Finding) -> str:
    """Return name and version; of what could not be installed, the version that the build with the GIL has."""
    return f"{finding.name} {version_of(finding)}".strip()


def clause(status: Status) -> str:
    """Return a status as what follows the package's name in a sentence."""
    return {Status.NO_WHEEL: "has no wheel", Status.NOT_FOUND: "was not found"}.get(status, status.value)


def needed(finding: Finding) -> str:
    """Return by which way it is needed, when nobody asked for it: its owner can be asked for a release."""
    return f"; needed by {' -> '.join(finding.way[:-1])}" if len(finding.way) > 1 else ""
