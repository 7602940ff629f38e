"""What a process of a build does first, before it asks or imports anything."""

from __future__ import annotations

import faulthandler
import json
import sys

from gilscope.toolkit.evaluate.children.file_limits import bound_files
from gilscope.toolkit.processes import lifeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def begin() -> dict[str, Any]:
    """Return the job that the standard arguments name, after what every one of these processes does first."""
    lifeline.settle()   # who started it holds the line: it can close what it has
    faulthandler.enable()   # a crash, and the signal that ends a hang, leave the Python stack in the output
    bound_files()
    with open(sys.argv[1], encoding="utf-8") as source:
        job: dict[str, Any] = json.load(source)
    job["file"] = sys.argv[1]
    sys.argv[1:] = []       # some packages read the command line when they are imported
    sys.path.extend(path for path in job["path"] if path not in sys.path)
    return job
