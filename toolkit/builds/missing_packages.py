"""Find the packages that an environment of the user lacks; gilscope installs nothing into it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.model import Build


def find_missing_packages(build: Build, requirements: Sequence[str]) -> dict[str, str]:
    """Return each of the `requirements` that the environment of `build` lacks, with the reason and the remedy."""
    root = Path(build.executable).parent.parent
    present = {
        canonicalize_name(path.name.split("-")[0])
        for place in (root, *_base_prefixes(build, root))
        for pattern in ("*.dist-info", "*.egg-info")
        for path in place.glob(f"lib/python3.*/site-packages/{pattern}")
    }
    lacking = [text for text in requirements if distribution_of(text) not in present and _applies(text, build)]
    if build.source == "tox":
        why = f"not in the tox environment {root.name}; add it to its deps in tox.ini"
        return dict.fromkeys(lacking, why)
    return {text: f"not in the environment {root}, which is yours; install it there: "
                  f"{build.executable} -m pip install {shlex.quote(text)}" for text in lacking}


def _applies(requirement: str, build: Build) -> bool:
    try:
        marker = Requirement(requirement).marker
    except InvalidRequirement:
        return True
    there = {"python_version": build.minor, "python_full_version": build.version, "extra": ""}
    return marker is None or marker.evaluate(there)


def _base_prefixes(build: Build, root: Path) -> list[Path]:
    """Return the prefix of the base interpreter if the environment has access to its packages."""
    try:
        config = (root / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return []
    shared = re.search(r"^include-system-site-packages\s*=\s*true", config, re.IGNORECASE | re.MULTILINE)
    return [Path(build.base_executable).parent.parent] if shared else []


def distribution_of(requirement: str) -> str:
    """Return the normalized name of the distribution in a requirement such as "Some.Package[extra]>=1"."""
    match = re.match(r"[A-Za-z0-9][\w.-]*", requirement.strip())
    return canonicalize_name(match[0]) if match else requirement


def has_exact_version(requirement: str) -> bool:
    """Return True if a requirement names one version, as those of a lock do; a marker's `==` is none."""
    try:
        return any(each.operator in {"==", "==="} for each in Requirement(requirement).specifier)
    except InvalidRequirement:
        return False
