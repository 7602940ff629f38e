"""Requirements as a user types them: what is empty, none, or most likely the value of another option is refused."""

from __future__ import annotations

import re
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from gilscope.toolkit.errors import UnknownNameError

# Some have an owner on a package index; nobody who types them alone wants that.
_VALUES = {"nan", "inf", "infinity", "true", "false", "none", "null", "yes", "no", "on", "off"}
_NUMBER = re.compile(r"[+-]?\d[\d._]*(e[+-]?\d+)?(t|[mun]?s|m|h|%)?", re.IGNORECASE)   # 3, 2.5, 1e6, 10s, 3.14t


def checked(text: str, *, paths: bool = False) -> str:
    """Return a requirement that an installer may be given; with `paths` also a path of something to install.

    Raises:
        UnknownNameError: it is none, or looks like a value that was meant for something else.
    """
    if not text.strip():
        raise UnknownNameError("a requirement is empty: name a package, or leave it out")
    if looks_like_a_value(text):
        raise UnknownNameError(f"{text!r} looks like a value, not like a package: nothing was installed; if a package "
                               f"has that name, ask for {text.strip()}>=0")
    try:
        Requirement(text)
    except InvalidRequirement as error:
        if paths and Path(text).exists():
            return text
        kind = "neither a requirement nor a path" if paths else "no requirement"
        raise UnknownNameError(f"{text!r} is {kind}: {str(error).splitlines()[0]}") from error
    return text


def looks_like_a_value(text: str) -> bool:
    """Return whether a requirement is a bare word that stands for a number or a switch."""
    word = text.strip().lower()
    return word in _VALUES or _NUMBER.fullmatch(word) is not None
