"""Has figures drawn: by a process of its own, in an environment of gilscope's that has matplotlib.

Whether the environment that gilscope was installed into has matplotlib changes nothing: there is one way.
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
from gilscope.toolkit.builds.find import find_builds
from gilscope.toolkit.builds.packages.environment import build_environment, harness_path
from gilscope.toolkit.builds.packages.installer import UNREACHED
from gilscope.toolkit.builds.user_dirs import cache_dir
from gilscope.toolkit.errors import BuildError, ToolkitError
from gilscope.toolkit.processes.supervised import run
from gilscope.toolkit.report.figures.as_json import dump

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gilscope.toolkit.model import Build
    from gilscope.toolkit.report.figures.figure import Figure

MATPLOTLIB = "matplotlib>=3.10"
PACKAGES = (MATPLOTLIB, "rich>=14.0")   # rich: the package that holds `plots` imports it
LABEL = "figures"   # how progress names the environment; also its purpose
DRAW_SECONDS = 300.0   # for some seconds' work on a machine that is not busy


class CannotDrawError(ToolkitError):
    """Figures cannot be had here; the message says why."""


def drawing_python(say: Callable[[str], None]) -> Path:
    """Return a Python that can draw: of gilscope's own interpreter where that has wheels, else of another at hand.

    Raises:
        CannotDrawError: None can be had; the message ends with what it takes, and the command that draws then follows.
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
        reason = next(iter(made.missing.values()))
        if UNREACHED in reason:
            raise CannotDrawError(f"no figures: {UNREACHED} to install matplotlib from; with a network, or a mirror in "
                                  "PIP_INDEX_URL or UV_INDEX_URL")
        reasons[f"{build.version}{'t' * build.free_threaded}: {reason}"] = None
    raise CannotDrawError(f"no figures, as no Python at hand gets matplotlib ({'; '.join(reasons)}); with a CPython "
                          "that it has wheels for, such as 3.13")


def draw_figures(python: Path, figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Write each figure as SVG and PNG into `folder`, and return the SVGs.

    Args:
        python: What `drawing_python` returned.
        figures: What they show; each has a name of its own.
        folder: Made when it is not there.

    Raises:
        CannotDrawError: The process that draws failed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MPL"))}
    environment |= {"PYTHONPATH": str(harness_path()), "MPLBACKEND": "agg",
                    "MPLCONFIGDIR": str(cache_dir() / "matplotlib")}   # its list of fonts; no settings of the user's
    try:
        with tempfile.TemporaryDirectory(prefix=temporary.prefix("figures")) as place:
            described = Path(place, "figures.json")
            described.write_text(dump(figures), encoding="utf-8")
            # -P: what lies in the current folder is not what is imported.
            done = run([python, "-P", "-m", "gilscope.toolkit.report.figures.plots", folder, described],
                       timeout=DRAW_SECONDS, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotDrawError(f"no figures: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise CannotDrawError(f"no figures: the process that draws them failed: {lines[-1]}")
    return [folder / f"{figure.name}.svg" for figure in figures]


def _candidates() -> Iterable[Build]:
    """Return the interpreter that runs us, then others: with a GIL first, as those have more wheels; newest first."""
    found = find_builds([f"{LABEL}={sys.executable}"])
    return sorted(found.builds, key=lambda build: (build.label != LABEL, build.free_threaded, build.debug))
