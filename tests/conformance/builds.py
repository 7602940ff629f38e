"""The Pythons that the real-model tests run in: this one, and those that the environment names."""

import functools
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def builds() -> dict[str, str]:
    """Return {label: executable}; GILSCOPE_TEST_BUILDS="3.14t=/path/to/python,..." adds others to the current one."""
    found = {"current": sys.executable}
    here = Path(sys.executable).resolve()
    for entry in filter(None, os.environ.get("GILSCOPE_TEST_BUILDS", "").split(",")):
        label, _, path = entry.partition("=")
        if Path(path.strip()).resolve() != here:    # the one that this environment was made from
            found[label.strip()] = path.strip()
    return found


@functools.cache
def is_free_threaded(python: str) -> bool:
    """Return True if this Python was built without a GIL."""
    code = "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"


def environment(**extra: str) -> dict[str, str]:
    """Return an environment in which a child finds the project and warns about everything."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **extra}


def run_child(python: str, *arguments: str, timeout: float = 600, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a build to its end and return what it wrote; warnings are errors in it."""
    return subprocess.run(
        [python, "-W", "error", *arguments], cwd=ROOT, env=environment(**extra), timeout=timeout,
        capture_output=True, text=True, check=False)
