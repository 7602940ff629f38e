"""Tell the code under test from its tests, and find a free ID of sys.monitoring to watch it.

Uses the standard library alone, as the witness in a test run loads it by its path.
"""

from __future__ import annotations

import os
import sys

TOOLS = (5, 4, 3)     # IDs for sys.monitoring; the race checker searches from the other end
TESTS = ("test", "tests", "testing", "conftest.py")   # folders and files that are not part of the code under test
INSTALLED = ("site-packages", "dist-packages")


def free_tool() -> int | None:
    """Return an ID of sys.monitoring that no other tool uses; None if there is none."""
    return next((tool for tool in TOOLS if sys.monitoring.get_tool(tool) is None), None)


def is_under_test(file: str, folder: str) -> bool:
    """Return True if a file is below a project's folder, and neither a test nor an installed package."""
    if not file.startswith(folder + os.sep):
        return False
    *above, last = file[len(folder):].split(os.sep)
    return not (last.startswith("test_") or last.endswith("_test.py")
                or any(part in TESTS or part in INSTALLED for part in (*above, last)))
