"""Shared parts of the benchmark scripts: builds that are prepared for measurements, and options."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.builds.find import find_builds, select_builds
from gilscope.toolkit.measure.measured_process import run_child
from gilscope.toolkit.measure.preparation import child_environment, needed_packages, question_spec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Build


def build_of(named: str, label: str | None = None) -> Build:
    """Return the build in "LABEL=PATH", or the one that gilscope finds under the label."""
    wanted = named.partition("=")[0]
    (build,) = select_builds(find_builds([named] if "=" in named else []), wanted)
    return build if label is None else dataclasses.replace(build, label=label)


def pair_parser(about: str | None, programs: Sequence[str], seconds: float) -> argparse.ArgumentParser:
    """Return a parser with options for a free-threaded build and the build with a GIL to compare it with."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--free", default="3.14t", metavar="LABEL[=PATH]", help="the build without a GIL")
    parser.add_argument("--gil", default="3.14", metavar="LABEL[=PATH]", help="its twin with one")
    parser.add_argument("--programs", default=",".join(programs), metavar="NAMES")
    parser.add_argument("--seconds", type=float, default=seconds,
                        help=f"of evaluate, per program (default: {seconds:.0f})")
    return parser


def prepared(build: Build, workload: str, folder: Path) -> tuple[Build, str, dict[str, str], float]:
    """Return the build, its python, its processes' environment, and its units of `workload` per second."""
    python = str(build_environment(build, needed_packages(build)).python)
    environment = child_environment(())
    answer = run_child(python, question_spec(folder, workload=workload), environment, function="rate")
    return build, python, environment, answer.fields["units_per_second"]
