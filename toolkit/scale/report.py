"""The report of `gilscope scale` on a function, or on what a module offers, as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.builds.inspection import version_key
from gilscope.toolkit.report.document import Column, Document, Entry, Heading, Lines, Table, summary_lines
from gilscope.toolkit.scale.api import LIMITED, TOO_SHORT, CallableOutcome
from gilscope.toolkit.scale.investigation_text import (
    blamed_text,
    first_repairs,
    investigation_in_short,
    investigation_sentences,
    span_text,
)
from gilscope.toolkit.units import counted, few, format_seconds, inflect, list_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gilscope.toolkit.report.document import Section
    from gilscope.toolkit.scale.api import CallableScaling
    from gilscope.toolkit.scale.judgement import ScalingEvidence
    from gilscope.toolkit.scale.scaling_values import BuildScaling, ScalingAnswer

LEGEND = (1,)      # the table's only footnote
VERDICTS = LIMITED | {CallableOutcome.SCALES, CallableOutcome.UNSURE}
WITHOUT_VERDICT = {
    CallableOutcome.TOO_SHORT: f"too short: calling takes most of a call of less than {format_seconds(TOO_SHORT)}",
    CallableOutcome.NO_CALL: "no call in tests and doctests that can be repeated alone",
    CallableOutcome.NO_TIME: "the time was over",
}


MOST_REPAIRS = 2    # in short


def answer_in_short(answer: ScalingAnswer) -> Document:
    """Return the answer alone: verdicts, what is in the way and where, and what to do."""
    title = Heading(f"{answer.subject} with {answer.threads} threads", 1)
    investigated = [each.found for build in answer.builds for each in build.callables
                    if each.found and each.outcome is not CallableOutcome.SCALES]
    repairs = list(dict.fromkeys(repair for found in investigated for repair in first_repairs(found)))
    return Document((title, Lines("", (
        *answer_summary(answer), *_reached(answer), *repairs[:MOST_REPAIRS],
        "numbers, doubts and how it was measured: --full"))))


def _reached(answer: ScalingAnswer) -> Iterator[str]:
    """Yield what share of the ceiling a function reaches on each build."""
    shares = [f"{share} on {build.label}" for build in answer.builds for each in build.callables
              if each.evidence and (share := _share(each.evidence))]
    if shares and not answer.of_module:
        yield f"Of the ceiling, the throughput of {answer.threads} processes, threads reach {list_text(shares)}."


def _share(evidence: ScalingEvidence) -> str:
    """Return the share of the ceiling; by disturbed calls it is at most that, as neighbours hide contention."""
    if evidence.of_ceiling is None and evidence.disturbed is not None:
        return f"at most {span_text(evidence.disturbed)}"
    return span_text(evidence.of_ceiling) if evidence.of_ceiling else ""


def answer_document(answer: ScalingAnswer) -> Document:
    """Return the report of an answer."""
    sections: list[Section] = [Heading(f"{answer.subject} with {answer.threads} threads", 1),
                               summary_lines(answer_summary(answer))]
    if rows := [(build, each) for build in answer.builds for each in build.callables if each.outcome in VERDICTS]:
        sections.append(_table(answer, rows))
    for build in answer.builds:
        sections += _details(answer, build)
    sections.append(Lines("Measured with", tuple(_origin(answer))))
    return Document(tuple(sections))


def _details(answer: ScalingAnswer, build: BuildScaling) -> Iterator[Section]:
    for each in build.callables:
        if each.found is None:
            continue
        if not answer.of_module:
            yield Lines(build.label, tuple(investigation_sentences(each.found)))
        elif each.outcome is not CallableOutcome.SCALES:
            called = f"Called as {each.call}, as in {each.place}; each thread makes the objects of the call for itself."
            yield Lines(f"{build.label}: {each.name}", (called, *investigation_sentences(each.found)))
    if without := tuple(_without_verdict(build)):
        yield Lines(f"{build.label}: no verdict", without)


def _origin(answer: ScalingAnswer) -> Iterator[str]:
    """Yield the command, the versions and the machine, for whoever measures again."""
    machine = answer.machine
    versions = list_text(f"{each.version} ({each.label})" for each in answer.builds)
    yield f"{answer.command}"
    yield (f"gilscope {answer.gilscope}, Python {versions}, {machine.cpu_model}, {counted(machine.cores, 'core')}, "
           f"{machine.system}")


def _table(answer: ScalingAnswer, rows: list[tuple[BuildScaling, CallableScaling]]) -> Table:
    function = (Column(title="function", key=True, align="left"),) if answer.of_module else ()
    columns = (Column(title="build", key=True, align="left"), *function, Column(title="verdict", align="left"),
               Column(title="of the ceiling"), Column(title="speed-up"), Column(title="ceiling"),
               Column(title="in the way", align="left"))
    legend = (f"Of the ceiling: throughput of {answer.threads} threads against that of {answer.threads} processes in "
              "the same moments. Speed-up and ceiling: that of the threads, and of the processes, against one thread. "
              "In brackets, 95 % intervals for the seconds of this measurement.")
    return Table(title="Does it scale", columns=columns, footnotes=(legend,), rows=tuple(
        _row(build, each, named=answer.of_module) for build, each in rows))


def _row(build: BuildScaling, each: CallableScaling, *, named: bool) -> tuple[Entry, ...]:
    evidence = each.evidence
    spans = (evidence.of_ceiling, evidence.speedup, evidence.ceiling) if evidence else (None, None, None)
    return (Entry(build.label), *([Entry(each.name)] if named else []), Entry(each.outcome.value),
            *(Entry(span_text(span), LEGEND) for span in spans), Entry(way_text(each)))


def way_text(each: CallableScaling) -> str:
    """Return the obstacle with its objects, or why it is not known; "" for a callable that may scale."""
    if each.outcome is CallableOutcome.SCALES or (each.found is None and each.outcome not in LIMITED):
        return ""
    if each.found is None:
        return "not investigated: the time was over"
    return blamed_text(each.found)


def _without_verdict(build: BuildScaling) -> Iterator[str]:
    """Yield the callables without a verdict, with the reasons."""
    for each in build.callables:
        if each.outcome is CallableOutcome.FAILED:
            yield f"{each.name}: {each.call} ({each.place}): {each.problem}"
    for outcome, why in WITHOUT_VERDICT.items():
        if names := [each.name for each in build.callables if each.outcome is outcome]:
            yield f"{list_text(names)}: {why}."
    if not build.complete:
        yield "The search for calls ended before all were tried: name fewer files with --tests."


def answer_summary(answer: ScalingAnswer) -> list[str]:
    """Return a sentence on each build, and what one loses and another does not."""
    outcomes: dict[str, dict[str, CallableOutcome]] = {}
    for build in answer.builds:
        for each in build.callables:
            outcomes.setdefault(each.name, {})[build.label] = each.outcome
    versions = {each.label: each.version for each in answer.builds}
    contrasts: dict[str, list[str]] = {}
    for name, verdicts in outcomes.items():
        for sentence in _build_contrast(verdicts, versions):
            contrasts.setdefault(sentence, []).append(name)
    return [*(_in_short(answer, each) for each in answer.builds),
            *(f"{list_text(names)}: {sentence}" if answer.of_module else sentence
              for sentence, names in contrasts.items())]


def _in_short(answer: ScalingAnswer, build: BuildScaling) -> str:
    callables = build.callables
    if build.problem:
        return f"{build.label}: no verdict: {build.problem}"
    if not answer.of_module:
        return " ".join(investigation_in_short(build.label, each.found) for each in callables if each.found)
    by_outcome = {each: [one.name for one in callables if one.outcome is each] for each in CallableOutcome}
    groups = "; ".join(f"{outcome.value}: {few(names)}" for outcome, names in by_outcome.items() if names)
    return f"{build.label}: {groups}."


def _build_contrast(verdicts: Mapping[str, CallableOutcome], versions: Mapping[str, str]) -> Iterator[str]:
    """Yield which builds scale where others do not, if there are such.

    Args:
        verdicts: By build; those without one are missing.
        versions: By build.
    """
    lost = [label for label, verdict in verdicts.items() if verdict in LIMITED]
    kept = [label for label, verdict in verdicts.items() if verdict is CallableOutcome.SCALES]
    if lost and kept:
        last = max(version_key(versions[label]) for label in lost)
        newer = [label for label in kept if version_key(versions[label]) > last]
        repairs = inflect(len(newer), "a repair", "repairs")
        repair = f": {list_text(newer)} may be {repairs}, too" if newer else ""
        yield (f"{list_text(kept)} {inflect(len(kept), 'scales', 'scale')} where {list_text(lost)} "
               f"{inflect(len(lost), 'does', 'do')} not{repair}.")
