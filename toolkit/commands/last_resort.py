"""Report a failure of gilscope itself: one sentence, and a file with the traceback.

A module of its own, because it is imported only after a failure.
"""

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

ISSUE = "check what is in it, then attach it to a bug report"
MOST_CHARACTERS = 500   # of an exception's message, which may contain a whole file


def last_words(error: BaseException, words: Sequence[str]) -> str:
    """Return the sentence on an unexpected error, after writing its traceback to a file if possible."""
    said = ascii(str(error))[1:-1]   # on one line, without control characters
    said = said if len(said) <= MOST_CHARACTERS else f"{said[:MOST_CHARACTERS]}... ({len(said)} characters)"
    what = f"gilscope itself failed, which is a bug: {type(error).__name__}{': ' if said else ''}{said}"
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
