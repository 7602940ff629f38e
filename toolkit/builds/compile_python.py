"""Build CPython interpreters from one source with the same flags, and put each in place whole or not at all.

The prefix is baked into an interpreter, so it is configured for its final place, installed below a staging folder and
moved there in one step.  Runs under Python 3.9 (see the package's docstring).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.logged_command import run_logged
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.file_locks import locked
from gilscope.toolkit.processes.supervised import run
from gilscope.toolkit.records import from_plain, to_plain
from gilscope.toolkit.user_dirs import data_dir

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MANIFEST = "gilscope-build.json"
STAGING = ".staging-"        # prefix of the folders that an interrupted installation may leave
COMPILES = b" -c "           # what every command that compiles a file has in it
NEEDED_BYTES = 1 << 30       # source, two object trees of 250 MiB and two installations of 150 MiB
OPTIMIZED_BYTES = 2 << 30    # object trees of 570 MiB while they are profiled, installations of 520 MiB
# The standard library's optional parts that a benchmark or pip wants, and the Debian packages they are built from.
OPTIONAL_MODULES = {
    "ssl": "libssl-dev", "zlib": "zlib1g-dev", "ctypes": "libffi-dev", "bz2": "libbz2-dev", "lzma": "liblzma-dev",
    "sqlite3": "libsqlite3-dev",
}


@dataclass(frozen=True)
class InstallStep:
    """One step of an installation, for a progress display."""

    what: str                # "3.14t: compile"
    done: int = 0            # files compiled so far
    expected: int = 0        # files to compile, 0 when unknown


Report = Callable[[InstallStep], None]


@dataclass(frozen=True)
class PythonRequest:
    """An interpreter to build."""

    minor: str               # "3.14"
    free_threaded: bool
    optimize: bool = False   # profile-guided and link-time optimization

    @property
    def label(self) -> str:
        """The name that users write, such as "3.14t"."""
        return self.minor + ("t" if self.free_threaded else "")

    @property
    def flags(self) -> list[str]:
        """The options of ./configure, without the prefix."""
        # Compiling and installing CPython's own tests would take a third of the time; PGO is trained by them.
        chosen = ["--enable-optimizations", "--with-lto"] if self.optimize else ["--disable-test-modules"]
        return [*chosen, *(["--disable-gil"] if self.free_threaded else [])]


@dataclass(frozen=True)
class SourceTarball:
    """A CPython source tarball."""

    tarball: Path
    name: str                # where it comes from, for people: "python3.13 3.13.15-1 (apt-get source)"
    sha256: str

    @classmethod
    def of(cls, tarball: Path, name: str = "") -> SourceTarball:
        """Return the source in a file, with its checksum taken.

        Raises:
            BuildError: The file cannot be read.
        """
        digest = hashlib.sha256()
        try:
            with tarball.open("rb") as handle:
                for block in iter(lambda: handle.read(1 << 20), b""):
                    digest.update(block)
        except OSError as error:
            raise BuildError(f"cannot read the source {tarball}: {error.strerror}") from error
        return cls(tarball, name or tarball.name, digest.hexdigest())


@dataclass(frozen=True)
class InstalledPython:
    """An interpreter that gilscope built, as recorded in its manifest."""

    label: str
    version: str
    executable: str
    source: str
    sha256: str
    flags: tuple[str, ...]
    missing: tuple[str, ...]  # optional standard modules it was built without
    seconds: float            # how long configure, make and installation took

    @property
    def optimized(self) -> bool:
        """True if it was built with profile-guided and link-time optimization."""
        return "--enable-optimizations" in self.flags


def pythons_dir() -> Path:
    """Return the folder that holds one installed interpreter per subfolder."""
    return data_dir() / "pythons"


def installed() -> list[InstalledPython]:
    """Return the interpreters that gilscope has built and that are still in place, newest version first."""
    found = []
    for manifest in sorted(pythons_dir().glob(f"*/{MANIFEST}")):
        try:
            entry = from_plain(InstalledPython, json.loads(manifest.read_text()))
        except (OSError, ValueError):
            continue  # not ours, or damaged: such an interpreter is as good as not installed
        if os.access(entry.executable, os.X_OK):
            found.append(entry)
    return sorted(found, key=lambda entry: _numbers(entry.version), reverse=True)


def build(
    source: SourceTarball, pythons: Sequence[PythonRequest], *, jobs: int, report: Report,
) -> list[InstalledPython]:
    """Build every requested interpreter that is not there yet from `source` and return all of them.

    Raises:
        BuildError: The source is not what was asked for, or a step failed; nothing of it is left but its log.
    """
    root = pythons_dir()
    _check_tools()
    with _os_errors_explained(root):
        root.mkdir(parents=True, exist_ok=True)
        with locked(root / ".lock", lambda: report(InstallStep("waiting for another installation to finish"))):
            _remove_leftovers(root)
            _check_space(root, OPTIMIZED_BYTES if any(each.optimize for each in pythons) else NEEDED_BYTES)
            staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=root))
            try:
                return _build_all(source, pythons, staging, jobs, report)
            finally:
                shutil.rmtree(staging, ignore_errors=True)


def prefix_name(source: SourceTarball, python: PythonRequest, version: str) -> str:
    """Return the folder name that tells this source with these flags from any other."""
    digest = hashlib.sha256("\0".join([source.sha256, *python.flags]).encode()).hexdigest()
    return f"{version}{'t' if python.free_threaded else ''}-{digest[:10]}"


@dataclass(frozen=True)   # set-up runs this on 3.9, whose dataclasses have neither kw_only nor slots
class _UnpackedSource:
    """A source in a staging folder, where its interpreters are compiled."""

    tarball: SourceTarball
    version: str      # "3.14.2"
    tree: Path        # the folder that holds ./configure
    staging: Path


def _build_all(
    source: SourceTarball, pythons: Sequence[PythonRequest], staging: Path, jobs: int, report: Report,
) -> list[InstalledPython]:
    report(InstallStep(f"extract {source.name}"))
    tree = _extract(source.tarball, staging / "source")
    version = _version(tree, source)
    for each in pythons:
        if version.split(".")[:2] != each.minor.split("."):
            raise BuildError(f"{source.name} is CPython {version}: {each.label} cannot be built from it")
    unpacked = _UnpackedSource(tarball=source, version=version, tree=tree, staging=staging)
    results = []
    for each in pythons:
        prefix = pythons_dir() / prefix_name(source, each, version)
        known = next((entry for entry in installed() if Path(entry.executable).is_relative_to(prefix)), None)
        results.append(known or _build_one(unpacked, each, prefix, jobs, report))
    return results


def _build_one(
    unpacked: _UnpackedSource, python: PythonRequest, prefix: Path, jobs: int, report: Report,
) -> InstalledPython:
    source, version, staging = unpacked.tarball, unpacked.version, unpacked.staging
    started = time.monotonic()
    log = _fresh_log(f"{prefix.name}.log")
    objects = staging / f"objects-{python.label}"
    objects.mkdir()
    report(InstallStep(f"{python.label}: configure"))
    run_logged([unpacked.tree / "configure", "-q", f"--prefix={prefix}", *python.flags], cwd=objects, log=log)
    _make(python, objects, log, jobs, report)
    missing = _missing_modules(objects)
    report(InstallStep(f"{python.label}: install"))
    root = staging / f"root-{python.label}"
    # ensurepip unpacks a wheel; without zlib it cannot, and that must not cost the interpreter.
    pip = "no" if "zlib" in missing else "install"
    run_logged(["make", "altinstall", f"DESTDIR={root}", f"ENSUREPIP={pip}"], cwd=objects, log=log)
    staged = root / prefix.relative_to("/")
    entry = InstalledPython(
        label=python.label, version=version, executable=str(prefix / "bin" / f"python{python.label}"),
        source=source.name, sha256=source.sha256, flags=tuple(python.flags), missing=missing,
        seconds=round(time.monotonic() - started, 1),
    )
    (staged / MANIFEST).write_text(json.dumps(to_plain(entry), indent=1) + "\n")
    shutil.rmtree(prefix, ignore_errors=True)  # without a manifest that could be read: see `installed`
    staged.rename(prefix)
    shutil.rmtree(objects, ignore_errors=True)
    log.unlink()
    return entry


def _make(python: PythonRequest, objects: Path, log: Path, jobs: int, report: Report) -> None:
    planned = run(["make", "-n"], cwd=objects)
    # PGO compiles everything twice and runs the training in between: no count tells how far it is.
    expected = 0 if python.optimize else planned.stdout.count(COMPILES.decode())
    done = 0

    def count(line: bytes) -> None:
        nonlocal done
        done += COMPILES in line
        report(InstallStep(f"{python.label}: compile", done, expected))

    run_logged(["make", f"-j{jobs}"], cwd=objects, log=log, on_line=count)


def _extract(tarball: Path, into: Path) -> Path:
    """Unpack the tarball and return the folder that holds its ./configure."""
    into.mkdir()
    try:
        with tarfile.open(tarball) as archive:
            if hasattr(tarfile, "data_filter"):
                archive.extractall(into, filter="data")
            else:  # Python 3.9 before 3.9.17 has no filters
                archive.extractall(into)  # noqa: S202
    except tarfile.ReadError:
        _extract_with_tar(tarball, into)
    roots = [into, *(path for path in into.iterdir() if path.is_dir())]
    for root in roots:
        if (root / "configure").is_file() and (root / "Include" / "patchlevel.h").is_file():
            return root
    raise BuildError(f"{tarball.name} does not hold a CPython source: no configure and Include/patchlevel.h in it")


def _extract_with_tar(tarball: Path, into: Path) -> None:
    # A Python built without lzma or bz2 cannot read what tar may well be able to.
    outcome = run(["tar", "-xf", tarball, "-C", into])
    if outcome.returncode:
        raise BuildError(f"cannot unpack {tarball.name}: {outcome.stderr.strip() or 'tar failed'}")


def _version(tree: Path, source: SourceTarball) -> str:
    header = (tree / "Include" / "patchlevel.h").read_text()
    match = re.search(r'#define\s+PY_VERSION\s+"([^"+]+)', header)
    if not match:
        raise BuildError(f"{source.name} does not tell its version in Include/patchlevel.h")
    return match.group(1)


def _missing_modules(objects: Path) -> tuple[str, ...]:
    python = next((path for path in (objects / "python", objects / "python.exe") if path.exists()), None)
    if python is None:
        raise BuildError("make ended without an error but made no interpreter")
    script = "import sys\nfor name in sys.argv[1:]:\n try: __import__(name)\n except ImportError: print(name)"
    outcome = run([python, "-E", "-c", script, *OPTIONAL_MODULES], cwd=objects)
    if outcome.returncode:
        raise BuildError(f"the interpreter just built does not run: {outcome.stderr.strip()[-500:]}")
    return tuple(outcome.stdout.split())


def _fresh_log(name: str) -> Path:
    log = data_dir() / "logs" / name
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    return log


def _remove_leftovers(root: Path) -> None:
    # We hold the lock, so the process that made these has ended (kill -9, a power cut).
    for path in root.glob(f"{STAGING}*"):
        shutil.rmtree(path, ignore_errors=True)


def _check_tools() -> None:
    compilers = [os.environ["CC"].split()[0]] if os.environ.get("CC") else ["cc", "gcc", "clang"]
    if not shutil.which("make"):
        raise BuildError("building CPython needs make (Debian: apt-get install make)")
    if not any(shutil.which(name) for name in compilers):
        raise BuildError("building CPython needs a C compiler (Debian: apt-get install gcc libc6-dev)")


def _check_space(root: Path, needed: int) -> None:
    free = shutil.disk_usage(root).free
    if free < needed:
        raise BuildError(
            f"building needs about {needed >> 30} GiB, {root} has {free / (1 << 20):.0f} MiB free; "
            "set GILSCOPE_DATA to a folder on a larger disk")


@contextmanager
def _os_errors_explained(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BuildError(
            f"cannot write the interpreter below {root}: {error}; set GILSCOPE_DATA to a folder that can be "
            "written") from error


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))
