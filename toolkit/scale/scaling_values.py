"""The answers of `gilscope scale` as JSON, and back; `report/schemas/scale.json` describes them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from gilscope import __version__
from gilscope.toolkit.model import Machine  # noqa: TC001 - `from_plain` reads the hints
from gilscope.toolkit.records import from_plain
from gilscope.toolkit.report.as_json import machine_values
from gilscope.toolkit.scale.api import ApiScaling  # noqa: TC001 - likewise
from gilscope.toolkit.scale.investigation import ScalingInvestigation  # noqa: TC001 - likewise
from gilscope.toolkit.scale.repairs import advice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gilscope.toolkit.scale.api import ApiCallable
    from gilscope.toolkit.scale.judgement import Span
    from gilscope.toolkit.scale.zygote_process import LoadedFunction

SCHEMA = "gilscope/scale/2"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildScaling:
    """The findings on one build, or the reason why there are none."""

    label: str          # of the build
    version: str
    found: ScalingInvestigation | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildApiScaling:
    """The findings about a module on one build, or the reason why there are none."""

    label: str
    version: str
    found: ApiScaling | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingAnswer:
    """An answer of `gilscope scale`, about a function or a module."""

    subject: str                                  # MODULE:FUNCTION, or the module of --api
    threads: int
    started: str                                  # ISO 8601, with its time zone
    machine: Machine
    command: str                                  # that asked
    functions: tuple[BuildScaling, ...] = ()
    apis: tuple[BuildApiScaling, ...] = ()        # in their place with --api
    gilscope: str = __version__                   # that answered


def answer_values(answer: ScalingAnswer) -> dict[str, Any]:
    """Return an answer as JSON holds it."""
    builds = ([_build_values(each) for each in answer.functions] if answer.functions else
              [_api_values(each) for each in answer.apis])
    return {"schema": SCHEMA, "gilscope": answer.gilscope,
            "function" if answer.functions else "module": answer.subject, "threads": answer.threads,
            "started": answer.started, "command": answer.command, "machine": machine_values(answer.machine),
            "builds": builds}


def _api_values(each: BuildApiScaling) -> dict[str, Any]:
    if each.found is None:
        return _head(each)
    return {**_head(each), "complete": each.found.complete,
            "callables": [_callable_values(each, one) for one in each.found.callables]}


def _callable_values(build: BuildApiScaling, each: ApiCallable) -> dict[str, Any]:
    evidence, found = each.evidence, each.found
    return {
        "name": each.name, "call": each.call or None, "place": each.place or None, "outcome": each.outcome.value,
        "problem": each.problem or None, "seconds_per_call": each.seconds_per_call,
        "of_ceiling": span_values(evidence.of_ceiling if evidence else None),
        "speedup": span_values(evidence.speedup if evidence else None),
        "ceiling": span_values(evidence.ceiling if evidence else None),
        "investigation": found and _build_values(BuildScaling(label=build.label, version=build.version, found=found))}


def _head(each: BuildScaling | BuildApiScaling) -> dict[str, Any]:
    return {"build": each.label, "version": each.version, "problem": each.problem or None}


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
        "repairs": [{"code": each.code.value, "text": each.text, "objects": [one.name for one in each.objects]}
                    for each in advice(judgement.obstacle, found.repairable)],
        "trial": found.trial and asdict(found.trial) | {"of_ceiling": span_values(found.trial.of_ceiling)},
        "of_ceiling": span_values(evidence.of_ceiling), "disturbed": span_values(evidence.disturbed),
        "speedup": span_values(evidence.speedup), "ceiling": span_values(evidence.ceiling),
        "later": [{"of_ceiling": span_values(one.of_ceiling), "speedup": span_values(one.speedup)}
                  for one in evidence.later],
        "immortal": span_values(evidence.immortal), "no_collector": span_values(evidence.no_collector),
        "rates": found.rates, "function": _function(found.loaded), "clean_seconds": evidence.clean_seconds,
        "enough": evidence.enough, "one_core": evidence.one_core, "far": evidence.far,
        "queued_share": found.queued_share, "switches": found.switches, "measurements": found.measurements,
        "set_aside": found.set_aside, "handoff": found.handoff and asdict(found.handoff),
        "on_far_cpus": found.far and asdict(found.far) | {"of_ceiling": span_values(found.far.of_ceiling)},
        "seconds": found.seconds,
    }


def _function(loaded: LoadedFunction) -> dict[str, Any]:
    """Return the fields of a loaded function that a reader does not know already."""
    values = asdict(loaded)
    del values["operations"], values["package"]      # 1, and a part of its name
    return values


def span_values(span: Span | None) -> dict[str, float | None] | None:
    """Return a ratio with its interval."""
    # An interval without an upper end is none that JSON can say.
    if span is None:
        return None
    return {"ratio": span.ratio, "lo": span.lo, "hi": span.hi if span.hi != inf else None}


def read_answer(values: Mapping[str, Any]) -> ScalingAnswer:
    """Return the answer that `answer_values` was given; evidence that the values lack has its default.

    Raises:
        DamagedError: A field is missing, or of another type.
    """
    module = "module" in values
    builds = from_plain(list[dict[str, Any]], values.get("builds"), "builds")
    machine = from_plain(dict[str, Any], values.get("machine"), "machine")
    plain = {name: values.get(name) for name in ("threads", "started", "command", "gilscope")} | {
        "subject": values.get("module" if module else "function"),
        "machine": machine | {"hostname": ""},
        "functions": [] if module else [_plain_build(each, values.get("threads")) for each in builds],
        "apis": [_plain_api(each, values.get("threads")) for each in builds] if module else []}
    return from_plain(ScalingAnswer, plain, finite=False)


def _plain_build(values: Mapping[str, Any], threads: object) -> dict[str, Any]:
    """Return what `from_plain` takes for a build from its JSON."""
    return _plain_head(values) | {"found": _plain_investigation(values, threads) if "verdict" in values else None}


def _plain_api(values: Mapping[str, Any], threads: object) -> dict[str, Any]:
    if "callables" not in values:
        return _plain_head(values) | {"found": None}
    callables = from_plain(list[dict[str, Any]], values["callables"], "callables")
    return _plain_head(values) | {"found": {
        "complete": values.get("complete"), "callables": [_plain_callable(each, threads) for each in callables]}}


def _plain_head(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"label": values.get("build"), "version": values.get("version"), "problem": values.get("problem") or ""}


def _plain_callable(values: Mapping[str, Any], threads: object) -> dict[str, Any]:
    found = values.get("investigation")
    looked = values.get("of_ceiling") or values.get("speedup") or values.get("ceiling")
    # Of a mere look, the document has no more; how long it was clean is not asked for again.
    look = {**_plain_evidence(values, threads), "clean_seconds": 0.0, "enough": False}
    return {name: values.get(name) for name in ("name", "outcome", "seconds_per_call")} | {
        name: values.get(name) or "" for name in ("call", "place", "problem")} | {
        "found": found and _plain_investigation(found, threads),
        "evidence": _plain_evidence(found, threads) if found else look if looked else None}


def _plain_investigation(values: Mapping[str, Any], threads: object) -> dict[str, Any]:
    names = ("rates", "objects", "also", "explained", "without", "queued_share", "switches", "measurements", "seconds")
    return {name: values.get(name) for name in names} | {
        "set_aside": values.get("set_aside", 0), "handoff": values.get("handoff"), "threads": threads,
        "loaded": values.get("function"), "far": _with_span(values.get("on_far_cpus"), "of_ceiling"),
        "evidence": _plain_evidence(values, threads),
        "judgement": {name: values.get(name) for name in ("verdict", "obstacle", "doubt")},
        "trial": _with_span(values.get("trial"), "of_ceiling")}


def _plain_evidence(values: Mapping[str, Any], threads: object) -> dict[str, Any]:
    spans = ("of_ceiling", "speedup", "ceiling", "disturbed", "immortal", "no_collector")
    looks = from_plain(list[dict[str, Any]], values.get("later", []), "later")
    return {name: _plain_span(values.get(name)) for name in spans} | {
        "later": [{name: _plain_span(one.get(name)) for name in ("of_ceiling", "speedup")} for one in looks]} | {
        name: values.get(name) for name in ("clean_seconds", "enough")} | {
        "one_core": values.get("one_core", False), "far": values.get("far", False), "threads": threads}


def _with_span(values: Any, *names: str) -> Any:
    return values | {name: _plain_span(values.get(name)) for name in names} if isinstance(values, dict) else values


def _plain_span(values: Any) -> Any:
    if isinstance(values, dict) and values.get("hi", 0) is None:
        return values | {"hi": inf}
    return values
