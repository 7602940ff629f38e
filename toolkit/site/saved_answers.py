"""The saved answers of `race`, `gil`, `scale`, `doctor` and `evaluate` that a site shows, each on a page."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.escaping import in_json, in_url, visible_all
from gilscope.toolkit.redaction import without_folders
from gilscope.toolkit.report.document import Document, Heading, Lines, summary_lines
from gilscope.toolkit.scale.report import answer_document, answer_summary
from gilscope.toolkit.scale.scaling_values import SCHEMA, read_answer
from gilscope.toolkit.site.answer_files import SUFFIX, read_answers
from gilscope.toolkit.site.page_values import document_values, shown
from gilscope.toolkit.site.single.races import race_values
from gilscope.toolkit.site.single.verdicts import build_cards, conclusion_cards, verdict_values
from gilscope.toolkit.site.single.waits import wait_values
from gilscope.toolkit.site.sources import file_name, machine_name
from gilscope.toolkit.store.header import read_json
from gilscope.toolkit.units import counted, list_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gilscope.toolkit.site.answer_files import AnswerSource

    Values = dict[str, Any]

SCHEMAS = {
    "race": "gilscope/race/5",
    "gil": "gilscope/gil/2",
    "scale": SCHEMA,
    "doctor": "gilscope/doctor/2",
    "evaluate": "gilscope/evaluate/3",
}
TEMPLATES = {"race": "race.html", "gil": "waits.html", "scale": "document.html", "doctor": "verdict.html",
             "evaluate": "verdict.html"}
MOST = 4   # packages that a title names


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswer:
    """An answer with the values of its page, without folders of its machine."""

    id: str            # of its page and file; unique
    kind: str          # the command
    page_values: Mapping[str, Any]
    short: str         # for the list of answers
    document: str      # as JSON

    @property
    def title(self) -> str:
        """Return the title of its page."""
        return str(self.page_values["title"])

    @property
    def page(self) -> str:
        """Return the file of its page."""
        return f"answer-{self.id}.html"

    @property
    def data(self) -> str:
        """Return the file with its values, as the site has it."""
        return f"data/answers/{self.id}{SUFFIX}"

    @property
    def values(self) -> dict[str, Any]:
        """Return the values of its page but those around it."""
        return {**self.page_values, "json_file": in_url(self.data)}


def saved_answers(
    sources: Iterable[AnswerSource], problems: list[str], say: Callable[[str], None] = lambda _: None,
) -> list[SavedAnswer]:
    """Return the answers in the order of their files, an answer and its copies once.

    Args:
        sources: Where answers are.
        problems: Gets what cannot be read.
        say: Told of each copy.
    """
    taken: Counter[str] = Counter()
    found = []
    for source, (values, short), text in read_answers(sources, _read, problems, say):
        name = "-".join(filter(None, (source.host, str(values["title"]))))
        found.append(SavedAnswer(id=file_name(name, taken), kind=source.kind, page_values=shown(values),
                                 short=str(shown(short)), document=text + "\n"))
    return found


def _read(source: AnswerSource) -> tuple[tuple[Values, str], str]:
    """Return the page of an answer with the answer in short, and its document as text.

    The document has no folders: paths below its project's folder are relative to that.

    Raises:
        BadFileError: It cannot be read, or is of another version.
    """
    document, schema = read_json(source.path), SCHEMAS[source.kind]
    if document.get("schema") != schema:
        raise BadFileError(f"{source.path} is not of the schema {schema}, which this version of gilscope reads")
    root = str(document.get("root", ""))
    public: Values = visible_all(document, lambda text: without_folders(text, root))
    return _page(source, public), in_json(json.dumps(public, indent=1))


def _page(source: AnswerSource, document: Values) -> tuple[Values, str]:
    """Return the values of an answer's page, and the answer in short.

    Raises:
        BadFileError: It lacks what the page needs.
    """
    try:
        return _PAGES[source.kind](document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadFileError(f"{source.path} is damaged, edited, or has nothing for a page: {error!r}") from error


def _race(document: Values) -> tuple[Values, str]:
    values = race_values(document, lambda _: ())   # the source is not at hand
    races = dict.fromkeys(f"{each['kind']} of {each['variable']}" for each in values["races"])
    return values, "; ".join([*races, values["circumstances"]])


def _gil(document: Values) -> tuple[Values, str]:
    title = Heading(f"gil: {shlex.join(document['program'])}", 1)
    return wait_values(document, Document((title, summary_lines(document["answer"])))), document["answer"][0]


def _scale(document: Values) -> tuple[Values, str]:
    answer = read_answer(document)
    builds, threads = list_text(build.label for build in answer.builds), counted(answer.threads, "thread")
    about = (f"{builds}; {threads}; {answer.started[:10]}; {machine_name(answer.machine)}; "
             f"gilscope {answer.gilscope}; `{answer.command}`")
    heading, in_short, *rest = answer_document(answer).sections
    sections = document_values(Document((heading, in_short, Lines("", (about,)), *rest)))
    return {"title": answer.subject, "document": sections}, " ".join(answer_summary(answer))


def _doctor(document: Values) -> tuple[Values, str]:
    cards = build_cards(document)
    names = dict.fromkeys(each["name"] for build in document["builds"] for each in build["packages"]
                          if each["requested"])
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    title = Heading(f"doctor: {', '.join([*names][:MOST])}{more}", 1)
    return verdict_values(Document((title,)), cards), _in_short(cards)


def _evaluate(document: Values) -> tuple[Values, str]:
    cards = conclusion_cards(document)
    why = [Lines(f"Why on {each['target']}", tuple(each["reasons"])) for each in document["conclusions"]
           if each["reasons"]]
    next_steps = [Lines("Next", tuple(document["next_steps"]))] if document["next_steps"] else []
    title = Heading(f"evaluate: {document['details']['project']['name']}", 1)
    return verdict_values(Document((title, *why, *next_steps)), cards), _in_short(cards)


def _in_short(cards: Iterable[Mapping[str, Any]]) -> str:
    return "; ".join(f"{each['title']}: {each['word']}" for each in cards)


_PAGES: dict[str, Callable[[Values], tuple[Values, str]]] = {
    "race": _race, "gil": _gil, "scale": _scale, "doctor": _doctor, "evaluate": _evaluate}
