"""The report of `gilscope scale --api` as a document, and that of any answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.report.document import Column, Document, Entry, Heading, Lines, Table, summary_lines
from gilscope.toolkit.scale.api import LIMITED, TOO_SHORT, ApiOutcome
from gilscope.toolkit.scale.report import (
    LEGEND,
    blamed_text,
    build_contrast,
    function_document,
    function_summary,
    investigation_sentences,
    origin,
    span_text,
)
from gilscope.toolkit.units import format_seconds, inflect, list_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.scale.api import ApiCallable, ApiScaling
    from gilscope.toolkit.scale.scaling_values import BuildApiScaling, ScalingAnswer

VERDICTS = LIMITED | {ApiOutcome.SCALES, ApiOutcome.UNSURE}
WITHOUT_VERDICT = {
    ApiOutcome.TOO_SHORT: f"too short: calling takes most of a call of less than {format_seconds(TOO_SHORT)}",
    ApiOutcome.NO_CALL: "no call in tests and doctests that can be repeated alone",
    ApiOutcome.NO_TIME: "the time was over",
}


def api_document(answer: ScalingAnswer) -> Document:
    """Return the report of what a module offers on some builds."""
    threads = answer.threads
    sections: list[Section] = [Heading(f"{answer.subject} with {threads} threads", 1),
                               summary_lines(_api_summary(answer))]
    for each in answer.apis:
        if each.found is None:
            sections.append(Lines(each.label, (each.problem,)))
            continue
        if rows := [one for one in each.found.callables if one.outcome in VERDICTS]:
            sections.append(_table(each.label, threads, rows))
        sections += [Lines(f"{each.label}: {one.name}", tuple(_sentences(one)))
                     for one in rows if one.found and one.outcome is not ApiOutcome.SCALES]
        if without := tuple(_without_verdict(each.found)):
            sections.append(Lines(f"{each.label}: no verdict", without))
    sections.append(Lines("Measured with", tuple(origin(answer, answer.apis))))
    return Document(tuple(sections))


def answer_document(answer: ScalingAnswer) -> Document:
    """Return the report of a function or a module."""
    return function_document(answer) if answer.functions else api_document(answer)


def answer_summary(answer: ScalingAnswer) -> list[str]:
    """Return the first sentences of the report."""
    return list(function_summary(answer) if answer.functions else _api_summary(answer))


def _api_summary(answer: ScalingAnswer) -> Iterator[str]:
    """Yield a sentence on each build, and what of the module one loses and another does not."""
    yield from map(_in_short, answer.apis)
    outcomes: dict[str, dict[str, ApiOutcome]] = {}
    for each in answer.apis:
        for one in each.found.callables if each.found else ():
            outcomes.setdefault(one.name, {})[each.label] = one.outcome
    versions = {each.label: each.version for each in answer.apis}
    contrasts: dict[str, list[str]] = {}
    for name, verdicts in outcomes.items():
        for sentence in build_contrast(verdicts, versions):
            contrasts.setdefault(sentence, []).append(name)
    yield from (f"{list_text(names)}: {sentence}" for sentence, names in contrasts.items())


def _table(label: str, threads: int, rows: Sequence[ApiCallable]) -> Table:
    columns = (Column(title="function", key=True, align="left"), Column(title="verdict", align="left"),
               Column(title="of the ceiling"), Column(title="speed-up"), Column(title="a call"),
               Column(title="in the way", align="left"))
    legend = (f"Throughput of {threads} threads against {threads} processes in the same moments (the ceiling) and "
              "against one thread; in brackets, 95 % intervals for the seconds of this measurement.")
    return Table(title=f"Does it scale on {label}", columns=columns, rows=tuple(map(_row, rows)), footnotes=(legend,))


def _row(each: ApiCallable) -> tuple[Entry, ...]:
    ceiling, speedup = (each.evidence.of_ceiling, each.evidence.speedup) if each.evidence else (None, None)
    seconds = "-" if each.seconds_per_call is None else format_seconds(each.seconds_per_call)
    return (Entry(each.name), Entry(each.outcome.value), Entry(span_text(ceiling), LEGEND),
            Entry(span_text(speedup), LEGEND), Entry(seconds), Entry(way_text(each)))


def way_text(each: ApiCallable) -> str:
    """Return the obstacle with its objects, or why it is not known; "" for a callable that may scale."""
    if each.outcome is ApiOutcome.SCALES or (each.found is None and each.outcome not in LIMITED):
        return ""
    if each.found is None:
        return "not investigated: the time was over"
    return blamed_text(each.found)


def _sentences(each: ApiCallable) -> Iterator[str]:
    yield f"Called as {each.call}, as in {each.place}; each thread makes the objects of the call for itself."
    if each.found is not None:
        yield from investigation_sentences(each.found)


def _without_verdict(found: ApiScaling) -> Iterator[str]:
    """Yield the callables without a verdict, with the reasons."""
    for each in found.callables:
        if each.outcome is ApiOutcome.FAILED:
            yield f"{each.name}: {each.call} ({each.place}): {each.problem}"
    for outcome, why in WITHOUT_VERDICT.items():
        if names := [each.name for each in found.callables if each.outcome is outcome]:
            yield f"{list_text(names)}: {why}."
    if not found.complete:
        yield "The search for calls ended before all were tried: name fewer files with --tests."


def _in_short(each: BuildApiScaling) -> str:
    if each.found is None:
        return f"{each.label}: not measured to its end."
    callables = each.found.callables
    limited = [one.name for one in callables if one.outcome in LIMITED]
    scaling = sum(one.outcome is ApiOutcome.SCALES for one in callables)
    judged = sum(one.outcome in VERDICTS for one in callables)
    lose = f"; {list_text(limited)} {inflect(len(limited), 'does', 'do')} not" if limited else ""
    open_ = len(callables) - judged
    judgements = f"{scaling} of {judged} {inflect(scaling, 'scales', 'scale')}{lose}; " if judged else ""
    return f"{each.label}: {judgements}{open_} of {len(callables)} {inflect(open_, 'has', 'have')} no verdict."
