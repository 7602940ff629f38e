"""Tell which files are a project's own: its sources, its tests, and what its build has put into an environment.

The race checker asks in the checked program, so nothing is imported before it is needed, and there are no packages.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE_FOLDERS = ("src", "python", "lib")   # usual folders of packages, besides the root
TEST_FOLDERS = ("tests", "test")
INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
PROGRAM, PACKAGE, STDLIB = "program", "package", "standard library"    # whose code a file is
DESCRIPTIONS = ("pyproject.toml", "setup.py", "setup.cfg")
MOST_BYTES = 2**24   # of a file that is read


def project_root(folder: str) -> str:
    """Return the nearest folder with a pyproject.toml, from `folder` upwards, or else `folder`."""
    above = folder
    while not os.path.isfile(os.path.join(above, "pyproject.toml")):
        if above == (above := os.path.dirname(above)):
            return folder
    return above


def project_name(root: str) -> str:
    """Return the name in the pyproject.toml of `root`, or "" if there is none."""
    import tomllib

    try:
        found = tomllib.loads(_read(os.path.join(root, "pyproject.toml")))
        name = found.get("project", {}).get("name") or found["tool"]["poetry"]["name"]
    except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return ""
    return name if isinstance(name, str) else ""


def is_test(file: str) -> bool:
    """Return True if a file of the project, relative to its root, is one of its tests."""
    *folders, name = file.split(os.sep)
    return (name == "conftest.py" or name.startswith("test_") or name.endswith("_test.py")
            or any(folder in TEST_FOLDERS for folder in folders))


def split_installed(path: str) -> tuple[str, str]:
    """Return the folder of installed packages that a file is in, and its path there; ("", path) if in none."""
    end = max(path.rfind(part) + len(part) if part in path else 0 for part in INSTALLED)
    return path[:end], path[end:]


def origin(path: str) -> tuple[str, str]:
    """Return whose code a file is, by its path: PROGRAM, PACKAGE or STDLIB; and the path by which readers know it."""
    site, file = split_installed(path)
    if site:
        return PACKAGE, file
    _, is_stdlib, rest = path.partition("/lib/python3.")
    return (STDLIB, rest.partition("/")[2]) if is_stdlib else (PROGRAM, path)


def known_as(path: str) -> str:
    """Return the path by which a file of the standard library or of an installed package is known; that of others."""
    return origin(path)[1]


def library_of(path: str, root: str = "") -> str:
    """Return the name of the installed package, command or module of the standard library that a file is of, or "".

    Args:
        path: The file.
        root: The folder whose project is the user's own, wherever it is installed; "" for none.
    """
    whose, known = origin(path)
    if whose == PROGRAM:
        return os.path.basename(path) if is_command(path) else ""
    if whose == PACKAGE and root and _installed_project(root).has_file(os.path.realpath(path)):
        return ""
    package = known.partition("/")[0] if whose == PACKAGE else known.rpartition("/")[0].replace("/", ".")
    return (package or known).removesuffix(".py")


def is_command(path: str) -> bool:
    """Return True if a script is a command that an environment has: it lies beside the interpreter."""
    folder, name = os.path.split(path)
    return not name.endswith(".py") and os.path.exists(os.path.join(folder, "python"))


class InstalledProject:
    """The code that the project in a folder has in environments.

    That is what the distributions contain that were built from the folder or have the project's name, and any file
    whose source is in the folder.
    """

    def __init__(self, root: str) -> None:
        """Prepare for the project in `root`; a folder without a project has none."""
        self._root = os.path.realpath(root)
        self._exists = any(os.path.isfile(os.path.join(root, name)) for name in DESCRIPTIONS)
        self._recorded: dict[str, frozenset[str]] = {}    # by the folder of installed packages

    def has_file(self, path: str) -> bool:
        """Return True if an installed file, given by its real path, is the project's."""
        site, file = split_installed(path)
        if not (site and self._exists):
            return False
        if site not in self._recorded:
            self._recorded[site] = frozenset(self._files_in(site))
        return file in self._recorded[site] or self._has_source(file)

    def _has_source(self, file: str) -> bool:
        archive, _, inner = file.partition(os.sep)
        folder, name = os.path.split(inner if archive.endswith((".egg", ".zip")) else file)
        source = os.path.join(folder, name.partition(".")[0] + ".py")
        return any(os.path.isfile(os.path.join(self._root, each, source)) for each in ("", *SOURCE_FOLDERS))

    def _files_in(self, site: str) -> Iterator[str]:
        """Yield the files of the project's distributions in a folder of installed packages."""
        try:
            found = [name for name in os.listdir(site) if name.endswith(".dist-info")]
        except OSError:
            return
        origins = {info: _origin(site + info) for info in found}
        own = [info for info, origin in origins.items()
               if origin and (os.path.realpath(origin) + os.sep).startswith(os.path.join(self._root, ""))]
        if not own and (name := _normal(project_name(self._root))):
            own = [info for info in found if _normal(info.partition("-")[0]) == name and origins[info] is not None]
        for info in own:
            try:
                lines = _read(os.path.join(site, info, "RECORD")).splitlines()
            except (OSError, ValueError):
                continue
            yield from (line.rsplit(",", 2)[0].strip('"') for line in lines)


def _installed_project(root: str) -> InstalledProject:
    if root not in _projects:
        _projects[root] = InstalledProject(root)
    return _projects[root]


_projects: dict[str, InstalledProject] = {}   # by root; functools is not imported in a checked program


def _origin(info: str) -> str | None:
    """Return the folder that a distribution was built from; "" if that is unknown, None if it is imported from there.

    Source: the specification of direct_url.json, packaging.python.org/specifications/direct-url.
    """
    try:
        text = _read(os.path.join(info, "direct_url.json"))
    except (OSError, ValueError):
        return ""
    if '"dir_info"' not in text:
        return ""
    import json
    from urllib.parse import unquote, urlsplit

    try:
        found = json.loads(text)
        return None if found["dir_info"].get("editable") else unquote(urlsplit(found["url"]).path)
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return ""


def _normal(name: str) -> str:
    return "-".join(filter(None, name.lower().replace("_", "-").replace(".", "-").split("-")))


def _read(path: str) -> str:
    if not os.path.isfile(path):   # a pipe would be waited for
        raise FileNotFoundError(path)
    with open(path, encoding="utf-8") as file:
        return file.read(MOST_BYTES)
