"""Expand the macros of C and C++ that define functions or write, and know which macros are a constant.

`DEFINE_UPDATE(State32, update32)` outside of functions stands for a function that nothing else shows.  Its text is the
macro's, so the places in it are the macro's lines, once for all of its uses.

`INCREASE_COUNT(self->root)` inside of functions stands for a write that nothing else shows.  It is expanded where it
stands: what it writes to depends on its use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)(?:\((?P<parameters>[^()\n]*)\))?"
                     r"(?P<body>(?:[^\n]*\\\n)*[^\n]*)$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", re.MULTILINE)
# The head of a function and its brace, where a declaration can stand.
_FUNCTION = re.compile(r"(?:^|[;}])\s*(?!(?:do|if|else|for|while|switch|return)\b)[A-Za-z_][\w\s*#&:<>,]*"
                       r"\([^{};]*\)\s*\{")
_PASTE = re.compile(r"\s*##\s*")
_QUOTE = re.compile(r"(?<!#)#\s*\w+")
# What changes nothing that the search asks for, and what it must keep: the parser takes macros of both for types.
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)(?!\))|__declspec\s*\([^()]*(?:\([^()]*\))?[^()]*\)"
                        r"|\[\[.*?\]\]|\b(?:__inline(?:__)?|__forceinline|__restrict(?:__)?|__extension__|register)\b",
                        re.DOTALL)
_SPECIFIERS = re.compile(r"(?:\s|\b(?:static|inline|extern|const|restrict|volatile)\b)*$")
# A number of C; only whether it is zero counts.
_NUMBER = re.compile(r"[(\s]*(?:0[xX])?(\d[0-9a-fA-F]*|(?<=[xX])[a-fA-F][0-9a-fA-F]*)[uUlL]*[)\s]*$")
_TRANSPARENT = re.compile(r"(?:\bnamespace\s*[\w:]*|\bextern\s*\"\")\s*$")   # braces that are no function's
_WRITES = re.compile(r"(?<![=!<>])=(?!=)|<<=|>>=|\+\+|--|\bPy_(?:CLEAR|X?SETREF)\b")
# The search knows macros that lock by their names.
_LOCKS = re.compile(r"CRITICAL_SECTION|(?<!b)lock|mutex|\b(?:acquire|release)\b", re.IGNORECASE)
_OF_ADDRESS = re.compile(r"\(\s*&\s*(\w+)\s*\)\s*->")   # a field of a variable that was given by its address
_MOST_NESTED = 8        # macros in macros
_MOST_EXPANDED = 2000   # uses in one file; macros that use each other without an end stop here


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition:
    parameters: tuple[str, ...] | None   # None for a macro without parentheses
    body: str                            # of as many lines as in the source, joined by newlines
    file: str
    line: int                            # of the body's first line

    @property
    def defines(self) -> bool:
        """True for the macro of a function."""
        return self.parameters is not None and _FUNCTION.search(self.body) is not None

    @property
    def is_part(self) -> bool:
        """True for a macro with parentheses that stands for a whole part of a function, and takes no lock in it."""
        return self.parameters is not None and not self.defines and _LOCKS.search(self.body) is None and all(
            self.body.count(opening) == self.body.count(closing) for opening, closing in ("()", "{}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedCode:
    """A source and, after its last line, the functions that its macros define."""

    code: str
    origins: tuple[int, ...]             # of each line after the source's own: the line that it comes from

    def line(self, line: int) -> int:
        """Return the line of the source that a line of `code` comes from."""
        own = self.code.count("\n") + 1 - len(self.origins)
        return line if line <= own else self.origins[line - own - 1]


class MacroTable:
    """The macros that all sources of a project define."""

    def __init__(self, codes: Mapping[str, str]) -> None:
        """Read the macros of sources without comments and strings.

        Args:
            codes: Code by file.
        """
        self._definitions: dict[str, list[_Definition]] = {}
        for file, code in codes.items():
            for found in _DEFINE.finditer(code):
                listed = found["parameters"]
                self._definitions.setdefault(found["name"], []).append(_Definition(
                    parameters=None if listed is None else tuple(each.strip() for each in listed.split(",")),
                    body=found["body"].replace("\\\n", "\n"), file=file,
                    line=code.count("\n", 0, found.start("body")) + 1))
        self.defining = {name for name, found in self._definitions.items()
                         if any(each.defines for each in found)}
        self._parts = {name: next((each for each in found if _WRITES.search(each.body)), found[0])
                       for name, found in self._definitions.items() if all(each.is_part for each in found)}
        self.writing = {name for name, each in self._parts.items() if _WRITES.search(each.body)}
        self._writing_use = re.compile(
            rf"{_DIRECTIVE.pattern}|\b({'|'.join(map(re.escape, sorted(self.writing)))})[ \t]*\(", re.MULTILINE)
        self._specifiers = {name: specifiers for name, found in self._definitions.items()
                            if (specifiers := _specifiers_of(found)) is not None}

    def constant(self, condition: str) -> bool | None:
        """Return the value of a condition that is a number, or a macro that is one; None for another condition."""
        words = condition.strip()
        while words.startswith("(") and _closing(words, 0) == len(words) - 1:
            words = words[1:-1].strip()
        if words.startswith("!") and (value := self.constant(words[1:])) is not None:
            return not value
        if number := _NUMBER.match(words):
            return int(number[1], 16) != 0
        name = re.match(r"(\w+)\s*(?=\(|$)", words)
        if name is None or (name.end() < len(words) and _closing(words, name.end()) != len(words) - 1):
            return None
        values = {self.constant(each.body) if _NUMBER.match(each.body) else None
                  for each in self._definitions.get(name[1], ())}
        return values.pop() if len(values) == 1 else None

    def expand(self, file: str, code: str) -> ExpandedCode:
        """Return the code of a file with the functions that its macros define, and with what its macros write."""
        code = self._with_writes(self._with_specifiers(code))
        if not self.defining:
            return ExpandedCode(code=code, origins=())
        code, waiting = self._without_uses(code)
        lines, origins = [code], []
        for number, (definition, arguments, line) in enumerate(waiting):   # the loop appends to the list it reads
            text, inner = self._without_uses(self._with_writes(self._with_specifiers(
                _substituted(definition, arguments))))
            for place, each in enumerate(text.split("\n")):
                lines.append(each)
                origins.append(definition.line + place if definition.file == file else line)
            if number < _MOST_EXPANDED:
                waiting += [(found, given, line) for found, given, _ in inner]
        return ExpandedCode(code="\n".join(lines), origins=tuple(origins))

    def _with_specifiers(self, code: str) -> str:
        """Return code with `static`, `inline` and their like in place of the macros that stand for them."""
        if not self._specifiers:
            return code
        names = re.compile(rf"{_DIRECTIVE.pattern}|\b(?:{'|'.join(map(re.escape, self._specifiers))})\b", re.MULTILINE)
        return names.sub(lambda match: self._specifiers.get(match[0], match[0]), code)

    def _with_writes(self, code: str) -> str:
        """Return code in which each use of a macro that writes is expanded, in its line."""
        if not self.writing:
            return code
        parts, seen = [], 0
        for match in self._writing_use.finditer(code):
            end = _closing(code, match.end() - 1) + 1 if match[1] and match.start() >= seen else 0
            if end:
                use = code[match.start():end]
                parts += [code[seen:match.start()], self._expanded(use, ()), "\n" * use.count("\n")]
                seen = end
        return "".join([*parts, code[seen:]])

    def _expanded(self, text: str, within: tuple[str, ...]) -> str:
        """Return text, as one line, in which the macros of the project are expanded, also those in their bodies."""
        parts, seen = [], 0
        for match in re.finditer(r"\b([A-Za-z_]\w*)[ \t]*\(", text):
            definition = self._parts.get(match[1]) if match[1] not in within else None
            end = _closing(text, match.end() - 1) + 1 if definition and match.start() >= seen else 0
            if definition and end and len(within) < _MOST_NESTED:
                given = [text[first:last] for first, last in _arguments(text, match.end() - 1, end)]
                parts += [text[seen:match.start()],
                          self._expanded(_substituted(definition, given), (*within, match[1]))]
                seen = end
        return _OF_ADDRESS.sub(r"\1.", " ".join("".join([*parts, text[seen:]]).split()))

    def _without_uses(self, code: str) -> tuple[str, list[tuple[_Definition, list[str], int]]]:
        """Return code with blanks in place of the uses of defining macros outside of functions; and these uses."""
        found, parts, seen = [], [], 0
        for name, start, end in self._uses(code):
            arguments = [code[first:last] for first, last in _arguments(code, code.index("(", start), end)]
            line = code.count("\n", 0, start) + 1
            found += [(each, arguments, line) for each in self._definitions[name]
                      if each.defines]
            parts += [code[seen:start], "\n" * code.count("\n", start, end)]
            seen = end
        return "".join([*parts, code[seen:]]), found

    def _uses(self, code: str) -> Iterator[tuple[str, int, int]]:
        """Yield name, start and end of each use of a defining macro outside of functions."""
        plain = _DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code)
        inside: list[bool] = []
        after = 0
        for match in re.finditer(r"[{}]|\b([A-Za-z_]\w*)\s*\(", plain):
            if match.start() < after:
                continue
            if match[0] == "{":
                inside.append(not _TRANSPARENT.search(plain[max(0, match.start() - 200):match.start()]))
            elif match[0] == "}":
                del inside[-1:]
            elif match[1] in self.defining and not any(inside):
                end = _closing(plain, match.end() - 1)
                if end < 0:
                    return
                after = end + 1
                yield match[1], match.start(), after


def _specifiers_of(definitions: Sequence[_Definition]) -> str | None:
    """Return the specifiers that a macro stands for in each of its definitions; None if it stands for more."""
    found = {" ".join(_ATTRIBUTE.sub(" ", each.body).split()) for each in definitions
             if each.parameters is None}
    if len(found) != 1 or any(each.parameters is not None for each in definitions):
        return None
    words = found.pop()
    return words if _SPECIFIERS.match(words) else None


def _closing(text: str, start: int) -> int:
    """Return the offset of the parenthesis that closes the one at `start`; -1 if none does."""
    depth = 0
    for match in re.compile(r"[()]").finditer(text, start):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return match.start()
    return -1


def _arguments(code: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the arguments between two parentheses."""
    depth, first = 0, start + 1
    for place in range(start + 1, end - 1):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[place], 0)
        if code[place] == "," and not depth:
            yield first, place
            first = place + 1
    yield first, end - 1


def _substituted(definition: _Definition, arguments: Sequence[str]) -> str:
    """Return the body of a macro for its arguments, on the lines of the body."""
    parameters = definition.parameters or ()
    given = [" ".join(each.split()) for each in arguments]
    values = dict(zip(parameters, given, strict=False))
    if parameters and parameters[-1].endswith("..."):
        rest = ", ".join(given[len(parameters) - 1:])
        values |= {"__VA_ARGS__": rest, parameters[-1].removesuffix("...").strip(): rest}
    text = _QUOTE.sub('""', definition.body)
    return _PASTE.sub("", re.sub(r"[A-Za-z_]\w*", lambda match: values.get(match[0], match[0]), text))
