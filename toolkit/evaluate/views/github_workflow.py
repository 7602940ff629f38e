"""A workflow for GitHub Actions: the tests on builds without a GIL, and wheels where there is C code.  Pure."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.discovery import path_of
from gilscope.toolkit.evaluate.project.suite.running import needed_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.model import Build

PLACE = ".github/workflows/free-threading.yml"   # below the project's root
CIBUILDWHEEL = "pypa/cibuildwheel@v3.2.1"
_HEAD = """\
# Written by `gilscope evaluate --ci github`.
name: free-threading
on:
  push:
  pull_request:
permissions:
  contents: read
jobs:
  tests:
    runs-on: ubuntu-latest
    strategy:
      fail-fast: false
      matrix:
        python: {pythons}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with:
          python-version: ${{{{ matrix.python }}}}
          allow-prereleases: true
"""
_WHEELS = """
  wheels:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - uses: {action}
        env:
          CIBW_BUILD: {builds}
{enable}          CIBW_TEST_COMMAND: {command}
      - uses: actions/upload-artifact@v5
        with:
          name: free-threading-wheels
          path: wheelhouse/*.whl
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledModules:
    """The modules that installing the project makes importable, as far as its builds showed."""

    top_level: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()   # extension modules, with the names of their packages


def workflow(
    project: Project, builds: Sequence[Build], *, extensions: bool, installed: InstalledModules = InstalledModules(),
) -> str:
    """Return a workflow in YAML.

    The tests and the check run in a copy of the checkout without the sources: what is imported there is what was
    installed.  In a checkout, the sources would be imported instead, without the extension modules.

    Args:
        project: The project whose tests are run.
        builds: The builds without a GIL that were looked at.
        extensions: True if it has C code of its own, so that wheels are built.
        installed: The modules to import; the extension modules among them must have been compiled.
    """
    versions = list(dict.fromkeys(f"{build.minor}t" for build in builds))
    lines = [_head(versions), _run(_install(project)), _outside(project)]
    if check := _check(project, installed):
        lines.append(_run_outside(check))
    if project.tests:
        lines.append(_run_outside(shlex.join(_safe_path(_tests_of_installed(project)))))
    if extensions:
        lines.append(_wheels(builds, check))
    return "".join(lines)


def _head(versions: Sequence[str]) -> str:
    return _HEAD.format(pythons=json.dumps(versions))


def _run(command: str) -> str:
    """Return a step; a block keeps what YAML would read otherwise."""
    return f"      - run: |\n          {command}\n"


def _run_outside(command: str) -> str:
    return f"{_run(command)}        working-directory: ${{{{ runner.temp }}}}/outside\n"


def _outside(project: Project) -> str:
    """Return the step that copies the checkout without the project's sources."""
    sources = sorted(str(path.relative_to(project.root)) for folder in project.sources for name in project.modules
                     for place in [path_of(folder, name)] for path in (place, place.with_name(f"{place.name}.py"))
                     if path.exists() and project.installable)
    remove = [f'cd "$RUNNER_TEMP/outside" && {shlex.join(["rm", "-rf", "--", *sources])}'] if sources else []
    lines = ['mkdir "$RUNNER_TEMP/outside"', 'cp -R . "$RUNNER_TEMP/outside"', *remove]
    return "      - name: Copy everything but the sources, so that what was installed is imported\n" + _run(
        "\n          ".join(lines)).replace("      - run", "        run", 1)


def _tests_of_installed(project: Project) -> tuple[str, ...]:
    """Return the command of the tests; tests inside of the packages are run where these are installed."""
    assert project.tests is not None
    return (*project.tests, "--pyargs", *project.with_tests) if project.with_tests else project.tests


def _safe_path(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command whose Python does not put the working folder on `sys.path`."""
    return (command[0], "-P", *command[1:]) if command[0] == "python" else tuple(command)


def _install(project: Project) -> str:
    what = ["."] if project.installable else list(project.requirements)
    needed = dict.fromkeys((*what, *project.test_requirements, *needed_by(project.tests)))
    return shlex.join(["python", "-m", "pip", "install", *needed]) if needed else "python -m pip --version"


def _check(project: Project, installed: InstalledModules) -> str:
    """Return a command that fails where a module is not compiled, or importing turns the GIL on; "" without modules."""
    # Beside packages, modules in the root are usually scripts, which are not installed.
    packages = [name for name in project.modules if any(path_of(folder, name).is_dir() for folder in project.sources)]
    if not (names := installed.top_level or packages or project.modules):
        return ""
    code = f"import sys, {', '.join(names)}; "
    if installed.compiled:
        code += ("from importlib import import_module, machinery; "
                 f"uncompiled = [name for name in {list(installed.compiled)} if not str(import_module(name).__file__)"
                 ".endswith(tuple(machinery.EXTENSION_SUFFIXES))]; "
                 "sys.exit(f'not compiled: {uncompiled}' if uncompiled else ")
    else:
        code += "sys.exit("
    return shlex.join(["python", "-P", "-c", f"{code}'the GIL is on' if sys._is_gil_enabled() else 0)"])


def _wheels(builds: Sequence[Build], check: str) -> str:
    names = dict.fromkeys(f"cp{build.minor.replace('.', '')}t-*" for build in builds)
    enable = ["cpython-freethreading"] if "cp313t-*" in names else []   # from 3.14 on they are built as others are
    enable += ["cpython-prerelease"] if any(not re.fullmatch(r"[\d.]+\+?", build.version) for build in builds) else []
    return _WHEELS.format(
        action=CIBUILDWHEEL, builds=json.dumps(" ".join(names)),
        enable=f"          CIBW_ENABLE: {' '.join(enable)}\n" if enable else "",
        command=json.dumps(check or "python --version"))
