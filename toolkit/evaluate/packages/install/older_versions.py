"""Old versions that an installer went back to, as newer ones have no wheel: often from before there was C code.

Only asked of what was chosen freely and came as pure Python: whatever that does says nothing of the package of today.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from gilscope.toolkit.evaluate.children.at_once import at_once
from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from packaging.specifiers import SpecifierSet

    from gilscope.toolkit.evaluate.packages.facts import Distribution

SECONDS = 30.0   # for one question to the index
AT_ONCE = 4
_OFFERED = re.compile(r"^Available versions: (.+)$", re.MULTILINE)


def went_back(python: Path, requirements: Sequence[str], found: Iterable[Distribution]) -> dict[str, str]:
    """Return which pure Python distributions are older than what was asked for, with the newest version.

    Args:
        python: Of the environment; without a pip in it nothing can be told.
        requirements: As the user writes them; a pinned one is what was asked for.
        found: What was installed for them.
    """
    free = dict(_free(requirements))
    asked = [each for each in found if each.pure and each.name in free]
    told = at_once(lambda each: _newer(python, each, free[each.name]), asked, AT_ONCE)
    return {each.name: newest for each, newest in zip(asked, told, strict=True) if newest}


def _newer(python: Path, found: Distribution, allowed: SpecifierSet) -> str:
    """Return the newest version when it has no wheel, and what was found is the newest that has one; else ""."""
    newest = newest_of(_answer(python, found.name), allowed)
    if not newest or not _older(found.version, newest):
        return ""
    # Otherwise something else that was asked for takes no newer one, or the index does not answer any more.
    with_wheel = newest_of(_answer(python, found.name, "--only-binary", ":all:"), allowed)
    return newest if with_wheel and not _older(found.version, with_wheel) else ""


def newest_of(answer: str, allowed: SpecifierSet) -> str:
    """Return the newest allowed release in what `pip index versions` prints; "" when there is none."""
    told = _OFFERED.search(answer)
    versions = [Version(text) for text in told[1].split(", ")] if told else []
    return str(max((each for each in versions if each in allowed), default=""))


def _free(requirements: Iterable[str]) -> Iterable[tuple[str, SpecifierSet]]:
    """Yield the names and the limits of requirements that leave a choice."""
    for text in requirements:
        try:
            wanted = Requirement(text)
        except InvalidRequirement:
            continue   # a path
        if not wanted.url and not any(each.operator in {"==", "==="} for each in wanted.specifier):
            yield canonicalize_name(wanted.name), wanted.specifier


def _older(version: str, newest: str) -> bool:
    try:
        return Version(version) < Version(newest)
    except InvalidVersion:   # from before the rules for versions
        return True


def _answer(python: Path, name: str, *options: str) -> str:
    command = [str(python), "-I", "-m", "pip", "index", "versions", "--disable-pip-version-check", "--no-input", name,
               *options]
    try:
        return run(command, timeout=SECONDS).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""   # the installer has answered, so the index is there: this is a doubt less, no failure
