"""What the benchmark scripts share: a build by its path, ready to measure."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.find import find_builds, select_builds
from gilscope.toolkit.builds.packages.environment import build_environment
from gilscope.toolkit.measure.prepare.preparation import child_environment, needed_packages, question_spec
from gilscope.toolkit.measure.process.running import run_child

if TYPE_CHECKING:
    from pathlib import Path

    from gilscope.toolkit.model import Build


def build_of(named: str, label: str | None = None) -> Build:
    """Return the build in "LABEL=PATH", or the one that gilscope finds under the label."""
    wanted = named.partition("=")[0]
    (build,) = select_builds(find_builds([named] if "=" in named else []), wanted)
    return build if label is None else dataclasses.replace(build, label=label)


def prepared(build: Build, workload: str, folder: Path) -> tuple[Build, str, dict[str, str], float]:
    """Return the build, its python, its processes' environment, and the units of `workload` it does in a second."""
    python = str(build_environment(build, needed_packages(build)).python)
    environment = child_environment(())
    answer = run_child(python, question_spec(folder, workload=workload), environment, function="rate")
    return build, python, environment, answer.fields["units_per_second"]
