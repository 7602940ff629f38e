"""The programs in docs/json.md work on the run that the repository has."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT
from tests.patience import PATIENCE

JSON = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")


@pytest.fixture
def here(tmp_path):
    """Return a folder with the run LABEL, and `gilscope` on the way to it."""
    shutil.copytree(ROOT / "results" / "example", tmp_path / ".gilscope-results" / "LABEL")
    command = tmp_path / "bin" / "gilscope"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gilscope "$@"\n')
    command.chmod(0o755)
    return tmp_path


def run(command, here):
    environ = {**os.environ, "PATH": f"{here / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=here, env=environ, capture_output=True, text=True, check=True,
                          timeout=PATIENCE).stdout


def test_python_reads_json(here):
    (program,) = re.findall(r"```python\n(.*?)```", JSON, re.DOTALL)
    out = run([sys.executable, "-c", program], here)
    row = r"sha256_64k subinterpreters N=2 on 3\.13: [\d.]+ s, 1\.\d\d times as fast as serial \(faster\)"
    assert re.search(row, out)
    assert "free-threaded N=2 on 3.13: skipped: the GIL is enabled" in out


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
def test_jq_reads_json(here):
    commands = re.findall(r"^\$ (gilscope report LABEL --json \| jq.*)", JSON, re.MULTILINE)
    assert len(commands) == 2
    faster, missing = (run(["/bin/sh", "-c", command], here) for command in commands)
    assert faster.count("\n") > 5
    assert "free-threaded\t3.13\tthe GIL is enabled" in missing


def test_schemas_that_are_linked_are_there():
    links = re.findall(r"\]\(\.\./(toolkit/report/schemas/\w+\.json)\)", JSON)
    assert sorted(links) == sorted(
        str(path.relative_to(ROOT)) for path in (ROOT / "toolkit" / "report" / "schemas").glob("*.json"))
