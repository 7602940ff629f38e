"""Check requirements that a user typed; refuse what is empty, invalid, or probably the value of another option."""

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
from gilscope.toolkit.builds.local_projects import folder_advice
from gilscope.toolkit.errors import UnknownNameError

# Packages of some of these names exist, but whoever types one alone means a value.
_VALUES = {"nan", "inf", "infinity", "true", "false", "none", "null", "yes", "no", "on", "off"}
_FILES = (".whl", ".tar.gz", ".zip")
_NUMBER = re.compile(r"[+-]?\d[\d._]*(e[+-]?\d+)?(t|[mun]?s|m|h|%)?", re.IGNORECASE)   # 3, 2.5, 1e6, 10s, 3.14t


def checked(text: str, *, paths: bool = False) -> str:
    """Return a requirement in a form for an installer.

    Args:
        text: The requirement.
        paths: Also accept the path of a wheel or of a source archive.

    Raises:
        UnknownNameError: It is no requirement, or looks like a value of another option.
    """
    if not text.strip():
        raise UnknownNameError("a requirement is empty: name a package, or leave it out")
    if looks_like_a_value(text):
        way_out = f"; if a package has that name, ask for {text.strip()}>=0" if text.strip()[:1].isalnum() else ""
        raise UnknownNameError(f"{text!r} looks like a value, not like a package, so nothing was installed{way_out}")
    if paths and "://" not in text and (text.endswith(_FILES) or text in {".", ".."} or os.sep in text):
        return _of_file(Path(text))
    try:
        Requirement(text)
    except InvalidRequirement as error:
        if not paths and (text in {".", ".."} or os.sep in text) and "://" not in text:
            raise UnknownNameError(f"{text!r} is a path, not a requirement: {folder_advice(Path(text))}") from error
        kind = "neither a requirement nor a path" if paths else "no requirement"
        raise UnknownNameError(f"{text!r} is {kind}: {str(error).splitlines()[0]}") from error
    return text


def _of_file(path: Path) -> str:
    """Return a package's file as a requirement with its name and checksum.

    Raises:
        UnknownNameError: Its name is not that of a wheel or an sdist.
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
    """Return True if a requirement is a single word that means a number or a switch."""
    word = text.strip().lower()
    return word in _VALUES or _NUMBER.fullmatch(word) is not None
