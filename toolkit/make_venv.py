"""Make the project's `.venv` on a machine that may have nothing but some Python 3.9: `python3 toolkit/make_venv.py`.

Finds the newest CPython 3.12+ with a GIL that can make an environment, builds one from the distribution's source where
there is none, and installs the project (editable) with the dependency groups asked for, each package in the version
that `constraints.txt` locks.  Standard library only, POSIX.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    # Run as a script, the folder of this file comes first: its modules are not top-level ones.
    sys.path[0] = str(ROOT)

from gilscope.toolkit.builds import compile_python  # noqa: E402
from gilscope.toolkit.builds.fetch_source import distribution_source  # noqa: E402
from gilscope.toolkit.builds.logged_command import CommandFailedError, run_logged  # noqa: E402
from gilscope.toolkit.builds.uv import uv_command  # noqa: E402
from gilscope.toolkit.errors import BuildError, ToolkitError  # noqa: E402
from gilscope.toolkit.file_locks import locked  # noqa: E402
from gilscope.toolkit.processes.supervised import run  # noqa: E402
from gilscope.toolkit.user_dirs import cache_dir  # noqa: E402

STAMP = "gilscope-setup.json"
OLDEST = (3, 12)
BUILT_WHEN_NONE = ("3.14", "3.13")   # not the newest: every tool of ours has wheels for these
ASK = ("import platform, sys, sysconfig; print(sys.implementation.name, platform.python_version(), "
       "sysconfig.get_config_var('Py_GIL_DISABLED') or 0)")
GROUPS = """
import sys, tomllib
groups = tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]
def expand(name):
    for entry in groups[name]:
        yield from [entry] if isinstance(entry, str) else expand(entry["include-group"])
print("\\n".join(dict.fromkeys(text for name in sys.argv[1:] for text in expand(name))))
"""


class Setup:
    """One set-up of one project folder."""

    def __init__(self, root: Path, groups: Sequence[str], *, oldest: bool = False) -> None:
        self.root = root
        self.groups = sorted(set(groups))
        self.oldest = oldest
        self.venv = root / (".venv-oldest" if oldest else ".venv")
        self.python = self.venv / "bin" / "python"
        self.constraints = root / "constraints.txt"
        self.wanted = hashlib.sha256((root / "pyproject.toml").read_bytes() + self.constraints.read_bytes()).hexdigest()
        digest = hashlib.sha256(os.fsencode(self.venv)).hexdigest()[:12]
        self.log = cache_dir() / "setup" / f"{digest}.log"

    def is_done(self) -> bool:
        """Return True if the environment has everything requested, without starting a process."""
        stamp = self._stamp()
        return (stamp.get("pyproject") == self.wanted and set(self.groups) <= self._groups_installed()
                and os.access(str(self.python), os.X_OK))

    def run(self) -> None:
        """Make the environment, or bring it up to date.

        Raises:
            BuildError: No Python could be found or built, or an installation failed.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.log.with_suffix(".lock"), lambda: say("waiting for another set-up of this folder")):
            if self.is_done():
                return
            self.log.write_bytes(b"")
            if self._is_usable():
                self._install()
            else:
                self._refuse_foreign()
                self._make_and_install()

    def _make_and_install(self) -> None:
        problems = []
        for python, version in self._pythons():
            say(f"making {self.venv.name} with CPython {version} ({python}); this takes seconds")
            try:
                self._create(python)
                self._install()
            except CommandFailedError as error:
                # No ensurepip (Debian's python3 without python3-venv), no wheels for so new a version, ...
                say(f"that did not work; trying the next Python (details in {self.log})")
                problems.append(f"{python}: {error}")
            else:
                return
        raise BuildError("no environment could be made:\n" + "\n".join(problems))

    def _pythons(self) -> list[tuple[str, str]]:
        """Return the Pythons to try in turn; for the oldest one, none that is as new as the newest."""
        found = list(suitable_pythons())
        if not self.oldest:
            return found
        newest = numbers(found[0][1])[:2]
        older = [each for each in reversed(found) if numbers(each[1])[:2] < newest]
        if not older:
            raise NothingOlderError(f"no CPython older than {found[0][1]} at hand that could run it, too")
        return older

    def _create(self, python: str) -> None:
        shutil.rmtree(str(self.venv), ignore_errors=True)
        uv = uv_command()
        maker = [uv, "venv", "--python", python] if uv else [python, "-m", "venv"]
        steps = InstallerSteps(self.venv, f"making {self.venv.name}")
        run_logged([*maker, self.venv], log=self.log, env=clean_environment(), on_tick=steps.tick)
        # From now on it is ours to replace.
        (self.venv / STAMP).write_text("{}\n")

    def _install(self) -> None:
        groups = sorted({*self.groups, *self._groups_installed()})
        asked = run([self.python, "-c", GROUPS, *groups], cwd=self.root)
        if asked.returncode:
            raise BuildError(f"pyproject.toml has no such dependency group: {asked.stderr.strip().splitlines()[-1]}")
        packages = [text for text in asked.stdout.split("\n") if text]
        wanted = f" and {len(packages)} packages ({', '.join(groups)})" if packages else ""
        say(f"installing gilscope{wanted} with what they need into {self.venv.name}; this can take minutes")
        say(f"the installer's output goes to {self.log}")
        command = [*self._installer(), "--constraint", str(self.constraints), "--editable", str(self.root), *packages]
        steps = InstallerSteps(self.venv, "installing")
        run_logged(command, log=self.log, cwd=self.root, env=clean_environment(), on_line=steps.read,
                   on_tick=steps.tick)
        (self.venv / STAMP).write_text(json.dumps({"pyproject": self.wanted, "groups": groups}) + "\n")

    def _installer(self) -> list[str]:
        uv = uv_command()
        if uv:
            return [uv, "pip", "install", "--python", str(self.python)]
        return [str(self.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]

    def _groups_installed(self) -> set[str]:
        groups = self._stamp().get("groups", [])
        return set(groups) if isinstance(groups, list) else set()

    def _stamp(self) -> dict[str, object]:
        try:
            stamp = json.loads((self.venv / STAMP).read_text())
        except (OSError, ValueError):
            return {}
        return stamp if isinstance(stamp, dict) else {}

    def _is_usable(self) -> bool:
        known = self.python.exists() and ask(str(self.python))
        return bool(known) and ((self.venv / "bin" / "pip").exists() or uv_command() is not None)

    def _refuse_foreign(self) -> None:
        if self.venv.exists() and not (self.venv / STAMP).exists():
            raise BuildError(f"{self.venv} was not made by this set-up and has no CPython 3.12 or newer with pip; "
                             "move it away or remove it")


class InstallerSteps:
    """Says each step that the output of pip or uv shows, once, in one line, and that a long one still goes on.

    Args:
        venv: The environment that the packages go into.
        step: What is being done before the first step is said.
    """

    # pip: "Collecting numpy==2.3 (from ...)", "Building wheel for x (pyproject.toml): started",
    # "Installing collected packages: a, b".  uv: "Resolved 80 packages in 1s", " + numpy==2.3" after the installation.
    UNPACKING = re.compile(r"Installing collected packages: (.+)")
    FORMS = (
        (re.compile(r"Collecting ([^\s;(]+)"), "getting {}"),
        (re.compile(r"Building (?:editable|wheel) for (\S+)"), "building {}"),
        (re.compile(r"Building (\S+ @ \S+|\S+==\S+)"), "building {}"),
        (UNPACKING, "unpacking {}"),
        (re.compile(r"(Resolved \d+ packages|Prepared \d+ packages|Installed \d+ packages)"), "{}"),
    )
    LONGEST = 100   # characters of a step

    def __init__(self, venv: Path, step: str) -> None:
        self._venv = venv
        self._step = step
        self._began = time.monotonic()       # of that step
        self._news = True                    # a step was said since the last tick
        self._packages = 0                   # that pip unpacks; it says nothing until it has unpacked all
        self._unpacked_before = 0
        self._said: set[str] = set()

    def tick(self) -> None:
        """Say how far the step is, unless another one was said since the last call."""
        if not self._news:
            done = self._installed() - self._unpacked_before
            what = f"unpacked {done} of {self._packages} packages" if 0 < done <= self._packages else self._step
            say(f"{what}, {time.monotonic() - self._began:.0f} s so far")
        self._news = False

    def _installed(self) -> int:
        return sum(1 for _ in self._venv.glob("lib/python3*/site-packages/*.dist-info"))

    def read(self, line: bytes) -> None:
        """Say the step of a line of output, if it begins one."""
        text = line.decode("utf-8", "replace").strip()
        for form, what in self.FORMS:
            found = form.match(text)
            if found is None:
                continue
            step = what.format(found[1])
            step = step[:1].lower() + step[1:]
            if len(step) > self.LONGEST:
                step = f"{step[:self.LONGEST]}..."
            if step not in self._said:
                self._said.add(step)
                self._step, self._began, self._news = step, time.monotonic(), True
                if form is self.UNPACKING:
                    self._packages, self._unpacked_before = found[1].count(",") + 1, self._installed()
                say(step)
            return


class NothingOlderError(ToolkitError):
    """There is one version of Python alone."""


def suitable_pythons() -> Iterator[tuple[str, str]]:
    """Yield (path, version) of every CPython >= 3.12 with a GIL, best first, and what can be installed after that."""
    found: dict[str, tuple[str, str]] = {}
    say("looking for a CPython 3.12 or newer with a GIL")
    for path in candidates():
        version = ask(path)
        if version:
            found.setdefault(os.path.realpath(path), (path, version))
    ordered = sorted(found.values(), key=lambda each: preference(each[1]), reverse=True)
    yield from ordered
    if not ordered:
        yield install_python()


def candidates() -> list[str]:
    """Return every file that may be a suitable Python, in PATH and where uv, pyenv and gilscope install them."""
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or data / "uv" / "python")
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    folders = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    folders += [*sorted(uv.glob("*/bin")), *sorted((pyenv / "versions").glob("*/bin"))]
    # A shim starts what the current folder asks for, and not the version in its name.
    folders = [folder for folder in folders if folder.resolve() != (pyenv / "shims").resolve()]
    found = [entry.executable for entry in compile_python.installed()]
    for folder in folders:
        try:
            names = sorted(path.name for path in folder.iterdir())
        except OSError:
            continue  # PATH often names folders that do not exist
        found += [str(folder / name) for name in names if re.fullmatch(r"python3\.\d\d", name) and name >= "python3.12"]
    return [sys.executable, *found]


def ask(python: str) -> str:
    """Return the version of a CPython that this project can use, "" when it cannot."""
    try:
        told = run([python, "-I", "-S", "-c", ASK], timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    name, _, rest = told.stdout.strip().partition(" ")
    version, _, without_gil = rest.partition(" ")
    suits = told.returncode == 0 and name == "cpython" and without_gil == "0" and numbers(version) >= OLDEST
    return version if suits else ""


def preference(version: str) -> tuple[bool, tuple[int, ...]]:
    """Order versions: releases before pre-releases, newer before older."""
    return (re.fullmatch(r"[\d.]+\+?", version) is not None, numbers(version))


def numbers(version: str) -> tuple[int, ...]:
    """Return (3, 14, 0) for "3.14.0rc1"."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    return tuple(int(part) for part in match.groups()) if match else ()


def install_python() -> tuple[str, str]:
    """Install a CPython where the machine has none: by uv, else from the distribution's source.

    Raises:
        BuildError: Neither works.
    """
    say(f"no CPython 3.12 or newer with a GIL was found; getting one (this is Python {sys.version.split()[0]})")
    uv = uv_command()
    if uv:
        say(f"uv installs CPython {BUILT_WHEN_NONE[0]}")
    if uv and run([uv, "python", "install", BUILT_WHEN_NONE[0]]).returncode == 0:
        found = run([uv, "python", "find", BUILT_WHEN_NONE[0]]).stdout.strip()
        if version := ask(found):
            return found, version
    return build_python()


def build_python() -> tuple[str, str]:
    """Build CPython from the distribution's source and return its path and version.

    Raises:
        BuildError: No source can be had, or it cannot be built.
    """
    folder = cache_dir() / "setup" / f"source-{os.getpid()}"
    folder.mkdir(parents=True)
    spoken = set()

    def report(step: compile_python.InstallStep) -> None:
        if step.what not in spoken:
            spoken.add(step.what)
            say(step.what)

    reasons = []
    try:
        with distribution_source(report) as distribution:
            for minor in BUILT_WHEN_NONE:
                try:
                    source = distribution.download(minor, folder)
                except BuildError as error:
                    reasons.append(str(error))
                    continue
                report(compile_python.InstallStep(f"{source.name}: SHA-256 {source.sha256}"))
                (made,) = compile_python.build(source, [compile_python.PythonRequest(minor, free_threaded=False)],
                                               jobs=os.cpu_count() or 1, report=report)
                return made.executable, made.version
    finally:
        shutil.rmtree(str(folder), ignore_errors=True)
    raise BuildError(f"install CPython 3.12 or newer by hand: no source can be had ({'; '.join(reasons)})")


def clean_environment() -> dict[str, str]:
    """Return the environment without what would lead an installer to another place."""
    misleading = {"VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH", "CONDA_PREFIX", "PIP_REQUIRE_VIRTUALENV", "PIP_TARGET"}
    return {name: value for name, value in os.environ.items() if name not in misleading}


def say(text: str) -> None:
    """Tell the user what is going on."""
    sys.stderr.write(f"set-up: {text}\n")
    sys.stderr.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Set the project up as the command line says and return the exit code."""
    parser = argparse.ArgumentParser(description="Make the project's .venv, once; fast when nothing changed.")
    parser.add_argument("--groups", default="dev", metavar="NAMES",
                        help="Dependency groups of pyproject.toml to install, with commas; '' for none "
                             "(default: %(default)s).")
    parser.add_argument("--oldest", action="store_true",
                        help="Make .venv-oldest with the oldest CPython 3.12+ at hand, to test with that, too; nothing "
                             "is made where there is none older than the newest.")
    args = parser.parse_args(argv)
    setup = Setup(ROOT, [name for name in args.groups.split(",") if name], oldest=args.oldest)
    try:
        if not setup.is_done():
            setup.run()
            say(f"done; `{setup.venv}/bin/gilscope` is the command")
    except NothingOlderError as reason:
        say(str(reason))
    except ToolkitError as error:
        say(str(error))
        return error.exit_code
    except OSError as error:
        say(f"cannot set up {setup.venv}: {error}")
        return 3
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
