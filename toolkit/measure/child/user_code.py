"""Words for what fails in the user's code: why a name leads to nothing, and where an error was raised.

Kept apart from `base` and `subject`, which load workloads and pyperf: `scale` uses it in a process without them.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.escaping import cut
from gilscope.toolkit.measure.child import calls

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 500   # characters of an exception's text
FRAMES = 5   # of the user's code, the innermost ones
MOST_NAMES = 8   # in a message
_FRAME = re.compile(r'File "(.+?)", line (\d+), in (\S+)\n *(.*)')
_OURS = tuple(str(Path(__file__).resolve().parents[3] / name) + os.sep for name in ("toolkit", "runners", "workloads"))


class RefusedError(Exception):
    """The user's function, payloads or check cannot be used; the message has the reason and the remedy."""


class _NotFoundError(RefusedError):
    """A module was not found: `missing`, by its name."""

    def __init__(self, message: str, missing: str) -> None:
        super().__init__(message)
        self.missing = missing


class ModuleMissingError(_NotFoundError):
    """The user's module, or a package that it should be in, was not found."""


class ImportMissingError(_NotFoundError):
    """The user's module imports another that this build lacks; the process that knows the options has the remedy."""


def resolve(name: str) -> Any:
    """Return the object that "package.module:attribute.path" names.

    Raises:
        RefusedError: there is no such module or attribute, or the module imports one that is missing.
    """
    module_name, _, path = name.partition(":")
    if module_name == "__main__":
        raise RefusedError(f"{name} is in __main__, which workers cannot import: name the module that defines it")
    try:
        return calls.find(name)
    except calls.NameMissingError as missed:
        own = [each for each in dir(missed.owner)
               if not isinstance(getattr(missed.owner, each, None), ModuleType)]
        raise RefusedError(f"{module_name} has no {path!r}{_hint(missed.part, own)}") from None
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if module_name == missing or module_name.startswith(missing + "."):
            outer, _, last = missing.rpartition(".")
            if outer in sys.modules:
                raise ModuleMissingError(
                    f"there is no module {missing!r}: {outer} was found, and has no {last!r}", missing) from error
            raise ModuleMissingError(
                f"there is no module {missing!r} (looked for {name}); "
                "run from the folder that holds it, or name that folder with --path or PYTHONPATH", missing
            ) from error
        raise ImportMissingError(
            f"{module_name} imports {missing!r}, which this build does not have", missing) from error


def _hint(name: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches

    public = [each for each in known if not each.startswith("_")]
    close = get_close_matches(name, public, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    more = f" and {len(public) - MOST_NAMES} more" if len(public) > MOST_NAMES else ""
    return f"; it has {', '.join(public[:MOST_NAMES]) or 'nothing public'}{more}"


def own_frames(error: BaseException) -> list[tuple[str, str]]:
    """Return the innermost frames of an error in the user's own code, each with its source line.

    Frames of gilscope and of libraries are left out: [("mine.py:7 in work", "return 1 // number")].
    """
    import sysconfig
    import traceback

    places = [(each.filename, each.lineno, each.name, each.line or "")
              for each in traceback.extract_tb(error.__traceback__)]
    # From a worker in another process or interpreter, only the text of the traceback arrives.
    places += [(each[1], int(each[2]), each[3], each[4].strip()) for each in _FRAME.finditer(str(error.__cause__))]
    if isinstance(error, SyntaxError) and error.filename:   # no frame of its traceback is in the file
        places.append((error.filename, error.lineno or 0, "<module>", (error.text or "").strip()))
    # Only these of sysconfig's paths: its prefix may be /usr, and /usr/src/app is user code.
    library = {os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "purelib", "platlib")}
    return [(f"{_shortened(file)}:{line} in {name}", source) for file, line, name, source in places
            if not file.startswith("<") and not os.path.realpath(file).startswith((*_OURS, *library))][-FRAMES:]


def _shortened(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


def place_lines(frames: Sequence[Sequence[str]]) -> list[str]:
    """Return one aligned line for each of `own_frames`: "mine.py:7 in work  return 1 // number"."""
    width = max((len(place) for place, _ in frames), default=0)
    return [f"{place:{width}}  {source}".rstrip() for place, source in frames]


def shown(error: BaseException) -> str:
    """Return an exception as one line, cut to a length that can be shown."""
    message = first_line(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's text, cut to a length that can be shown; "" if it has none."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # noqa: BLE001 - a user's class may raise anything
        return ""
    return cut(lines[0], LONGEST) if lines else ""
