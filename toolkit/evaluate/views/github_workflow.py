"""A workflow for GitHub Actions: the tests on builds without a GIL, and wheels where there is C code.  Pure."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.suite.running import needed_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


def workflow(project: Project, builds: Sequence[Build], *, extensions: bool) -> str:
    """Return a workflow in YAML.

    Args:
        project: Whose tests.
        builds: Those without a GIL that were looked at.
        extensions: Whether it has C code of its own, so that wheels have to be built.
    """
    versions = list(dict.fromkeys(f"{build.minor}t" for build in builds))
    lines = [_head(versions), _run(_install(project))]
    if project.modules:
        lines.append(_run(_check(project.modules)))
    if project.tests:
        lines.append(_run(shlex.join(project.tests)))
    if extensions:
        lines.append(_wheels(project, builds))
    return "".join(lines)


def _head(versions: Sequence[str]) -> str:
    return _HEAD.format(pythons=json.dumps(versions))


def _run(command: str) -> str:
    """Return a step; a block keeps what YAML would read otherwise."""
    return f"      - run: |\n          {command}\n"


def _install(project: Project) -> str:
    what = ["."] if project.installable else list(project.requirements)
    needed = dict.fromkeys((*what, *project.test_requirements, *needed_by(project.tests)))
    return shlex.join(["python", "-m", "pip", "install", *needed]) if needed else "python -m pip --version"


def _check(modules: Iterable[str]) -> str:
    """Return a command that fails where importing the project turns the GIL on."""
    code = f"import sys, {', '.join(modules)}; sys.exit('the GIL is on' if sys._is_gil_enabled() else 0)"
    return shlex.join(["python", "-c", code])


def _wheels(project: Project, builds: Sequence[Build]) -> str:
    names = dict.fromkeys(f"cp{build.minor.replace('.', '')}t-*" for build in builds)
    enable = ["cpython-freethreading"] if "cp313t-*" in names else []   # from 3.14 on they are built as others are
    enable += ["cpython-prerelease"] if any(not re.fullmatch(r"[\d.]+\+?", build.version) for build in builds) else []
    return _WHEELS.format(
        action=CIBUILDWHEEL, builds=json.dumps(" ".join(names)),
        enable=f"          CIBW_ENABLE: {' '.join(enable)}\n" if enable else "",
        command=json.dumps(_check(project.modules)) if project.modules else '"python --version"')
