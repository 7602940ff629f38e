"""Find the lines of C and C++ that a build's compiler sees: the branches of `#if` that count there.

The compiler's preprocessor runs on a copy in which each branch begins with a mark; nothing is compiled.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tempfile
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.children.at_once import at_once
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.evaluate.project.extensions.source_text import code_of_c
from gilscope.toolkit.processes.supervised import run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

MOST_SECONDS = 20.0          # for one source
SOURCES, PLUS = (".c", ".cc", ".cpp", ".cxx"), (".cc", ".cpp", ".cxx")
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b")
_INCLUDE = re.compile(r"[ \t]*#[ \t]*include[ \t]*([\"<])([^\">\n]+)[\">]")
_OPENS, _CHANGES = {"if", "ifdef", "ifndef"}, {"elif", "elifdef", "elifndef", "else"}
_MARK = re.compile(r"__gilscope_(\d+)_(\d+)__")
_PYTHON = ("Python.h", "structmember.h", "patchlevel.h", "pythread.h")
_ASK = "import json, sysconfig; print(json.dumps([sysconfig.get_path('include'), sysconfig.get_config_var('CC')]))"


def active_texts(
    sources: Mapping[str, str], executable: str, flags: Mapping[str, Collection[tuple[str, ...]]] | None = None,
    compiled: Collection[str] = (), left: Callable[[], float] = lambda: inf,
) -> dict[str, str]:
    """Return the sources with blank lines in place of what the compiler of a build leaves out.

    Args:
        sources: The text of each source and header by file, relative to the root of the project.
        executable: The build's Python.
        flags: What the project gives the preprocessor for a source, once for each module that is made of it.
        compiled: The sources that the modules are made of, if all are known: others count only if these include them.
        left: Returns the seconds that are left; after these nothing more is preprocessed.

    Returns:
        Text by file, with the same lines; files that cannot be preprocessed are absent, and, unless
        `compiled` is known, those that none of them includes.
    """
    asked = _compiler_of(executable)
    if asked is None:
        return {}
    include, compiler = asked
    names = list(sources)
    with tempfile.TemporaryDirectory(prefix="gilscope-", ignore_cleanup_errors=True) as made:
        root = Path(made)
        for number, name in enumerate(names):
            place = root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("\n".join(_marked(sources[name], number, sources)), errors="replace")
        folders = dict.fromkeys(["", *(name.rpartition("/")[0] for name in names if not name.endswith(SOURCES))])
        # After the system's: a project may carry a <stdint.h> for other compilers.
        places = [f"-I{include}", *(part for folder in folders for part in ("-idirafter", str(root / folder)))]
        commands = [[*compiler, "-E", "-P", "-w", "-DNDEBUG", *given, *places, "-x",
                     "c++" if name.endswith(PLUS) else "c", str(root / name)]
                    for name in names if (name in compiled if compiled else name.endswith(SOURCES))
                    for given in (flags or {}).get(name) or [()]]
        marks = at_once(lambda command: _marks_of(command, left()), commands, usable_cores())
    seen = set().union(*marks)
    every = bool(compiled) and all(marks)   # each of them could be preprocessed
    return {name: _active(sources[name], {line for file, line in seen if file == number})
            for number, name in enumerate(names) if (number, 0) in seen or every}


def _compiler_of(executable: str) -> tuple[str, list[str]] | None:
    """Return the folder of a build's headers and its compiler; None if one of them is missing."""
    try:
        include, named = json.loads(run([executable, "-I", "-c", _ASK], timeout=MOST_SECONDS).stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    words = shlex.split(named or "")[:1]
    found = next((each for each in (*words, "cc", "gcc", "clang") if shutil.which(each)), None)
    if found is None or not (Path(include) / "Python.h").is_file():
        return None
    return include, [found]


def _marks_of(command: Sequence[str], left: float) -> set[tuple[int, int]]:
    """Return the marks in what the preprocessor leaves; none if it fails, or no time is left."""
    if left <= 0:
        return set()
    try:
        ended = run(command, timeout=min(MOST_SECONDS, left))
    except (OSError, subprocess.SubprocessError):
        return set()
    return {(int(file), int(line)) for file, line in _MARK.findall(ended.stdout)} if not ended.returncode else set()


def _marked(text: str, number: int, sources: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a copy that says which of its branches are left."""
    yield f"__gilscope_{number}_0__"
    directives = dict(_directives(text))
    pending = 0
    for line, words in enumerate(text.split("\n"), 1):
        pending = line if line in directives else pending
        if found := _INCLUDE.match(words):
            # What is not there, or is large and decides nothing, must not stop the preprocessor.
            name = found[2]
            own = any(each == name or each.endswith(f"/{name}") for each in sources)
            if name in _PYTHON or own:
                mark = '"' if found[1] == '"' else ""
                quoted = f"{mark}{name}{mark}" if mark else f"<{name}>"
                yield from (f"#if __has_include({quoted})", words, "#endif")
            continue
        yield words
        if pending and not words.rstrip().endswith("\\"):
            if directives[pending] != "endif":
                yield f"__gilscope_{number}_{pending}__"
            pending = 0


def _directives(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each directive that opens, changes or closes a branch; comments do not count."""
    for line, words in enumerate(code_of_c(text).split("\n"), 1):
        if found := _DIRECTIVE.match(words):
            yield line, found[1]


def _active(text: str, seen: set[int]) -> str:
    """Return a text in which directives and inactive branches are blank."""
    directives, lines = dict(_directives(text)), text.split("\n")
    found, branches, inside = [], [0 in seen], False
    for line, words in enumerate(lines, 1):
        name = directives.get(line)
        if name in _OPENS:
            branches.append(line in seen)
        elif name in _CHANGES and len(branches) > 1:
            branches[-1] = line in seen
        elif name == "endif" and len(branches) > 1:
            branches.pop()
        inside = name is not None or inside
        found.append("" if inside or not all(branches) else words)
        inside = inside and words.rstrip().endswith("\\")
    return "\n".join(found)
