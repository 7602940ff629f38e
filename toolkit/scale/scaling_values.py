"""The answer of `gilscope scale` as JSON, and back; `report/schemas/scale.json` describes it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.model import Machine  # noqa: TC001 - `from_plain` reads the hints
from gilscope.toolkit.records import from_plain, plain_value, to_plain
from gilscope.toolkit.report.as_json import machine_values
from gilscope.toolkit.scale.api import CallableScaling  # noqa: TC001 - likewise
from gilscope.toolkit.scale.repairs import advice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCHEMA = "gilscope/scale/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildScaling:
    """The findings on one build, or the reason why there are none."""

    label: str          # of the build
    version: str
    callables: tuple[CallableScaling, ...] = ()     # one for a function; of a module, those that lose most first
    complete: bool = True                           # all calls in tests and doctests were found and tried
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingAnswer:
    """An answer of `gilscope scale`, about a function or a module."""

    subject: str                                  # MODULE:FUNCTION, or the module of --api
    threads: int
    started: str                                  # ISO 8601, with its time zone
    machine: Machine
    command: str                                  # that asked
    builds: tuple[BuildScaling, ...]
    gilscope: str = __version__                   # that answered

    @property
    def of_module(self) -> bool:
        """Return True for --api."""
        return ":" not in self.subject


def answer_values(answer: ScalingAnswer) -> dict[str, Any]:
    """Return an answer as JSON holds it, with the repairs of each function in words."""
    values = {"schema": SCHEMA} | to_plain(answer) | {"machine": machine_values(answer.machine)}
    for build, plain_build in zip(answer.builds, values["builds"], strict=True):
        for each, plain in zip(build.callables, plain_build["callables"], strict=True):
            if found := each.found:
                plain["found"]["repairs"] = plain_value(advice(found.judgement.obstacle, found.repairable))
    finite: dict[str, Any] = _mapped(values, lambda end: None if end == inf else end)
    return finite


def read_answer(values: Mapping[str, Any]) -> ScalingAnswer:
    """Return the answer that `answer_values` was given.

    Raises:
        DamagedError: A field is missing, or of another type.
    """
    plain = _mapped(dict(values), lambda end: inf if end is None else end)
    plain.pop("schema", None)
    if isinstance(plain.get("machine"), dict):
        plain["machine"]["hostname"] = ""
    for build in from_plain(list[dict[str, Any]], plain.get("builds"), "builds"):
        for each in from_plain(list[dict[str, Any]], build.get("callables"), "callables"):
            if isinstance(each.get("found"), dict):
                each["found"].pop("repairs", None)
    return from_plain(ScalingAnswer, plain, finite=False)


def _mapped(values: Any, end: Callable[[Any], Any]) -> Any:
    """Return a copy of JSON with `end` of the upper end of each interval: JSON has no infinity."""
    if isinstance(values, list):
        return [_mapped(each, end) for each in values]
    if isinstance(values, dict):
        return {name: end(each) if name == "hi" else _mapped(each, end) for name, each in values.items()}
    return values
