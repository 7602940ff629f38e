"""Concurrency models as reports and pages show them: order, colour and mark, effort.

Reports and pages never import runners; they read the runners' properties here.  A stored run may contain models of
another version: those are shown without their own colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.runners.base import HARDEST, Appearance
from gilscope.runners.catalog import RUNNERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyModel:
    """One model; its fields are those of a runner."""

    name: str
    family: str = ""                        # equal to the name where the model has no variants
    gil: bool | None = None
    awaits: bool = False                    # its number of workers counts tasks in flight
    effort: int = HARDEST
    appearance: Appearance | None = None


# Models of experiments that are no runners, by the runner that they follow in legends.
_OF_EXPERIMENTS: dict[str, dict[str, Appearance]] = {
    "serial": {"sync": Appearance("#222222", "h", "short dashes", "----")},
    "asyncio": {
        "loops": Appearance("#E69F00", ">", "dots", "\\\\"),
        "tornado": Appearance("#E69F00", "P", "short dashes", "++"),
        "gevent": Appearance("#56B4E9", "*", "dashes", "oo"),
    },
}


def _models() -> Iterator[ConcurrencyModel]:
    for runner in RUNNERS:
        yield ConcurrencyModel(name=runner.name, family=runner.family or runner.name, gil=runner.gil,
                               awaits=runner.awaits, effort=runner.effort, appearance=runner.appearance)
        for name, appearance in _OF_EXPERIMENTS.get(runner.name, {}).items():
            yield ConcurrencyModel(name=name, family=name, appearance=appearance)


MODELS = {model.name: model for model in _models()}   # in the order of tables and legends

# One appearance for each family, in the same order: only what has a colour of its own.
APPEARANCES = {model.family: model.appearance for model in MODELS.values() if model.appearance is not None}


def find_model(name: str) -> ConcurrencyModel:
    """Return the model of that name, one without properties if no runner has it."""
    return MODELS.get(name) or ConcurrencyModel(name=name, family=name)


def family(name: str) -> str:
    """Return the family of a model: "processes" for each way to start processes, else the model's own name."""
    return find_model(name).family


def in_table_order(names: Iterable[str]) -> list[str]:
    """Return names of models, each once, in the order of tables; unknown ones last, in the order that they came in."""
    places = {each: place for place, each in enumerate(dict.fromkeys(model.family for model in MODELS.values()))}
    return sorted(dict.fromkeys(names), key=lambda name: places.get(family(name), len(places)))
