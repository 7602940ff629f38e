"""Is a command of the pages one that could be run?  Looks at names and options; starts nothing."""

import argparse
import importlib.util
import re
import shlex

from gilscope.toolkit.cli import COMMANDS, make_parser
from tests.docs.pages import ROOT, blocks, modules


def check(text: str) -> None:
    """Parse a command line, or several with && or pipes between them.

    Raises:
        AssertionError: there is no such command, option or file.
    """
    for words in parts(text):
        assert words[0] in CHECKS, f"{text!r}: nobody knows how to check {words[0]!r}"
        CHECKS[words[0]](words[1:])


def parts(text: str) -> list[list[str]]:
    """Return the words of each command of a line."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="&|")
    lexer.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in lexer:
        if word in {"&&", "|"}:
            found.append([])
        else:
            found[-1].append(word)
    return found


def _gilscope(words: list[str]) -> None:
    parser = make_parser((words[0],) if words[0] in COMMANDS else COMMANDS)
    try:
        parser.parse_args(words)
    except SystemExit as stop:   # 0: it printed what was asked for
        if stop.code:
            raise AssertionError(f"gilscope refuses {shlex.join(words)}") from stop


def _make(words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in words:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make has no {target}"


def _python(words: list[str]) -> None:
    if words[0] != "-m":
        assert words[0] in modules(), f"no page shows {words[0]}"
        return
    assert importlib.util.find_spec(words[1]) is not None, f"there is no module {words[1]}"
    if words[1] in CHECKS:
        CHECKS[words[1]](words[2:])


def _pytest(words: list[str]) -> None:
    for word in words:
        known = word in {"--race", "--gil=off", "-q", "tests"} or word in modules() or (ROOT / word).exists()
        assert known, f"pytest: what is {word}?"


def _tox(words: list[str]) -> None:
    assert words[:2] == ["run", "-e"], words
    configured = (ROOT / "tox.ini").read_text() + "".join(blocks(ROOT / "docs" / "ci.md", "ini"))
    for name in words[2].split(","):
        assert re.search(rf"\b{name}\b", configured), f"tox has no environment {name}"


def _pip(words: list[str]) -> None:
    assert words[0] in {"install", "download", "uninstall"}, words


CHECKS = {
    "gilscope": _gilscope, "make": _make, "python": _python, "pytest": _pytest, "tox": _tox, "pip": _pip,
    **dict.fromkeys(("tar", "cd", "jq", "sort", ".", "export", "rm", "du"), lambda words: None),   # not ours
}


def options_of(words: list[str]) -> set[str]:
    """Return the options of the command that `words`, which begin behind "gilscope", name; deep as "builds install"."""
    parser: argparse.ArgumentParser = make_parser()
    options = set(parser._option_string_actions)
    for word in words:
        choices = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        if not choices or word not in choices[0]:
            break
        parser = choices[0][word]
        options = set(parser._option_string_actions)
    return options
