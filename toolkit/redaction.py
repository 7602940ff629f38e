r"""Remove names, folders, addresses and secrets from pages that are attached, mailed or published.

Folders are replaced by their role, as in `<build>/lib/python3.14/queue.py`, and addresses in the output of failed cells
by `<user>@<host>`.  Names and secrets are not replaced, since a text with holes misleads: a page is refused while
`leaks` finds any.
"""

from __future__ import annotations

import html
import re
import socket
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PUBLIC = "GILSCOPE_PUBLIC"     # the variable with what may go out, separated by commas
MOST_LEAKS = 10                 # leaks in one message
BESIDE = 30                    # characters shown on each side of one
SHORTEST_NAME = 3              # a shorter one is part of everything
SHORTEST_SECRET = 6            # longer than "false"
RANDOM = 16                    # from so many letters and digits on a value looks like a key, whatever it is called

# Accounts, hosts and environments of these names are nobody's.
_COMMON = frozenset({
    "admin", "app", "base", "build", "builder", "ci", "compare", "conda", "data", "debian", "default", "desktop",
    "dev", "developer", "docker", "env", "example", "experiments", "fedora", "gilscope", "guest", "history", "home",
    "jenkins", "laptop", "local", "localhost", "machine", "machines", "main", "me", "nobody", "page", "pages", "pi",
    "python", "report", "results", "root", "run", "runner", "runs", "server", "site", "src", "test", "tests", "tmp",
    "ubuntu", "user", "users", "vagrant", "venv", "virtualenv", "vscode", "work",
})
_SECRET = re.compile(r"TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)|CREDENTIAL|API_?KEY|AUTH|COOKIE|PRIVATE|DSN", re.IGNORECASE)
_PUBLISHED = re.compile(r"SHA|VERSION|HASH|GPG|DIGEST", re.IGNORECASE)   # of what was installed, in container images

_STANDS_FOR = ("<build>", "<packages>", "<folder>", "<home>")
_PART = r"""[^\s/"'<>|:;,()\[\]{}]+"""
# Not the middle of a path, of a URL or of what stands for a folder; `-I/usr/include` is a path.  What is before the
# slash is looked at after it, as a character that a pattern begins with is found ten times as fast.
_BEGIN = "/" + "".join(f"(?<!{each}/)" for each in _STANDS_FOR) + r"(?:(?<=-[A-Z]/)|(?<=file:///)|(?<![\w.~/]/))"
_PATH = re.compile(rf"{_BEGIN}(?:(?:{_PART}/)+(?:{_PART})?|root(?![\w.-]))")
# A script with a type is data.  Patterns, as a site has hundreds of megabytes.
_OURS = (re.compile(r"<style>.*?</style>|<script>.*?</script>", re.DOTALL), re.compile(r"</\w+>|/>"),
         re.compile(r"""\s(?:d|points|transform|class|viewBox)="[^"]*"|"data:[^"]*\""""))
_TAG = re.compile("<[a-zA-Z][^>]*>")
_OF_ANY_SYSTEM = ("/bin/", "/dev/", "/etc/", "/lib/", "/lib64/", "/proc/", "/sbin/", "/sys/", "/usr/")
# Not a version (checkout@v4, python@3.14), nor where a package comes from (name@https://...).
_HOST = r"(?!v\d)[A-Za-z][\w-]*{dotted}(?![\w+-]|://)|\d+(?:\.\d+){{3}}(?![\w.])"
_USER = re.compile(r"[\w.+-]+(?::[^\s@/:]+)?$")
_ADDRESS = re.compile(
    r"(?<![\w.+@:-])(?<!\w/)[\w.+-]+(?::[^\s@/:]+)?@(?:" + _HOST.format(dotted=r"(?:\.[A-Za-z][\w-]*)*") + ")")
# In a page, where sources may be, one with a domain alone: `a@b` multiplies.
_WITH_DOMAIN = re.compile(r"@(?<=\w@)(?:" + _HOST.format(dotted=r"(?:\.[A-Za-z][\w-]*)*\.[A-Za-z]{2,}") + ")")
LONGEST_USER = 64              # characters of the part before the @ (RFC 5321)
_HOME = re.compile(rf"/(?:home|Users)/{_PART}/?|/root/?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """Something private in what would go out."""

    what: str      # "the name of the user"
    text: str      # "ann"
    where: str     # the words around it


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateNames:
    """The names of one machine and its user, and their secrets."""

    words: Mapping[str, str] = field(default_factory=dict)   # by what it is found by, in lower case: what it is
    public: frozenset[str] = frozenset()                     # what may go out

    def leaks(self, text: str) -> Iterator[Leak]:
        """Yield each folder, address, name and secret in a text."""
        for found in _PATH.finditer(text):
            if found[0].rstrip(".") not in self.public and without_folders(found[0]) != found[0]:
                what = "a home folder" if _HOME.match(found[0]) else "a folder"
                yield Leak(what=what, text=found[0], where=_around(text, *found.span()))
        for found in _WITH_DOMAIN.finditer(text):
            user = _USER.search(text, max(0, found.start() - LONGEST_USER), found.start())
            begin = user.start() if user else found.start()
            if (address := text[begin:found.end()]) not in self.public and not address.startswith("git@"):
                yield Leak(what="an address", text=address, where=_around(text, begin, found.end()))
        low = text.lower()
        for word, what in self.words.items():
            if word in low:   # spares the pattern, nearly always
                for found in re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", low):
                    yield Leak(what=what, text=text[slice(*found.span())], where=_around(text, *found.span()))

    def page_leaks(self, page: str) -> Iterator[Leak]:
        """Yield each private thing in the text, attributes and data of an HTML page; scripts and styles are ours."""
        if any(self.leaks(html.unescape(text := _without_ours(page)))):   # rarely: what follows takes longer
            yield from self.leaks(html.unescape(_TAG.sub(_values, text)))


def of_this_machine(environ: Mapping[str, str], hosts: Iterable[str] = ()) -> PrivateNames:
    """Collect the names and secrets of this machine and its user.

    Args:
        environ: Variables of the environment.
        hosts: Names of other machines, of which there are results.
    """
    words: dict[str, str] = {}
    public = frozenset(each.strip() for each in environ.get(PUBLIC, "").split(",") if each.strip())

    def add(text: str, what: str, shortest: int = SHORTEST_NAME) -> None:
        low = text.lower()
        if len(text) >= shortest and low not in _COMMON and low not in {each.lower() for each in public}:
            words.setdefault(low, what)

    for name, value in environ.items():
        if _is_secret(name, value):
            add(value, f"the value of {name}", SHORTEST_SECRET)
    for user in (environ.get("USER", ""), environ.get("LOGNAME", ""), Path(environ.get("HOME", "")).name):
        add(user, "the name of the user")
    for host in (socket.gethostname(), *hosts):
        add(host, "the name of the host")
        add(host.partition(".")[0], "the name of the host")
    for environment in (environ.get("CONDA_DEFAULT_ENV", ""), Path(environ.get("VIRTUAL_ENV", "")).name):
        if not re.fullmatch(r"\W*(?:v?env|py(?:thon)?)?[\d.]*t?", environment):
            add(Path(environment).name.lstrip("."), "the name of the environment")
    return PrivateNames(words=words, public=public)


def _is_secret(name: str, value: str) -> bool:
    if "/" in value:   # a path is found as one
        return False
    keylike = len(value) >= RANDOM and value.isascii() and value.isalnum() and not value.isalpha() and \
        not value.isdigit() and not _PUBLISHED.search(name)
    return keylike or (_SECRET.search(name) is not None and not value.isdigit())


def without_folders(text: str, root: str = "") -> str:
    """Return text with paths below `root` relative to it, and others with what their folder stands for.

    `/srv/py/lib/python3.14/queue.py` becomes `<build>/lib/python3.14/queue.py`, what lies in site-packages
    `<packages>/...`, other paths `<folder>/name`.  Folders that every system has stay.
    """
    if "/" not in text:
        return text
    root = root.rstrip("/")
    if root:
        # The left boundary: a path that merely ends like it is another one.
        below = rf"(?<![\w.~/>-]){re.escape(root)}(?:/|(?![\w.-]))"
        text = re.sub(below, lambda found: "." if found[0] == root else "", text)
    return _PATH.sub(lambda found: _stands_for(found[0]), text)


def without_addresses(text: str) -> str:
    """Return text with `<user>@<host>` in place of each address, of a mailbox or of an account on a machine."""
    return _ADDRESS.sub("<user>@<host>", text) if "@" in text else text


def without_places(text: str) -> str:
    """Return the output of a program or system without folders and addresses."""
    return without_addresses(without_folders(text))


def _stands_for(path: str) -> str:
    end = "." if path.endswith(".") else ""   # of a sentence
    path = path.removesuffix(".")
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return f"<packages>/{path.rpartition(folder)[2]}{end}"
    if found := re.search(r"/(lib(?:64)?/python3[^/]*/.*|bin/python[^/]*)$", path):
        return f"<build>/{found[1]}{end}"
    if path.startswith(_OF_ANY_SYSTEM):
        return path + end
    if _HOME.fullmatch(path):
        return f"<home>{end}"
    return f"<folder>/{path.rstrip('/').rpartition('/')[2]}{end}"


def _around(text: str, begin: int, end: int) -> str:
    words = " ".join(text[max(0, begin - BESIDE):end + BESIDE].split())
    return f"{'...' if begin > BESIDE else ''}{words}{'...' if end + BESIDE < len(text) else ''}"


def _without_ours(page: str) -> str:
    """Return a page without ends of tags, drawings, and scripts of ours."""
    for ours in _OURS:
        page = ours.sub(" ", page)
    return page


def _values(tag: re.Match[str]) -> str:
    """Return the values of a tag's attributes."""
    return " " + " ".join(re.findall('"([^"]*)"', tag[0])) + " "


def leak_lines(found: Iterable[Leak]) -> list[str]:
    """Return a line for each thing that would go out: what it is, how often, and where it stands first."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], str] = {}
    for leak in found:
        counts[leak.what, leak.text] += 1
        first.setdefault((leak.what, leak.text), leak.where)
    return [f"{what}, {text!r}{f', {times} times' if times > 1 else ''}: {first[what, text]}"
            for (what, text), times in counts.items()]


def refuse(name: str, found: Iterable[Leak]) -> None:
    """Refuse to write what would tell of a person or a machine.

    Args:
        name: What was to be written.
        found: What is private in it.

    Raises:
        ToolkitError: there is something.
    """
    leaks = list(found)
    if not leaks:
        return
    lines = leak_lines(leaks)
    more = [f"and {len(lines) - MOST_LEAKS} more"] if len(lines) > MOST_LEAKS else []
    texts = ",".join(dict.fromkeys(each.text for each in leaks))
    raise ToolkitError("\n  ".join([f"{name} was not written, since it would reveal:", *lines[:MOST_LEAKS], *more])
                       + f"\nRename it where it comes from, or allow it to be published: {PUBLIC}={texts!r}")
