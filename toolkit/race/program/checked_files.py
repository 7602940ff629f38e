"""Say which files of a run were checked, and judge whether that is anything: an unchecked program has no race, either.

Imports little: the line is printed after every run, also after one that left nothing else to report.
"""

from __future__ import annotations

import os

from gilscope.toolkit.own_files import InstalledProject, is_test, project_name, split_installed
from gilscope.toolkit.race.program.spec import CHECKED, INCLUDED, INSTALLED, SPAWNED, STARTED, THREADS, UNCHECKED
from gilscope.toolkit.race.spool import opened
from gilscope.toolkit.units import counted, few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NO_RACE = "no race in what this run did"
MOST_BYTES = 2**24     # of the paths that are read
GILSCOPE = os.path.realpath(__file__).rpartition("race")[0]   # toolkit
REASONS = ((".so", "is compiled"), (".pyd", "is compiled"), (".pyc", "has no source file"),
           (".py", "was imported before the check began"))


class CheckedFiles:
    """The files of a run that were checked.

    Attributes:
        paths: All of them, in the order of their loading.
    """

    def __init__(
        self, folder: str, root: str, script: str = "", *, is_command: bool = False, include: Sequence[str] = (),
        option: str = "--include", ran: str = "in this process",
    ) -> None:
        """Read what the processes of a run have written.

        Args:
            folder: The spool folder.
            root: The folder of the project; without a name, it is only a folder with files.
            script: The program, if it is a file.
            is_command: It is a command that an environment has, not code of the user's.
            include: The patterns of modules to check besides the project's.
            option: The option that adds to them.
            ran: Where the program ran, for the reason why nothing was checked.
        """
        self._known = os.access(folder, os.R_OK | os.X_OK)   # the program may have removed it
        self.paths = _lines(folder, CHECKED)
        self._unchecked = _lines(folder, UNCHECKED)
        threads = _lines(folder, THREADS)
        self._is_alone = threads == ["1"]
        self._had_threads = not {"1", SPAWNED, STARTED}.issuperset(threads)
        self._children = [word for word in (SPAWNED, STARTED) if word in threads]
        matched = _lines(folder, INCLUDED)
        has_end = any(line.isdecimal() for line in threads)     # of a process
        self._unmatched = [repr(pattern) for pattern in include if has_end and pattern not in matched]
        self._installed = _lines(folder, INSTALLED)
        self._option = option
        self._ran = ran
        self._name = project_name(root)
        self._root = os.path.realpath(root)
        self._own: list[str] = []
        self._tests: list[str] = []
        self._others: list[str] = []    # checked, because --include names them or they are elsewhere
        installed = InstalledProject(root)
        for path in self.paths:
            real = os.path.realpath(path)
            if not (real.startswith(GILSCOPE) or (is_command and path == script)):
                self._add(path, real, installed, script)
        self._only_script = [*self._own, *self._others] == [script]

    def _add(self, path: str, real: str, installed: InstalledProject, script: str) -> None:
        site, file = split_installed(real)
        below = os.path.join(self._root, "")
        is_own = installed.has_file(real) if site else real.startswith(below)
        if is_own and path != script and is_test(file if site else real.removeprefix(below)):
            self._tests.append(path)
        else:
            (self._own if is_own else self._others).append(path)

    @property
    def is_nothing(self) -> bool:
        """Return True if no code of the project was checked, nor any that was asked for; its tests do not count."""
        if not self._known:
            return False   # its records are lost, too, which is reported
        found = self._own or self._others or (not self._name and self._tests)
        return not found or bool(self._name and self._only_script and self._unchecked)

    def words(self, result: str, *, found: bool = False) -> str:
        """Return the line on what was checked, with the result of the check; `found` if there is a race."""
        if not self._known or (found and not (self._own or self._tests or self._others)):
            return result
        if self.is_nothing and not found:
            tests = [counted(len(self._tests), "test file")] if self._tests else []
            rest = " and ".join([*tests, *_shown(self._own + self._others)])
            but = rest and f" but {rest}"
            unmatched = f"; no file of {few(self._unmatched)}" if self._unmatched else ""
            return f"nothing{self._name and f' of {self._name}'} was checked{but}: {self._reason()}{unmatched}"
        alone = ", in which only one thread ran" if self._is_alone and not found else ""
        files = self._named() if self._name else self._listed()
        return f"checked {files}{self._rest()}{result and f'; {result}{alone}'}"

    def _named(self) -> str:
        parts = [f"{counted(len(self._own), 'file')} of {self._name}"] if self._own else []
        parts += [counted(len(self._tests), "test file")] if self._tests else []
        parts += [counted(len(self._others), "other file")] if self._others else []
        return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))

    def _listed(self) -> str:
        return few(_shown([*self._own, *self._tests, *self._others]))

    def _rest(self) -> str:
        rest = _shown(self._unchecked)
        if self._children:
            rest.append(f"child processes ({', '.join(self._children)})")
        packages = self._unchecked_packages()
        parts = [f"not {few(rest)}"] if rest else []
        parts += [f"not {few(packages)} ({self._option} '{packages[0]}*')"] if packages else []
        parts += [f"no file of {few(self._unmatched)}"] if self._unmatched else []
        return "".join(f", {part}" for part in parts)

    def _unchecked_packages(self) -> list[str]:
        """Return the installed packages that threads may have run code of: those that the checked files import."""
        left = self._installed if self._had_threads else []
        found: set[str] = set()
        for path in [*self._own, *self._others]:
            source = _source(path)
            if any(name.encode() in source for name in left):
                found.update(_imports(source))
                left = [name for name in left if name not in found]
        return [name for name in self._installed if name in found]

    def _reason(self) -> str:
        if not self._unchecked:
            return f"none of {'its' if self._name else 'your'} code ran {self._ran}"
        path = self._unchecked[0]
        ends = REASONS if os.path.isfile(path) else ()
        reason = next((reason for end, reason in ends if path.endswith(end)), "is in an archive")
        return f"{_shown([path])[0]} {reason}"


def _shown(paths: Sequence[str]) -> list[str]:
    return [path.removeprefix(os.getcwd() + os.sep) for path in paths]


def _source(path: str) -> bytes:
    if not os.path.isfile(path):   # <stdin>; a pipe would be waited for
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""


def _imports(source: bytes) -> Iterator[str]:
    """Yield the top-level packages that a source imports; none if this Python cannot parse it."""
    import ast

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        yield from (name.partition(".")[0] for name in names)


def _lines(folder: str, name: str) -> list[str]:
    """Return the lines of a file in the spool folder, each once."""
    if (file := opened(os.path.join(folder, name))) is None:
        return []
    with file:
        return [*dict.fromkeys(filter(None, file.read(MOST_BYTES).decode("utf-8", "replace").splitlines()))]
