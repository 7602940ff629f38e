r"""Text that is not ours made safe for where it goes: names, paths, exceptions, output of programs that we ran or read.

Who prints or writes for people takes one of these.  A character that does not show is replaced by its escape, `\x1b`:
nothing is hidden, and nothing is obeyed.  JSON says the same characters by its own escapes.

A program that `gilscope race` runs waits for what is imported here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LONGEST = 2000     # characters of one text; no name or message that somebody wrote to be read is longer
MOST_LINES = 200   # of a message
# Letters and marks by their category, and still nothing to see, or the blank of Braille; tags are format characters.
_BLANK = frozenset(map(chr, (
    0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0,
    *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))


def visible(text: str, *, most: int | None = LONGEST, whole: str = "") -> str:
    r"""Return `text` in one line in which every character shows: a line break as `\n`, an escape as `\x1b`.

    A tab is shown as the space that it is.

    Args:
        text: Anything, also with surrogates.
        most: What is longer is cut in its middle, with its length; None: nothing is.
        whole: Where all of it is, for whoever sees it cut.
    """
    if most is not None:
        text = cut(text, most, whole=whole)
    text = text.replace("\t", " ")
    if text.isprintable() and _BLANK.isdisjoint(text):
        return text
    return "".join(character if _shows(character) else _escape(character) for character in text)


def _shows(character: str) -> bool:
    # As Python's repr decides it: not controls, format characters (bidi, zero width), surrogates, nor other spaces.
    return character.isprintable() and character not in _BLANK


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def cut(text: str, most: int = LONGEST, *, whole: str = "") -> str:
    """Return `text`, of one that is longer than `most` characters its beginning, its length and its end.

    Args:
        text: Anything.
        most: Characters that are kept.
        whole: Where all of it is: "--json has all of them".
    """
    if len(text) <= most:
        return text
    end = most // 5
    where = f"; {whole}" if whole else ""
    return f"{text[:most - end]} ... [{len(text):,} characters{where}] ... {text[-end:]}"


def visible_lines(text: str) -> str:
    """Return text of several lines, with every character of each to be seen."""
    return "\n".join(visible(line.removesuffix("\r").expandtabs(4)) for line in text.split("\n"))


def message(text: str) -> str:
    """Return a message as it may stand in a terminal or a log: ours, with what is not ours in it, of several lines."""
    lines = visible_lines(text).split("\n")
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines[half:-half] = [f"... {len(lines) - 2 * half:,} lines are left out here ..."]
    return without_commands("\n".join(lines))


def visible_all[Value](value: Value, show: Callable[[str], str] = visible) -> Value:
    """Return a copy of plain values in which every text is shown safely; where all are already, the value itself.

    Whatever a renderer is given goes through this, so that no field has to be remembered.

    Args:
        value: Of dataclasses, tuples, lists, dicts; what else there is stays.
        show: What makes a text safe.
    """
    found: Any = value
    kind: Any = type(value)
    if kind is str:   # not the words of an Enum: they are ours
        found = show(found)
    elif kind in {tuple, list}:
        parts = [visible_all(each, show) for each in found]
        if any(new is not old for new, old in zip(parts, found, strict=True)):
            found = kind(parts)
    elif kind is dict:
        found = {visible_all(key, show): visible_all(each, show) for key, each in found.items()}
    elif hasattr(kind, "__dataclass_fields__"):
        from dataclasses import fields, replace

        old = {each.name: getattr(found, each.name) for each in fields(found) if each.init}
        new = {name: visible_all(each, show) for name, each in old.items()}
        if any(new[name] is not old[name] for name in old):
            found = replace(found, **new)
    return found   # type: ignore[no-any-return]  # made like `value`


def uncoloured(text: str) -> str:
    """Return text of a tool without the colours that it wrote although nobody asked."""
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def without_commands(text: str) -> str:
    r"""Return text of several lines in which no line is a command to the service that keeps it as a log.

    `::error::` at the beginning of a line, `##[error]`, `##vso[...]` and `##teamcity[...]` anywhere get an escape for
    their first character, `\u003a:error::`, which means the same inside of JSON.

    Source: `ActionCommand.TryParseV2` and `TryParse` of actions/runner; Azure Pipelines, "Logging commands"; TeamCity,
    "Service messages".
    """
    if "::" in text:
        import re

        # Colours may stand before a line's first character.
        text = re.sub(r"^((?:[^\S\n]|\x1b\[[0-9;]*m)*):(?=:)", r"\1\\u003a", text, flags=re.MULTILINE)
    return _without_marks(text)


def _without_marks(text: str) -> str:
    if "##" not in text:
        return text
    import re

    return re.sub(r"#(?=#[\w.-]*\[)", r"\\u0023", text)


def in_markdown(text: str) -> str:
    r"""Return text so that GitHub's Markdown shows it as it is, in a paragraph, an item or a table's cell.

    `|` would end a cell, `_x_` and `*` are emphasis, `<` a tag, `$` mathematics, `](` and `]:` a link, `&lt;` another
    character.  The tilde of "~ (floor 1.3 %)" needs it too: two of them strike out what is between.
    """
    import re

    one_line = re.sub(r"([\\`*_<>|~$])", r"\\\1", " ".join(visible(text, most=None).split()))
    one_line = re.sub(r"\](?=[(\[:])|&(?=#?\w+;)", r"\\\g<0>", one_line)
    # What would begin a heading, a list, a rule or a box to tick, or be taken for a heading's end.
    return re.sub(r"^(?=#{1,6}(?:\s|$)|[-+]\s|[-=]{2}|\[[ xX]?\])|(?<=\s)(?=#+$)", r"\\", one_line)


def in_markdown_image(text: str) -> str:
    """Return text so that it may stand for an image where that is not shown: brackets would end it."""
    import re

    return re.sub(r"(?<!\\)[\[\]]", r"\\\g<0>", in_markdown(text))


def in_url(path: str) -> str:
    """Return a path as a URL of Markdown or SARIF has it."""
    from urllib.parse import quote

    try:
        return quote(path, errors="surrogateescape")
    except UnicodeEncodeError:   # the name of no file
        return quote(path, errors="replace")


def in_json(text: str) -> str:
    r"""Return a JSON document that says the same and shows every character; its own line breaks stay."""
    shown = text if text.replace("\n", "").isprintable() and _BLANK.isdisjoint(text) else "".join(
        each if each == "\n" or _shows(each) else _json_escape(each) for each in text)
    return without_commands(shown)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i:i + 2].hex()}" for i in range(0, len(units), 2))


def in_command(text: str) -> str:
    """Return the message of a workflow command; its line breaks are ours.

    Source: GitHub Docs, "Workflow commands for GitHub Actions", and its escaping in actions/toolkit.
    """
    return _without_marks(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def in_command_property(text: str) -> str:
    """Return a property of a workflow command, such as its file."""
    return in_command(text).replace(":", "%3A").replace(",", "%2C")


def in_sarif_message(text: str) -> str:
    r"""Return a message of SARIF without links of others: `[text](target)` is one.

    Source: SARIF 2.1.0, section 3.11.6, "Messages with embedded links".
    """
    return text.replace("](", "\\](")
