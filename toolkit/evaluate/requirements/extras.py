"""Tell a distribution's requirements from those of its extras: both are `Requires-Dist`, the latter with a condition.

The rest of a marker, such as a version of Python, is decided on each build and stays as it is.
"""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

# As `packaging` writes markers: one space around operators, double quotes; either side may be the variable.
_CONDITION = re.compile(r'extra == "([^"]*)"|"([^"]*)" == extra')
_ALWAYS, _NEVER = 'python_version >= "3"', 'python_version < "3"'


def is_of_an_extra(text: str) -> bool:
    """Return True if a requirement is for an extra alone; False also for what is not a requirement."""
    requirement = _parsed(text)
    return requirement is not None and _CONDITION.search(str(requirement.marker or "")) is not None


def for_extra(text: str, extra: str) -> str | None:
    """Return a requirement of `extra` without the condition on it, None if it is for no extra or for others."""
    requirement = _parsed(text)
    marker = str(requirement.marker or "") if requirement else ""
    wanted = canonicalize_name(extra)

    def is_wanted(condition: re.Match[str]) -> bool:
        return canonicalize_name(condition[1] or condition[2] or "") == wanted

    if requirement is None or not any(map(is_wanted, _CONDITION.finditer(marker))):
        return None
    rest = _CONDITION.sub(lambda condition: _ALWAYS if is_wanted(condition) else _NEVER, marker)
    requirement.marker = None
    return f"{requirement} ; {rest}" if requirement.url else f"{requirement}; {rest}"


def _parsed(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None
