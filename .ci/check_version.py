"""Check that the version is the same everywhere, and that of a tag: `python3 .ci/check_version.py [v1.2.3]`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {   # a file -> what precedes its version in quotes
    "pyproject.toml": r'^version = "(.+)"$',
    "gilscope/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
}


def main() -> int:
    """Return 1 if two versions differ."""
    found = {name: match[1] if (match := re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)) else "none"
             for name, pattern in PLACES.items()}
    if len(sys.argv) > 1:
        found["the tag"] = sys.argv[1].removeprefix("v")
    if len(set(found.values())) > 1:
        print("versions differ:", ", ".join(f"{place} has {version}" for place, version in found.items()))
        return 1
    print(f"version {found['pyproject.toml']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
