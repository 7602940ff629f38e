"""An observation as the metadata of pyperf runs, and back.

Fields that pyperf lacks have names that begin with `gilscope_`.  No derived number is stored.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from gilscope.toolkit import metrics
from gilscope.toolkit.model import Evidence, Observation
from gilscope.toolkit.records import is_count, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PREFIX = "gilscope_"
_METRIC = "gilscope_metric_"
_OPTIONAL = ("gil_end", "gil_culprit", "demand", "tasks", "seconds", "hash_seed")
_LISTS: dict[str, type[float | int]] = {"cpu": float, "passes": int, "began": float}   # one for each value
_EVIDENCE = tuple(field.name for field in dataclasses.fields(Evidence))


def make_observation(values: Sequence[float], details: Mapping[str, Any]) -> Observation:
    """Return the observation with these values, in seconds, and details.

    Args:
        values: The seconds of each value.
        details: The fields of `Observation` that pyperf does not store.

    Raises:
        KeyError, TypeError, ValueError: A field is missing or of another type.
    """
    evidence = details.get("evidence", {})
    return Observation(
        round=details["round"],
        wall=tuple(values),
        cpu=tuple(details["cpu"]),
        loops=details["loops"],
        evidence=Evidence(**{name: evidence.get(name) for name in _EVIDENCE}),
        starved=details["starved"],
        retakes=details.get("retakes", 0),
        metrics=tuple(sorted(dict(details.get("metrics", {})).items())),
        passes=tuple(details.get("passes", ())),
        began=tuple(details.get("began", ())),
        again=details.get("again", 0),
        session=details.get("session", 1),
        **{name: details.get(name) for name in _OPTIONAL},
    )


def to_metadata(observation: Observation) -> dict[str, str | int | float]:
    """Return the metadata of the run of an observation."""
    fields: dict[str, Any] = {
        "round": observation.round,
        "retakes": observation.retakes,
        "starved": observation.starved,
        **{name: " ".join(map(repr, getattr(observation, name))) or None for name in _LISTS},
        "again": observation.again or None,
        "session": observation.session,
        **{name: getattr(observation.evidence, name) for name in _EVIDENCE},
        **{name: getattr(observation, name) for name in _OPTIONAL},
    }
    # pyperf accepts str, int and float only; unknown fields are left out.
    known = {
        _PREFIX + name: ("yes" if value else "no") if isinstance(value, bool) else value
        for name, value in fields.items()
        if value is not None
    }
    return known | {_metric_key(name): value for name, value in observation.metrics}


def _metric_key(name: str) -> str:
    return (_PREFIX if metrics.find_metric(name) else _METRIC) + name


def from_metadata(values: Sequence[float], metadata: Mapping[str, Any]) -> Observation:
    """Return the observation that a run with this complete metadata is of.

    Raises:
        KeyError, TypeError, ValueError: A field is missing or of another type.
    """
    fields = {name.removeprefix(_PREFIX): value for name, value in metadata.items() if name.startswith(_PREFIX)}
    details: dict[str, Any] = {name: fields.get(name) for name in _OPTIONAL}
    details["gil_end"] = None if details["gil_end"] is None else _yes_or_no(fields, "gil_end")
    details |= {
        "round": _whole(fields["round"], "round"),
        "retakes": _whole(fields["retakes"], "retakes"),
        "starved": _yes_or_no(fields, "starved"),
        **{name: [kind(each) for each in str(fields.get(name, "")).split()] for name, kind in _LISTS.items()},
        "again": _whole(fields.get("again", 0), "again"),
        "session": _whole(fields.get("session", 1), "session"),
        "evidence": {name: fields.get(name) for name in _EVIDENCE},
        "loops": _loops(metadata, "loops") * _loops(metadata, "inner_loops"),
        "metrics": {
            name.removeprefix(_METRIC): value for name, value in metadata.items() if name.startswith(_METRIC)
        } | {
            each.name: fields[each.name] for each in metrics.CELL_METRICS if each.name in fields
        },
    }
    return make_observation(values, details)


def _loops(metadata: Mapping[str, Any], name: str) -> int:
    loops: int = metadata.get(name, 1)
    if not (is_count(loops) and loops > 0):
        raise ValueError(f"{name} is {shown(loops)}, not a whole number from 1 on")
    return loops


def _yes_or_no(fields: Mapping[str, Any], name: str) -> bool:
    if fields[name] not in {"yes", "no"}:
        raise ValueError(f"{_PREFIX}{name} is {shown(fields[name])}, not yes or no")
    return bool(fields[name] == "yes")


def _whole(value: object, name: str) -> int:
    if not isinstance(value, int):   # int() would turn 1.5 into 1
        raise ValueError(f"{_PREFIX}{name} is {shown(value)}, not a whole number")  # noqa: TRY004 - an error of the file
    return value
