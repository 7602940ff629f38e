"""Check that the version is the same everywhere: `python3 .ci/check_version.py [v1.2.3]`.

With a tag, check that it has that version, too, and that CHANGELOG.md has a section for it.
"""

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
    """Return 1 if two versions differ, or if the tag's has no section in the changelog."""
    found = {name: match[1] if (match := re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)) else "none"
             for name, pattern in PLACES.items()}
    if len(sys.argv) > 1:
        found["the tag"] = sys.argv[1].removeprefix("v")
    if len(set(found.values())) > 1:
        print("versions differ:", ", ".join(f"{place} has {version}" for place, version in found.items()))
        return 1
    version = found["pyproject.toml"]
    if len(sys.argv) > 1 and f"\n## [{version}]" not in (ROOT / "CHANGELOG.md").read_text():
        print(f"CHANGELOG.md has no section [{version}]")
        return 1
    print(f"version {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
