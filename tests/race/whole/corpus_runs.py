"""Run a program as it is and under `gilscope race`, and keep what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE
from tests.race.whole.expectations import found_races

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.race.whole.expectations import Found

CORPUS = ROOT / "tests" / "corpus" / "races"
RACE_FOUND = 66


@dataclass(frozen=True, slots=True)
class Plain:
    """A run without the checker."""

    stdout: str
    code: int


@dataclass(frozen=True, slots=True)
class Checked:
    """A run under the checker; `problem` says why there is no report."""

    stdout: str
    stderr: str
    code: int
    races: list[Found]
    notes: list[Found]
    problem: str = ""

    def same_as(self, plain: Plain) -> bool:
        """Tell whether the program did the same as without the checker."""
        return self.stdout == plain.stdout and self.code in {plain.code, RACE_FOUND if self.races else plain.code}


def programs(folder: Path = CORPUS) -> list[Path]:
    """Return all racy and fixed programs of the corpus, twins side by side."""
    return sorted(path for path in folder.glob("*/*/*.py") if path.name in {"racy.py", "fixed.py"})


def run_plain(python: str, program: Path) -> Plain:
    """Run a program without the checker."""
    ended = subprocess.run([python, program], env=environment(), cwd=program.parent, timeout=PATIENCE,
                           capture_output=True, text=True, check=False)
    return Plain(ended.stdout, ended.returncode)


def run_checked(python: str, program: Path, timeout: float = PATIENCE, options: Sequence[str] = (),
                **extra: str) -> Checked:
    """Run a program under the checker, with more variables in its environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "gilscope", "race", "--build", f"tested={python}", f"--json={report}",
                   *options, str(program)]
        try:
            ended = subprocess.run(command, env=environment() | extra, cwd=program.parent, timeout=timeout,
                                   capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired:
            return Checked("", "", -1, [], [], f"still running after {timeout:.0f} s")
        try:
            document = json.loads(report.read_text())
            races, notes = found_races(document)
        except (OSError, ValueError) as error:
            return Checked(ended.stdout, ended.stderr, ended.returncode, [], [], f"no report: {error!r}")
    return Checked(ended.stdout, ended.stderr, ended.returncode, races, notes)


def environment() -> dict[str, str]:
    """Return an environment in which the project is found, and corpus folders stay as they are."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}


def has_numpy(python: str) -> bool:
    """Tell whether NumPy can be imported there."""
    return subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0
