"""What is left to do when gilscope itself fails: one sentence, and a file that a report can be made of."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

ISSUE = "attach it to a report, once you have looked what is in it"
MOST_CHARACTERS = 500   # of what an exception says, which may hold a whole file


def last_words(error: BaseException, words: Sequence[str]) -> str:
    """Return what to say of an error that nothing has foreseen, after it was written down where that is possible."""
    said = ascii(str(error))[1:-1]   # on one line, and without anything that a terminal would obey
    said = said if len(said) <= MOST_CHARACTERS else f"{said[:MOST_CHARACTERS]}... ({len(said)} characters)"
    what = f"gilscope itself failed, which is a mistake in it: {type(error).__name__}{': ' if said else ''}{said}"
    if (file := _written(error, words)) is None:
        return f"{what}; the traceback could not be written anywhere"
    return f"{what}; the traceback is in {file}: {ISSUE}"


def _written(error: BaseException, words: Sequence[str]) -> Path | None:
    lines = [
        f"gilscope {__version__}", f"{platform.python_implementation()} {sys.version}", platform.platform(),
        f"gilscope {' '.join(map(ascii, words))}", "", *traceback.format_exception(error, limit=-100),
    ]
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"gilscope-failed-{time.strftime('%Y%m%d-%H%M%S')}-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join(lines))
    except OSError:
        return None
    return Path(name)
