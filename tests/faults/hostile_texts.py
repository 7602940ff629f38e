"""Texts that want to be more than text, and values of any dataclass with such a text in every field that holds one."""

import dataclasses
import re
import unicodedata
from enum import Enum
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

from gilscope.toolkit.model import Build, Note
from gilscope.toolkit.stats.verdict import Comparison

NAMES = {each.__name__: each for each in (Build, Comparison, Note)}   # what annotations say to type checkers alone

UNSEEN = "".join(each for each in map(chr, range(0x110000))
                 if each not in " \n\t" and unicodedata.category(each) in {"Cc", "Cf", "Cs", "Zl", "Zp"})
BLANK = "\u034f\u115f\u1160\u17b4\u180b\u2800\u3164\uffa0\ufe0f\U000e0100"   # letters and marks with nothing to see

TEXTS = {
    "colours": "\x1b[31mred\x1b[0m",
    "a terminal's title": "\x1b]0;title\x07",
    "a terminal's link": "\x1b]8;;http://a.example\x1b\\here\x1b]8;;\x1b\\",
    "C1 controls": "\x9b31mred\x9d0;title\x9c",
    "a line overwritten": "all is well\rgone\b\b\b\b",
    "bidi override": "\u202egnp.exe\u202c",
    "bidi isolates": "\u2066x\u2067y\u2068z\u2069\u200e\u200f\u061c",
    "zero width": "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg",
    "line separators": "a\u2028::error::b\u2029c\x85::error::d\x0be\x0cf",
    "a line": "w\n::error file=x.py,line=1::injected",
    "a command": "::error file=x.py,line=1::injected",
    "a command after spaces": "  \t::stop-commands::x",
    "a command after a wide space": "\u2003::add-mask::a",
    "a command after many words": "word " * 30 + "::warning::x " * 9,
    "an old command": "x ##[error]y ##[add-mask]a",
    "commands of other services": "##vso[task.setvariable variable=a]b ##teamcity[testFailed name='a']",
    "escapes of commands": "a%0A::error::b%0D,title=c::d",
    "lines of ours": "x\n\nDATA RACE on y: lost update\ngilscope race: 1 data race",
    "a table": "a|b\n| --- | --- |\n| c | d |",
    "an escaped bar": "\\| a \\\\| b |",
    "markup": "[bold]x[/bold] [/] [red on blue]y [link=http://a.example]z[/link] [@click=app.bell]w[/]",
    "emoji": ":smile: :thumbs_up:",
    "tags": "<b>x</b><script>alert(1)</script><img src=x onerror=y><!-- z -->",
    "character references": "&lt;b&gt; &#x202e;x &amp;&nbsp;y",
    "links": "[x](javascript:alert(1)) ![y](http://a.example/z.png) [w][v] <http://a.example>",
    "definitions": "[x]: http://a.example 'y'",
    "a footnote": "[^1]: x [^1]",
    "emphasis": "**x** __y__ *z* _w_ ~~v~~ `u` ``t``",
    "fences": "```\nx\n```", "tildes": "~~~ python", "a heading": "# x #", "an underline": "===", "a rule": "---",
    "an item": "- x", "another item": "+ x", "a third item": "* x", "a box": "[x] done", "a quotation": "> x",
    "mathematics": "$x^2$ $$\\frac{a}{b}$$ $`y`$",
    "bytes of no text": "a\udcff\udc80b\ud800",
    "control characters": "".join(map(chr, [*range(9), *range(11, 32), *range(127, 160)])),
    "everything unseen": UNSEEN[::-1],   # not as pairs of surrogates, which JSON reads as one character
    "blanks": f"a{BLANK}b",
    "a long one": "x" * 100_000,
    "a long one with lines": "::error::y\n" * 10_000,
}


def is_safe(text, *, commands=()):
    """Return what is wrong with printed text: nothing where all of it shows and no service obeys a line of it."""
    if unseen := sorted({each for each in text if each in UNSEEN or each in BLANK} - {"\n"}):
        return f"not to be seen: {unseen}"
    for line in text.split("\n"):
        if line.lstrip().startswith("::") and not line.startswith(tuple(commands) or "\0"):
            return f"a command: {line}"
        if re.search(r"##\w*\[", line):
            return f"an old command: {line}"
    return ""


def filled(kind, text, closed=None):
    """Return a value of the type `kind` with `text` wherever a text may stand.

    Args:
        kind: As it stands in an annotation.
        text: The text.
        closed: Values of fields that hold one of a few words, by class and field.
    """
    return variants(kind, text, closed or {})[0]


def variants(kind, text, closed):  # noqa: PLR0911 - one for each kind of annotation
    """Return one value for each type that `kind` allows."""
    origin, parts = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        return [_instance(kind, text, closed)]
    if origin in {UnionType, Union}:
        some = [part for part in parts if part is not NoneType]
        return [value for part in some for value in variants(part, text, closed)]
    if origin is Literal:
        return [parts[0]]
    if origin is tuple:
        parts_of = variants(parts[0], text, closed) if parts[-1] is Ellipsis else (
            variants(part, text, closed)[0] for part in parts)
        return [tuple(parts_of)]
    if origin is dict:
        key, value = (variants(part, text, closed)[0] for part in parts)
        return [{key: value}]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [next(iter(kind))]
    return [{str: text, int: 1, float: 1.0, bool: True}[kind]]   # another type of field: say here what it holds


def _instance(kind, text, closed):
    hints = get_type_hints(kind, localns=NAMES)
    fields = {each.name: closed[kind, each.name] if (kind, each.name) in closed
              else variants(hints[each.name], text, closed)[0] for each in dataclasses.fields(kind) if each.init}
    if kind.__name__ == "Table":   # its rows are as long as there are columns: one for each kind of value
        (entry,) = {type(each) for each in fields["rows"][0]}
        (value, marks) = (get_type_hints(entry, localns=NAMES)[name] for name in ("value", "marks"))
        row = tuple(entry(each, *variants(marks, text, closed)) for each in variants(value, text, closed))
        (column,) = fields["columns"]
        columns = [dataclasses.replace(column, key=i == 0, detail=False) for i in range(len(row))]
        fields |= {"rows": (row,), "columns": tuple(columns)}
    return kind(**fields)
