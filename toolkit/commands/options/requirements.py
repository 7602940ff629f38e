"""Requirements as a user types them: what is empty, none, or most likely the value of another option is refused."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)

from gilscope.toolkit.bounded_reading import opened
from gilscope.toolkit.errors import UnknownNameError

# Some have an owner on a package index; nobody who types them alone wants that.
_VALUES = {"nan", "inf", "infinity", "true", "false", "none", "null", "yes", "no", "on", "off"}
_FILES = (".whl", ".tar.gz", ".zip")
_NUMBER = re.compile(r"[+-]?\d[\d._]*(e[+-]?\d+)?(t|[mun]?s|m|h|%)?", re.IGNORECASE)   # 3, 2.5, 1e6, 10s, 3.14t


def checked(text: str, *, paths: bool = False) -> str:
    """Return a requirement that an installer may be given.

    Args:
        text: The requirement.
        paths: Whether it may be the path of a wheel or of a source archive, too.

    Raises:
        UnknownNameError: it is none, or looks like a value that was meant for something else.
    """
    if not text.strip():
        raise UnknownNameError("a requirement is empty: name a package, or leave it out")
    if looks_like_a_value(text):
        way_out = f"; if a package has that name, ask for {text.strip()}>=0" if text.strip()[:1].isalnum() else ""
        raise UnknownNameError(f"{text!r} looks like a value, not like a package: nothing was installed{way_out}")
    if paths and "://" not in text and (text.endswith(_FILES) or text in {".", ".."} or os.sep in text):
        return _of_file(Path(text))
    try:
        Requirement(text)
    except InvalidRequirement as error:
        kind = "neither a requirement nor a path" if paths else "no requirement"
        raise UnknownNameError(f"{text!r} is {kind}: {str(error).splitlines()[0]}") from error
    return text


def _of_file(path: Path) -> str:
    """Return a file of a package as a requirement with its name, and the sum of what is in it now.

    Raises:
        UnknownNameError: it is no wheel and no sdist, by its name.
    """
    if not path.exists():
        raise UnknownNameError(f"there is no file {str(path)!r}")
    try:
        name = str((parse_wheel_filename if path.suffix == ".whl" else parse_sdist_filename)(path.name)[0])
        with opened(path) as file:
            summed = hashlib.file_digest(file, "sha256").hexdigest()
    except (InvalidWheelFilename, InvalidSdistFilename, OSError) as error:
        folder = f"; for a project: gilscope evaluate {path}" if path.is_dir() else ""
        raise UnknownNameError(f"{str(path)!r} is no wheel and no source archive of a package{folder}") from error
    return f"{name} @ {path.resolve().as_uri()}#sha256={summed}"


def looks_like_a_value(text: str) -> bool:
    """Return whether a requirement is a bare word that stands for a number or a switch."""
    word = text.strip().lower()
    return word in _VALUES or _NUMBER.fullmatch(word) is not None
