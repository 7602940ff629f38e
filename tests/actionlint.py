"""The linter of GitHub workflows: the installed one, or one that Go builds once into gilscope's cache."""

import os
import shutil
import subprocess

import pytest

from gilscope.toolkit.file_locks import locked
from gilscope.toolkit.user_dirs import cache_dir
from tests.patience import PATIENCE

MODULE = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


def actionlint() -> str:
    """Return its path; skip the test, loudly, where it cannot be had."""
    if found := shutil.which("actionlint"):
        return found
    folder = cache_dir() / "actionlint"
    tool = folder / "actionlint"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if not tool.exists():
            if shutil.which("go") is None:
                pytest.skip("NO WORKFLOW WAS LINTED: there is neither actionlint nor Go, which builds it")
            done = subprocess.run(["go", "install", MODULE], env={**os.environ, "GOBIN": str(folder)}, timeout=PATIENCE,
                                  capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"NO WORKFLOW WAS LINTED: Go cannot build actionlint: {done.stderr.strip()[-200:]}")
    return str(tool)


def lint(text: str) -> str:
    """Return what it finds in a workflow."""
    done = subprocess.run([actionlint(), "-no-color", "-"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout
