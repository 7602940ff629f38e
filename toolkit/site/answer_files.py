"""The files with answers that a site shows: what `--json` of some commands wrote, found beside runs or named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import SETTINGS, opened
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.site.sources import DEEPEST, default_names, named_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

SUFFIX = ".json"
BEGIN = 200      # bytes of a file in a folder, in which the schema stands if gilscope wrote it
# Of any version, so that another one is refused and not overlooked.
MARK = re.compile(rb'"schema"\s*:\s*"gilscope/(scale|race|gil|doctor|evaluate)/')


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSource:
    """A file with an answer, its command, and the name of its machine; "": none was given."""

    path: Path
    kind: str
    host: str
    named: str     # the text that named it or its folder


def find_answers(names: Sequence[str]) -> list[AnswerSource]:
    """Return the files with answers that are named, or in named folders: `FILE`, `FOLDER`, `NAME=FOLDER`.

    Raises:
        ToolkitError: A name is missing before "=".
    """
    found: dict[Path, AnswerSource] = {}
    for text in names or default_names():
        host, path = named_source(text)
        for file, kind in _files(path):
            found.setdefault(file.resolve(), AnswerSource(path=file, kind=kind, host=host, named=text))
    return list(found.values())


def read_answers[Answer](
    sources: Iterable[AnswerSource], read: Callable[[AnswerSource], tuple[Answer, str]], problems: list[str],
    say: Callable[[str], None],
) -> Iterator[tuple[AnswerSource, Answer, str]]:
    """Yield answers with their files and their text for the site, an answer and its copies once.

    Args:
        sources: Where answers are.
        read: Returns an answer and its text, or raises BadFileError.
        problems: Gets what cannot be read.
        say: Told of each copy.
    """
    first: dict[str, Path] = {}
    for source in sources:
        try:
            answer, text = read(source)
        except BadFileError as error:
            problems.append(str(error))
            continue
        if text in first:
            say(f"{source.path} is a copy of the answer in {first[text]}, and is taken once")
            continue
        first[text] = source.path
        yield source, answer, text


def _files(path: Path) -> Iterator[tuple[Path, str]]:
    depths = ["*/" * depth for depth in range(DEEPEST + 1)]
    files = sorted({file for depth in depths for file in path.glob(f"{depth}*{SUFFIX}")}) if path.is_dir() else [path]
    for file in files:
        if file.suffix == SUFFIX and (kind := _kind(file, BEGIN if path.is_dir() else SETTINGS)):
            yield file, kind


def _kind(path: Path, most: int) -> str:
    """Return the command whose schema the first `most` bytes of a file have; "": none."""
    try:
        with opened(path) as file:
            mark = MARK.search(file.read(most))
    except OSError:
        return ""
    return mark[1].decode() if mark else ""
