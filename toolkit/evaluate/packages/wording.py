"""How a package that was looked at is named in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.doctor import version_of

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.packages.doctor import Finding


def named(finding: Finding) -> str:
    """Return name and version; of what could not be installed, the version that the build with the GIL has."""
    return f"{finding.name} {version_of(finding)}".strip()


def needed(finding: Finding) -> str:
    """Return by which way it is needed, when nobody asked for it: its owner can be asked for a release."""
    return f"; needed by {' -> '.join(finding.way[:-1])}" if len(finding.way) > 1 else ""
