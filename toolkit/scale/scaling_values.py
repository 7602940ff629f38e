"""The findings of `gilscope scale` as JSON; `report/schemas/scale.json` describes them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.scale.repairs import TEXTS, repairs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.model import Build
    from gilscope.toolkit.scale.api import ApiCallable, ApiScaling
    from gilscope.toolkit.scale.investigation import ScalingInvestigation
    from gilscope.toolkit.scale.judgement import Span
    from gilscope.toolkit.scale.zygote_process import LoadedFunction

SCHEMA = "gilscope/scale/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildScaling:
    """The findings on one build, or the reason why there are none."""

    build: Build
    found: ScalingInvestigation | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildApiScaling:
    """The findings about a module on one build, or the reason why there are none."""

    build: Build
    found: ApiScaling | None
    problem: str = ""


def api_values(module: str, threads: int, builds: Sequence[BuildApiScaling]) -> dict[str, Any]:
    """Return the report of a module."""
    return {"schema": SCHEMA, "gilscope": __version__, "module": module, "threads": threads,
            "builds": [_head(each) if each.found is None else {
                **_head(each), "complete": each.found.complete,
                "callables": [_callable_values(each.build, one) for one in each.found.callables]} for each in builds]}


def _callable_values(build: Build, each: ApiCallable) -> dict[str, Any]:
    evidence = each.evidence
    return {
        "name": each.name, "call": each.call or None, "place": each.place or None, "outcome": each.outcome.value,
        "problem": each.problem or None, "seconds_per_call": each.seconds_per_call,
        "of_ceiling": span_values(evidence.of_ceiling if evidence else None),
        "speedup": span_values(evidence.speedup if evidence else None),
        "ceiling": evidence.ceiling if evidence else None,
        "investigation": each.found and _build_values(BuildScaling(build=build, found=each.found))}


def _head(each: BuildScaling | BuildApiScaling) -> dict[str, Any]:
    return {"build": each.build.label, "version": each.build.version, "problem": each.problem or None}


def scaling_values(function: str, threads: int, builds: Sequence[BuildScaling]) -> dict[str, Any]:
    """Return the report of a function."""
    return {"schema": SCHEMA, "gilscope": __version__, "function": function, "threads": threads,
            "builds": [_build_values(each) for each in builds]}


def _build_values(each: BuildScaling) -> dict[str, Any]:
    found = each.found
    if found is None:
        return _head(each)
    evidence, judgement = found.evidence, found.judgement
    return {
        **_head(each), "verdict": judgement.verdict.value, "obstacle": judgement.obstacle.value,
        "doubt": judgement.doubt and judgement.doubt.value,
        "objects": [asdict(one) for one in found.objects], "also": [asdict(one) for one in found.also],
        "explained": found.explained, "without": found.without,
        "repairs": [{"code": code.value, "text": TEXTS[code], "objects": [one.name for one in objects]}
                    for code, objects in repairs(judgement.obstacle, (*found.objects, *found.also)).items()],
        "trials": [asdict(one) | {"of_ceiling": span_values(one.of_ceiling)} for one in found.trials],
        "of_ceiling": span_values(evidence.of_ceiling), "disturbed": span_values(evidence.disturbed),
        "speedup": span_values(evidence.speedup), "ceiling": evidence.ceiling,
        "immortal": span_values(evidence.immortal), "no_collector": span_values(evidence.no_collector),
        "rates": found.rates, "function": _function(found.loaded), "clean_seconds": evidence.clean_seconds,
        "queued_share": found.queued_share, "switches": found.switches, "measurements": found.measurements,
        "seconds": found.seconds,
    }


def _function(loaded: LoadedFunction) -> dict[str, Any]:
    """Return the fields of a loaded function without `operations`, which is 1 for a user's function."""
    values = asdict(loaded)
    del values["operations"]
    return values


def span_values(span: Span | None) -> dict[str, float | None] | None:
    """Return a ratio with its interval."""
    # An interval without an upper end is none that JSON can say.
    if span is None:
        return None
    return {"ratio": span.ratio, "lo": span.lo, "hi": span.hi if span.hi != float("inf") else None}
