"""The columns of an experiment's tables: a build with one of the models that were run in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gilscope.toolkit.experiments.results import Results
    from gilscope.toolkit.model import Build


@dataclass(frozen=True, slots=True)
class Arm:
    """A build with one of its models."""

    build: Build
    model: str

    @property
    def title(self) -> str:
        """The build's label, and that its GIL is on where it need not be."""
        control = self.build.free_threaded and self.model == "threads"
        return f"{self.build.label}, GIL on" if control else self.build.label

    @property
    def free_threaded(self) -> bool:
        """Whether the GIL is off."""
        return self.model == "free-threaded"


def arms_of(results: Results) -> list[Arm]:
    """Return the arms of the run in the order of the plan."""
    return [
        Arm(build, model)
        for build in results.builds
        for model in dict.fromkeys(cell.runner for cell in results.cells(build=build.label))
    ]
