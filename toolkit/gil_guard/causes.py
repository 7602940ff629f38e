"""Say what turned the GIL on: the module and its distribution, who imported it, and what to do."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.gil_guard import extension_loads
from gilscope.toolkit.gil_guard.load_records import read_records
from gilscope.toolkit.own_files import split_installed
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.gil_guard.load_records import GilFlip, LoadRecords

REPLAY_SECONDS = 60.0
MOST_FRAMES = 12             # of a chain of imports
# Frames of these are no part of a chain: every test and plugin is imported by way of them.
RUNNERS = ("_pytest", "pluggy", "xdist", "execnet", "pytest", "importlib")
OURS = str(Path(__file__).parents[1])
# Its own records, not those of the witness: what a .pth file imports comes before that.
REPLAY = """
import importlib, json, sys
from importlib.util import module_from_spec, spec_from_file_location
path, names, watch, file = json.load(sys.stdin)
spec = spec_from_file_location("gilscope_extension_loads", watch)
spec.loader.exec_module(loads := module_from_spec(spec))
sys.path[:] = path
loads.record_extension_loads(file)
for name in names:
    try:
        importlib.import_module(name)
    except BaseException:
        pass
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GilCause:
    """The module that turned the GIL on, and its importers."""

    text: str                                      # in some lines, read by people alone
    module: str = ""                               # "": not an extension module, or not known which
    package: str = ""                              # its distribution; "": the project's own, or of none
    version: str = ""                              # of the distribution
    imported_by: tuple[tuple[str, int], ...] = ()  # files and lines of the imports, outermost first, without pytest's


def cause_of(flip: GilFlip, root: Path) -> GilCause:
    """Return a text with the module that turned the GIL on, its importers, and the remedy."""
    owner = _owner(flip, root)
    named = f" ({owner.name} {owner.version})" if owner else ""
    where = f", in thread {flip.thread}" if flip.thread else ""
    if flip.pid != os.getpid():
        where += f", in another process (PID {flip.pid}) that was started from here"
    lines = [f"the GIL was turned on by the import of {flip.module}{named}{where}."]
    frames = _chain(flip)
    if frames:
        lines += ["Imported by, outermost first:", *(f"  {frame}" for frame in _shortened(frames, root))]
    return GilCause(text="\n".join([*lines, _advice(owner)]), module=flip.module, package=owner.name if owner else "",
                    version=owner.version if owner else "",
                    imported_by=tuple(frame for frame in frames if not frame[0].startswith("<")))   # <string>: no file


def _advice(owner: Distribution | None) -> str:
    if owner is None:
        return ("The module does not declare that it works without the GIL. Once its code does, set Py_mod_gil to "
                "Py_MOD_GIL_NOT_USED in its definition.")
    from gilscope.toolkit.gil_guard.package_answers import newer_versions  # needed by few sessions

    newer = newer_versions(owner.name, owner.version)
    mending = next((each.version for each in newer if each.mends), None)
    if mending:
        return f"{owner.name} {mending} leaves the GIL off, as `gilscope doctor` found: upgrade to it."
    if newer:
        return f"{owner.name} {newer[0].version} does not help, as `gilscope doctor` found: {newer[0].status}."
    return f"`gilscope doctor {owner.name}` says whether a newer version leaves the GIL off."


def _owner(flip: GilFlip, root: Path) -> Distribution | None:
    """Return the distribution of a module; None for one in the project's own folder or of no distribution."""
    file = flip.load.file if flip.load else ""
    if file and _is_below(file, root):
        return None
    found = []
    for name in packages_distributions().get(flip.module.partition(".")[0], ()):
        with contextlib.suppress(PackageNotFoundError):
            found.append(distribution(name))
    # Several distributions share a namespace package.
    return next((each for each in found if any(os.path.realpath(str(each.locate_file(path))) == os.path.realpath(file)
                                               for path in each.files or ())), next(iter(found), None))


def _is_below(file: str, root: Path) -> bool:
    return Path(file).is_relative_to(root) and not split_installed(file)[0]


def _chain(flip: GilFlip) -> list[tuple[str, int]]:
    """Return the files and lines of the frames behind an import, outermost first, without those of pytest."""
    runners = tuple(_folder(name) for name in RUNNERS if name in sys.modules)
    return [(file, line) for file, line in reversed(flip.load.chain if flip.load else ())
            if not file.startswith((OURS, *runners)) and Path(file).name not in {"pytest", "py.test"}]


def _shortened(chain: Sequence[tuple[str, int]], root: Path) -> list[str]:
    """Return the frames as "file:line", those in the middle of many left out."""
    frames = [f"{_shown(file, root)}:{line}" for file, line in chain]
    if len(frames) > MOST_FRAMES:
        half = MOST_FRAMES // 2
        left_out = len(frames) - 2 * half
        frames[half:-half] = [f"... {counted(left_out, 'frame')} left out"]
    return frames


def _folder(package: str) -> str:
    return os.path.join(os.path.dirname(str(sys.modules[package].__file__)), "")


def _shown(file: str, root: Path) -> str:
    """Return the path of a file as seen from the project, or from the folder of installed packages."""
    if _is_below(file, root):
        return str(Path(file).relative_to(root))
    return split_installed(file)[1]


def why_on(root: Path) -> GilCause:
    """Return why the GIL is on before we could watch."""
    if extension_loads.forced() == "1":
        how = "-X gil=1" if sys._xoptions.get("gil") else "PYTHON_GIL=1"
        return GilCause(text=f"{how} keeps the GIL on. Run the tests without it.")
    flip = _replayed()
    if flip is None:
        return GilCause(
            text="the GIL was turned on before the tests, by a plugin or a .pth file that could not be found out.")
    cause = cause_of(flip, root)
    return replace(cause, text=f"before any test, {cause.text}")


def _replayed() -> GilFlip | None:
    """Import this process's modules again, in other processes; return what turns the GIL on.

    Modules are in `sys.modules` in the order in which their import ended, so a module comes after those that it
    imports: the first of them that turns the GIL on is found in this order, and who imports it in the opposite one.
    """
    names = [name for name in sys.modules if name.partition(".")[0] not in sys.stdlib_module_names]
    flip = next(iter(_replay(names).flips), None)
    if flip is None:
        return None
    load = next((each for each in _replay(names[::-1]).loads if each.module == flip.module), flip.load)
    if load is not None:
        load = replace(load, chain=tuple(frame for frame in load.chain if frame[0] != "<string>"))
    return replace(flip, pid=os.getpid(), thread="", load=load)


def _replay(names: Sequence[str]) -> LoadRecords:
    with tempfile.TemporaryDirectory(prefix=temporary.prefix("gil"), ignore_cleanup_errors=True) as folder:
        file = Path(folder, "loads")
        told = json.dumps([sys.path, names, extension_loads.__file__, str(file)])
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([sys.executable, "-S", "-c", REPLAY], input=told.encode(), capture_output=True,
                           timeout=REPLAY_SECONDS, check=False)
        return read_records(file)
