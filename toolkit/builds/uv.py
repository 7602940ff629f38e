"""The uv command.  Runs under Python 3.9 (see the package's docstring)."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def uv_command() -> str | None:
    """Return uv: on PATH, or installed beside the running Python; None if there is neither."""
    beside = Path(sys.executable).with_name("uv")
    return shutil.which("uv") or (str(beside) if os.access(beside, os.X_OK) else None)
