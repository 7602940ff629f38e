"""Make, repair and check the wheels for the builds at hand: `make wheel`.

The wheels are made from the source distribution, by setuptools under each build; the tools come from the
environment that runs this (dependency group
`release`), so a build needs nothing installed.

    python .ci/make_wheels.py [--out dist] [LABEL=PATH ...]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEWEST_GLIBC = (2, 28)
MOST_BYTES = 3 * 2**20
BUILD = "import sys, setuptools.build_meta as backend; print(backend.build_{}(sys.argv[1]))"
SYMBOL = re.compile(r"\(?GLIBC_([0-9.]+)\)?\s+(\S+)$", re.MULTILINE)


class WheelError(Exception):
    """A wheel that cannot be made, or that must not be published."""


def main() -> int:
    """Make the source distribution and the wheels, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", metavar="LABEL=PATH", help="The builds (default: of `gilscope builds`).")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="The folder of the results (default: dist).")
    parser.add_argument("--sdist-only", action="store_true", help="Make no wheels.")
    parser.add_argument("--check", type=Path, metavar="FOLDER", help="Make nothing; check the files in FOLDER.")
    args = parser.parse_args()
    try:
        if args.check:
            (archive,), made = args.check.glob("*.tar.gz"), sorted(args.check.glob("*.whl"))
        else:
            args.out.mkdir(parents=True, exist_ok=True)
            archive = make_sdist(args.out)
            made = [] if args.sdist_only else [make_wheel(python, archive, args.out) for python in pythons(args.builds)]
        check_all(archive, made)
    except WheelError as error:
        print(f"make wheel: {error}", file=sys.stderr)
        return 1
    print("\n".join(f"{each} ({each.stat().st_size / 2**20:.2f} MiB)" for each in (archive, *made)))
    return 0


def check_all(archive: Path, wheels: list[Path]) -> None:
    """Check everything that is published.

    Raises:
        WheelError: Something must not be published.
    """
    for wheel in wheels:
        check(wheel)
    run([tool("twine"), "check", "--strict", archive, *wheels])
    if wheels:
        # W004: the shim is no module, and its name keeps it from being imported as one.
        run([tool("check-wheel-contents"), "--ignore", "W004", *wheels])


def pythons(words: list[str]) -> list[str]:
    """Return the paths of the interpreters to make wheels for."""
    if words:
        return [word.partition("=")[2] or word for word in words]
    command = [sys.executable, "-m", "gilscope", "builds", "--json"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["builds"]
    return [each["executable"] for each in found if re.fullmatch(r"3\.\d+t?", each["label"])]


def make_sdist(out: Path) -> Path:
    """Return the source distribution of this checkout."""
    return out / backend(sys.executable, "sdist", ROOT, out)


def make_wheel(python: str, archive: Path, out: Path) -> Path:
    """Return the wheel for a build, made from the source distribution and repaired."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.unpack_archive(archive, folder, filter="data")
        (source,) = folder.iterdir()
        raw = folder / backend(python, "wheel", source, folder)
        if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
            return Path(shutil.copy2(raw, out))
        repaired = folder / "repaired"
        run([tool("auditwheel"), "repair", "--only-plat", "--plat", f"manylinux_2_28_{platform.machine()}",
             "--wheel-dir", repaired, raw])
        (wheel,) = repaired.iterdir()
        return Path(shutil.copy2(wheel, out))


def backend(python: str, target: str, source: Path, out: Path) -> str:
    """Return the name of the file that setuptools makes under `python`, with the setuptools of this environment."""
    found = find_spec("setuptools")
    if found is None or found.origin is None:
        raise WheelError("setuptools is not installed: `make wheel` installs it")
    with tempfile.TemporaryDirectory() as name:
        # Nothing else of this environment: its packages may be for another Python.
        site = Path(found.origin).parent.parent
        for part in (site / "setuptools", site / "_distutils_hack", *site.glob("setuptools-*.dist-info")):
            Path(name, part.name).symlink_to(part)
        environment = {**os.environ, "PYTHONPATH": name, "GILSCOPE_NATIVE": "required"}
        command = [python, "-c", BUILD.format(target), out.resolve()]
        return run(command, cwd=source, env=environment).splitlines()[-1]


def check(wheel: Path) -> None:
    """Check what no tool checks: what is in a wheel, its size, and which glibc its libraries need.

    Raises:
        WheelError: It must not be published.
    """
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        links = [each.filename for each in archive.infolist() if stat.S_ISLNK(each.external_attr >> 16)]
        if links:
            raise WheelError(f"{wheel.name} holds symbolic links: {links}")
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
        free = "t-" in wheel.name and "linux" in wheel.name
        if len(libraries) != 1 + free + ("manylinux" in wheel.name):
            raise WheelError(f"{wheel.name} holds {libraries}, not the core, on Linux with glibc the shim, and for a "
                             "free-threaded build on Linux the library of `gilscope scale`")
        if wheel.stat().st_size > MOST_BYTES:
            raise WheelError(f"{wheel.name} has {wheel.stat().st_size} bytes, more than {MOST_BYTES}")
        for name in libraries:
            content = archive.read(name)
            if any(os.fsencode(path) in content for path in machine_paths()):
                raise WheelError(f"{wheel.name}: {name} holds a path of this machine")
            if "linux" in wheel.name and (newer := newer_symbols(Path(archive.extract(name, folder)))):
                raise WheelError(f"{wheel.name}: {name} needs more than glibc 2.28: {', '.join(newer)}")


def machine_paths() -> list[str]:
    """Return the folders that must not be in a library."""
    return [str(ROOT), str(Path(tempfile.gettempdir(), "tmp")), sysconfig.get_path("include"), str(Path.home()) + "/"]


def newer_symbols(library: Path) -> list[str]:
    """Return the symbols of a library, with their versions, that glibc 2.28 lacks."""
    return [f"{symbol} (glibc {version})" for version, symbol in SYMBOL.findall(run(["objdump", "-T", library]))
            if tuple(map(int, version.split("."))) > NEWEST_GLIBC]


def tool(name: str) -> str:
    """Return the path of a tool of this environment, or on PATH."""
    beside = Path(sys.executable).with_name(name)
    if not beside.exists() and shutil.which(name) is None:
        raise WheelError(f"{name} is not installed: `make wheel` installs it")
    return str(beside) if beside.exists() else name


def run(command: list[str | Path], **options: object) -> str:
    """Return what a command prints; auditwheel finds its patchelf on PATH."""
    environment = {**os.environ, **options.pop("env", {})}   # type: ignore[dict-item]
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', '')}"
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise WheelError(f"{' '.join(map(str, command))} failed:\n{(done.stderr + done.stdout).strip()}")
    return str(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
