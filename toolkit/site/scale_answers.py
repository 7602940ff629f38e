"""The answers of `gilscope scale` that a site shows, as `--json` wrote them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.escaping import in_json, in_url, visible_all
from gilscope.toolkit.records import DamagedError, shown
from gilscope.toolkit.redaction import without_folders
from gilscope.toolkit.scale.scaling_values import SCHEMA, ScalingAnswer, answer_values, read_answer
from gilscope.toolkit.site.answer_files import SUFFIX, read_answers
from gilscope.toolkit.site.sources import file_name, machine_name
from gilscope.toolkit.store.header import read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from gilscope.toolkit.site.answer_files import AnswerSource

@dataclass(frozen=True, slots=True, kw_only=True)
class PublicAnswer:
    """An answer without folders of its machine."""

    id: str            # of its page and file; unique
    host: str
    answer: ScalingAnswer

    @property
    def page(self) -> str:
        """Return the file of its page."""
        return f"scale-{self.id}.html"

    @property
    def data(self) -> str:
        """Return the file with its values, as the site has it."""
        return f"data/scale/{self.id}{SUFFIX}"

    @property
    def data_address(self) -> str:
        """Return the address of that file."""
        return in_url(self.data)


def public_answers(
    sources: Iterable[AnswerSource], problems: list[str], say: Callable[[str], None] = lambda _: None,
) -> list[PublicAnswer]:
    """Return the answers, the newest first, an answer and its copies once.

    Args:
        sources: Where answers are, those of other commands among them.
        problems: Gets what cannot be read.
        say: Told of each copy.
    """
    taken: Counter[str] = Counter()
    found = [(answer, source.host) for source, answer, _ in read_answers(sources, {"scale"}, _read, problems, say)]
    found.sort(key=lambda each: each[0].started, reverse=True)
    return [PublicAnswer(id=file_name("-".join(filter(None, (host, answer.subject))), taken), answer=answer,
                         host=host or machine_name(answer.machine)) for answer, host in found]


def _read(source: AnswerSource) -> tuple[ScalingAnswer, str]:
    """Return the answer in a file without folders of its machine, and its text.

    Raises:
        BadFileError: It cannot be read.
    """
    path = source.path
    fields = read_json(path)
    if fields.get("schema") != SCHEMA:
        raise BadFileError(f"{path} has the schema {shown(fields.get('schema'))}, and this version of gilscope reads "
                           f"{SCHEMA}: measure again")
    try:
        answer = visible_all(read_answer(fields), without_folders)
    except DamagedError as error:
        raise BadFileError(f"{path} is damaged, edited, or of another version of gilscope: {error}; measure "
                           "again") from error
    return answer, _json(answer)


def write_values(answer: PublicAnswer, folder: Path) -> None:
    """Write the values of an answer into the folder of a site."""
    file = folder / answer.data
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_json(answer.answer) + "\n", encoding="utf-8")


def _json(answer: ScalingAnswer) -> str:
    return in_json(json.dumps(answer_values(answer), indent=1))
