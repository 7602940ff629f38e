"""Find what a project's files say about free-threaded builds: CI jobs, classifiers, images without bytecode.

Files are only read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.evaluate.decision import Upkeep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CI_FILES = (".github/workflows/*.yml", ".github/workflows/*.yaml", ".gitlab-ci.yml", ".circleci/config.yml",
            "azure-pipelines.yml", ".travis.yml", ".cirrus.yml")
IMAGE_FILES = tuple(f"{folder}{name}" for folder in ("", "*/") for name in (
    "Dockerfile", "Dockerfile.*", "*.[Dd]ockerfile", "Containerfile", "compose.y*ml", "docker-compose*.y*ml"))
METADATA = ("pyproject.toml", "setup.cfg", "setup.py")
# The usual names of free-threaded environments: "3.14t", "py314t", "cp314t-*", "python-freethreading".
_FREE = re.compile(r"\b3\.1[3-9]\d*t\b|\b(?:py|cp)31[3-9]t|free-?thread", re.IGNORECASE)
_COMMENT = re.compile(r"(?:^|\s)#.*")
_CLASSIFIER = re.compile(r"Programming Language :: Python :: Free Threading(?: :: \d - \w+)?")
# "ENV PYTHONDONTWRITEBYTECODE 1", "PYTHONDONTWRITEBYTECODE=1", 'PYTHONDONTWRITEBYTECODE: "1"'; any text means yes.
_NO_BYTECODE = re.compile(r"""\bPYTHONDONTWRITEBYTECODE(?:\s*[=:]\s*|[ \t]+)["']?[^\s"']""")
_COMPILES = re.compile(r"\bcompileall\b|--compile-bytecode\b|\bUV_COMPILE_BYTECODE\b")


def upkeep(root: Path) -> Upkeep:
    """Return the CI file and classifier of the project in `root`; unreadable files are skipped."""
    metadata = "\n".join(_text(root / name) for name in METADATA)
    found = _CLASSIFIER.search(_uncommented(metadata))
    published = bool(re.search(r"^\[(project|tool\.poetry|metadata)\]", metadata, re.MULTILINE)) or (
        root / "setup.py").is_file()
    return Upkeep(ci=next(_with_free_builds(root), ""), classifier=found[0] if found else "", published=published,
                  no_bytecode=tuple(_without_bytecode(root)))


def _with_free_builds(root: Path) -> Iterator[str]:
    for pattern in CI_FILES:
        for path in sorted(root.glob(pattern)):
            if _FREE.search(_uncommented(_text(path))):
                yield str(path.relative_to(root))


def _without_bytecode(root: Path) -> Iterator[str]:
    """Yield the lines of image files that forbid writing bytecode, unless the file compiles all of it beforehand."""
    for path in sorted({path for pattern in IMAGE_FILES for path in root.glob(pattern)}):
        text = _uncommented(_text(path))
        if not _COMPILES.search(text):
            yield from (f"{path.relative_to(root)}:{number}" for number, line in enumerate(text.splitlines(), 1)
                        if _NO_BYTECODE.search(line))


def _uncommented(text: str) -> str:
    return "\n".join(_COMMENT.sub("", line) for line in text.splitlines())


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError):
        return ""
