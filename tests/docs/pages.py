"""The project's Markdown pages, and what stands in them: commands, modules, links, headings, figures."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = (README, ROOT / "CONTRIBUTING.md", *DOCS)   # README first: its commands are run as they stand there

CONSOLE = re.compile(r"(?:^<!-- only parsed: ([^\n]*) -->\n)?^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ ((?:'[^'\n]*'|[^'#\n]|(?<=\S)#)*?)\s*(?:# ([^\n]*))?$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
MODULE = re.compile(r"^```python\n(?=# (\w+\.py)\n)(.*?)^```", re.DOTALL | re.MULTILINE)   # its name is its first line
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """One line after "$ " in a console block; the others are output."""

    text: str                 # without its comment
    page: Path
    exits: int                # "exits with N" in its comment, else 0
    only_parsed: str | None   # the reason why it is not run, from the comment above its block

    def __str__(self) -> str:
        """Return it as pytest is to show it."""
        return f"{self.page.name}: {self.text}"


def commands(page: Path) -> Iterator[Command]:
    for reason, block in CONSOLE.findall(page.read_text()):
        assert block.startswith("$ "), f"{page.name}: a console block begins with no command: {block}"
        for text, comment in COMMAND.findall(block):
            exits = re.search(r"\bexits with (\d+)", comment)
            yield Command(text, page, int(exits[1]) if exits else 0, reason or None)


def all_commands() -> list[Command]:
    """Return the commands of all pages, each once; where one of the pages has it run, it is."""
    found: dict[str, Command] = {}
    for command in (each for page in PAGES for each in commands(page)):
        known = found.get(command.text)
        if known is None or (known.only_parsed and not command.only_parsed):
            found[command.text] = command
    return list(found.values())


def modules() -> dict[str, str]:
    """Return the Python files that the pages show, by name; a page that shows one again shows the same."""
    found: dict[str, str] = {}
    for page in PAGES:
        for name, code in MODULE.findall(page.read_text()):
            assert found.setdefault(name, code) == code, f"{page.name} shows another {name}"
    return found


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def prose(page: Path) -> str:
    """Return the page without its fenced blocks."""
    return FENCED.sub("", page.read_text())


def links(page: Path) -> Iterator[tuple[bool, str]]:
    """Yield (is an image, target) for each link."""
    for mark, target in LINK.findall(INLINE.sub("", prose(page))):
        yield bool(mark), target


def anchors(page: Path) -> set[str]:
    """Return the names that code hosts give to the headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
