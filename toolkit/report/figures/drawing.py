"""Draw figures in a separate process, in an environment of its own that has matplotlib.

A matplotlib installed beside gilscope is never used, so figures are drawn in the same way everywhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.environment import build_environment, harness_path
from gilscope.toolkit.builds.find import find_builds
from gilscope.toolkit.builds.package_installer import INDEX_UNREACHED
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.processes.supervised import run
from gilscope.toolkit.report.figures.figure import dump
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.figures.figure import Figure

MATPLOTLIB = "matplotlib>=3.10"
PACKAGES = (MATPLOTLIB, "rich>=14.0")   # rich: the package that holds `plots` imports it
LABEL = "figures"   # the name of the environment in progress messages, and its purpose
DRAW_SECONDS = 300.0   # drawing takes some seconds on an idle machine
# How the messages begin if matplotlib cannot be installed.
WITHOUT_INDEX = f"no figures: {INDEX_UNREACHED} to install matplotlib from"
WITHOUT_WHEELS = "no figures, as no Python at hand gets matplotlib"


class CannotDrawError(ToolkitError):
    """Figures cannot be drawn on this machine; the message says why."""


def drawing_python(say: Callable[[str], None]) -> Path:
    """Return a Python with matplotlib: gilscope's own interpreter if there are wheels for it, else another build.

    Raises:
        CannotDrawError: No Python can get matplotlib.  The message ends with the remedy ("with a network"), so that
            the caller can append the command that draws the figures then.
    """
    reasons: dict[str, None] = {}
    for build in _candidates():
        try:
            made = build_environment(replace(build, label=LABEL), [], PACKAGES, purpose=LABEL, on_progress=say)
        except BuildError as error:
            reasons[f"{build.version}: {error}"] = None
            continue
        if not made.missing:
            return made.python
        problem = next(iter(made.missing.values()))
        if problem.unreached:
            raise CannotDrawError(f"{WITHOUT_INDEX}; with a network, or a mirror in PIP_INDEX_URL or UV_INDEX_URL")
        reasons[f"{build.version}{'t' if build.free_threaded else ''}: {problem}"] = None
    raise CannotDrawError(f"{WITHOUT_WHEELS} ({'; '.join(reasons)}); with a CPython that it has wheels for, such as "
                          "3.13")


def draw_figures(python: Path, figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Write each figure as SVG and PNG into `folder`, and return the SVGs.

    Args:
        python: The result of `drawing_python`.
        figures: The figures, each with a different name.
        folder: The folder for the files; created if it does not exist.

    Raises:
        CannotDrawError: The drawing process failed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MPL"))}
    environment |= {"PYTHONPATH": str(harness_path()), "MPLBACKEND": "agg",
                    "MPLCONFIGDIR": str(cache_dir() / "matplotlib")}   # the font cache; no settings of the user
    try:
        with tempfile.TemporaryDirectory(prefix=temporary.prefix("figures")) as place:
            described = Path(place, "figures.json")
            described.write_text(dump(figures), encoding="utf-8")
            # -P: files in the current folder must not shadow modules.
            done = run([python, "-P", "-m", "gilscope.toolkit.report.figures.plots", folder, described],
                       timeout=DRAW_SECONDS, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotDrawError(f"no figures: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise CannotDrawError(f"no figures: the process that draws them failed: {lines[-1]}")
    return [folder / f"{figure.name}.svg" for figure in figures]


def _candidates() -> Iterable[Build]:
    """Return the running interpreter, then the others: those with a GIL first, since they have more wheels."""
    found = find_builds([f"{LABEL}={sys.executable}"])
    return sorted(found.builds, key=lambda build: (build.label != LABEL, build.free_threaded, build.debug))
