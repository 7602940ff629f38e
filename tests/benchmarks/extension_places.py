"""How many of the places that the search names in real extension modules are false, and how many does it overlook?

`extension_places.toml` keeps the judgements of named places by project, file and line.  A place that is in none of its
lists is printed: somebody has to read it.

`extension_recall.toml` keeps the places that somebody found by reading the whole files before the search was run on
them.  A place counts as named if the search names a line of its statement, or another judged place of the same name (a
field, a variable, a container) in the same function: whoever mends that one has found this one.  How many of them are
named at their own statement is printed beside it.  Of the projects whose places are lines alone, these must be named.

    pip download --no-binary :all: --no-deps bitarray==3.12.3 ...     # and unpack them all into one folder
    python -m tests.benchmarks.extension_places FOLDER --build 3.14t
    python -m tests.benchmarks.extension_places FOLDER --build 3.14t --recall
"""

from __future__ import annotations

import argparse
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from tests.benchmarks.common import build_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnExtensions, Remark

JUDGED = Path(__file__).with_suffix(".toml")
FOUND_BY_READING = JUDGED.with_name("extension_recall.toml")
GROUPS = {"developed_with": "projects that the search was made with",
          "first_run_after_mending": "projects first searched when it had been mended for the others"}
OTHERS = "projects first searched before it was mended for them"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPlace:
    """A statement that is unsafe without the GIL, as somebody judged who read the whole file."""

    file: str
    function: str
    lines: range
    kind: str
    name: str                        # of the field, variable or container


def main() -> None:
    """Search each project, and print its places and how many of these are false or missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds the unpacked sdists: bitarray-3.12.3, ...")
    parser.add_argument("--build", default="3.14t", metavar="LABEL[=PATH]", help="whose compiler's view is read")
    parser.add_argument("--recall", action="store_true", help="how many of the places found by reading are named")
    args = parser.parse_args()
    projects = tomllib.loads((FOUND_BY_READING if args.recall else JUDGED).read_text())
    searched = ((name, judged, find_extensions(args.folder / f"{name}-{judged['version']}", build_of(args.build)))
                for name, judged in projects.items())
    if args.recall:
        _print_recall(searched)
    else:
        _print_false_places(searched)


def _print_false_places(searched: Iterator[tuple[str, dict[str, Any], OwnExtensions]]) -> None:
    true = false = 0
    for name, judged, own in searched:
        places = _named(own)
        counts = {}
        for word in ("true", "false"):
            counts[word] = sum(_is_listed(judged, word, file, remark.line) for file, remark in places)
        true, false = true + counts["true"], false + counts["false"]
        print(f"{name:14} {len(places):4} places, {counts['false']:3} false{_how(own)}")
        for file, remark in places:
            if not any(_is_listed(judged, word, file, remark.line) for word in counts):
                print(f"    not judged: {file}:{remark.line} {remark.concern}: {remark.what}")
    print(f"{false} of {true + false} places are false: {false / (true + false or 1):.0%}")


def _print_recall(searched: Iterator[tuple[str, dict[str, Any], OwnExtensions]]) -> None:
    judged_by_kind, named_by_kind = Counter[str](), Counter[str]()
    judged_in_all, named_in_all, there_in_all, false_in_all, listed_in_all = (Counter[str]() for _ in range(5))
    for name, judged, own in searched:
        group = next((words for key, words in GROUPS.items() if judged.get(key)), OTHERS)
        named = [(file, remark) for file, remark in _named(own) if file in judged["read"]]
        lines = {(file, remark.line) for file, remark in named}
        places = list(_judged_places(judged))
        at_place = {place: any((place.file, line) in lines for line in place.lines) for place in places}
        in_function = {(place.file, place.function, place.name) for place in places if at_place[place]}
        found = [place for place in places if (place.file, place.function, place.name) in in_function]
        ours = {(place.file, line) for place in places for line in place.lines}
        false = sum(_is_listed(judged, "false", file, remark.line) for file, remark in named)
        extra = sum(_is_listed(judged, "added", file, remark.line) for file, remark in named)
        true = sum((file, remark.line) in ours for file, remark in named) + extra
        judged_by_kind.update(place.kind for place in places)
        named_by_kind.update(place.kind for place in found)
        judged_in_all[group] += len(places)
        named_in_all[group] += len(found)
        there_in_all[group] += sum(at_place.values())
        false_in_all[group] += false
        listed_in_all[group] += true + false
        print(f"{name:14} {len(found):4} of {len(places):4} named, {sum(at_place.values()):4} at their statement; "
              f"{false:3} of {true + false:4} named ones are false{_how(own)}")
        for place in places:
            if place not in found:
                print(f"    missed: {place.file}:{place.lines[0]} {place.kind} {place.name}")
        for file, remark in named:
            if (file, remark.line) not in ours and not any(
                    _is_listed(judged, word, file, remark.line) for word in ("false", "added", "doubtful", "beyond")):
                print(f"    not judged: {file}:{remark.line} {remark.concern}: {remark.what}")
    for kind, count in sorted(judged_by_kind.items()):
        print(f"{kind:10} {named_by_kind[kind]:4} of {count:4}")
    for group in (*GROUPS.values(), OTHERS):
        print(f"{group}: {named_in_all[group]} of {judged_in_all[group]} named "
              f"({named_in_all[group] / (judged_in_all[group] or 1):.0%}), {there_in_all[group]} at their statement; "
              f"{false_in_all[group]} of {listed_in_all[group]} named ones are false")
    print(f"all: {named_in_all.total()} of {judged_in_all.total()} named "
          f"({named_in_all.total() / (judged_in_all.total() or 1):.0%}), {there_in_all.total()} at their statement; "
          f"{false_in_all.total()} of {listed_in_all.total()} named ones are false")


def _named(own: OwnExtensions) -> list[tuple[str, Remark]]:
    return [(source.file, remark) for source in own.sources for remark in source.remarks if remark.unguarded]


def _judged_places(judged: Mapping[str, Any]) -> Iterator[JudgedPlace]:
    for file, functions in judged["places"].items():
        if isinstance(functions, list):   # lines alone
            for line in functions:
                yield JudgedPlace(file=file, function="", lines=range(line, line + 1), kind="any", name=str(line))
            continue
        for function, places in functions.items():
            for where, kind, name in places:
                first, last = where if isinstance(where, list) else (where, where)
                yield JudgedPlace(file=file, function=function, lines=range(first, last + 1), kind=kind, name=name)


def _is_listed(judged: Mapping[str, Any], word: str, file: str, line: int) -> bool:
    return line in judged.get(word, {}).get(file, ())


def _how(own: OwnExtensions) -> str:
    return "" if own.read_for else ", not preprocessed"


if __name__ == "__main__":
    main()
