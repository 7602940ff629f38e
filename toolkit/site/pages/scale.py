"""Whether functions scale over threads: a row for each function and build, and a page for each answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gilscope.toolkit.report.document import Document, Lines
from gilscope.toolkit.scale.api import LIMITED
from gilscope.toolkit.scale.investigation_text import span_text
from gilscope.toolkit.scale.judgement import LOST, Obstacle
from gilscope.toolkit.scale.report import answer_document, answer_summary, way_text
from gilscope.toolkit.site.page_values import document_values, shown
from gilscope.toolkit.units import counted, list_text, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.scale.investigation import ScalingInvestigation
    from gilscope.toolkit.scale.judgement import ScalingEvidence, Span
    from gilscope.toolkit.site.scale_answers import PublicAnswer

_NOTHING: dict[str, Any] = {"text": "", "sort": None}


def scale_values(answers: Sequence[PublicAnswer]) -> dict[str, Any]:
    """Return the values of `scale.html` but those around it."""
    return shown({
        "rows": [row for each in answers for row in _rows(each)],
        "answers": [entry_of(each) | {"about": about_text(each)} for each in answers],
        "modules": any(each.answer.of_module for each in answers)})


def entry_of(each: PublicAnswer) -> dict[str, Any]:
    """Return the entry of an answer in a list: its subject, the link, and what the report has in short."""
    return {"title": each.answer.subject, "link": each.page, "lines": answer_summary(each.answer)}


def about_text(each: PublicAnswer) -> str:
    """Return where and when it was measured, and by which version."""
    answer = each.answer
    builds, threads = list_text(build_labels(each)), counted(answer.threads, "thread")
    return f"{builds}; {threads}; {answer.started[:10]}; {each.host}; gilscope {answer.gilscope}"


def build_labels(each: PublicAnswer) -> list[str]:
    """Return the builds of an answer."""
    return [build.label for build in each.answer.builds]


def answer_page(each: PublicAnswer) -> dict[str, Any]:
    """Return the values of `scale-answer.html` but those around it: the report, and how to get it again."""
    heading, in_short, *rest = answer_document(each.answer).sections
    document = Document((heading, in_short, Lines("", (about_text(each),)), *rest))
    return {"document": document_values(document)} | shown(
        {"command": each.answer.command, "json_file": each.data_address})


def _rows(each: PublicAnswer) -> Iterator[dict[str, Any]]:
    """Yield the rows of a function, one for each build; of a module one for each callable that does not scale."""
    answer = each.answer
    for build in answer.builds:
        if build.problem and not answer.of_module:
            yield _row(each, answer.subject, build.label, "not measured", None)
        for one in build.callables:
            if not answer.of_module or one.outcome in LIMITED or (one.found and one.found.objects):
                name = f"{answer.subject}.{one.name}" if answer.of_module else answer.subject
                row = _row(each, name, build.label, one.outcome.value, one.evidence)
                yield row | (_of_cause(one.found, way_text(one)) if one.found else {"way": way_text(one)})


def _row(
    each: PublicAnswer, name: str, build: str, verdict: str, evidence: ScalingEvidence | None,
) -> dict[str, Any]:
    return {"name": name, "link": each.page, "build": build, "verdict": verdict, "way": "", "numbers": [
        _span(evidence.of_ceiling if evidence else None), _span(evidence.speedup if evidence else None),
        _span(evidence.ceiling if evidence else None)],
        "explained": _NOTHING, "copies": _NOTHING}


def _of_cause(found: ScalingInvestigation, way: str) -> dict[str, Any]:
    reached = found.trial.of_ceiling if found.trial else None
    return {"way": way, "copies": _span(reached) if reached else _NOTHING,
            "explained": _NOTHING if found.explained is None or not _blames(found) else {
                "text": percent(found.explained), "sort": found.explained}}


def _blames(found: ScalingInvestigation) -> bool:
    """Return True if something is in the way, also where the verdict is open because it is near the threshold."""
    return found.judgement.verdict in LOST or (found.judgement.obstacle is not Obstacle.UNKNOWN and bool(found.objects))


def _span(span: Span | None) -> dict[str, Any]:
    return {"text": span_text(span), "sort": None if span is None else span.ratio}
