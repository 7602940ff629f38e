"""Command lines with something wrong in them: what is meant is said, and nothing is taken for something like it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.toolkit.builds.find import find_builds, select_builds
from gilscope.toolkit.errors import UnknownNameError
from tests.conformance.builds import ROOT
from tests.faults.calling import call, faults_of
from tests.patience import PATIENCE


@pytest.mark.parametrize(("words", "said"), [
    (("report", "--jsn"), "did you mean --json?"),
    (("run", "--round", "3"), "did you mean --rounds?"),            # the beginning of an option is no option
    (("compare", "a", "b", "--mod", "x,y"), "unrecognized arguments: --mod"),
    (("experiment", "run", "countdown", "--smok"), "did you mean --smoke?"),
    (("race", "--note", "x.py"), "did you mean --notes?"),
    (("run", "-m", "app"), "`run` and `scale` measure MODULE:FUNCTION"),
    (("doctor", "--nothing-like-it"), "unrecognized arguments: --nothing-like-it; `gilscope doctor --help`"),
])
def test_unknown_option_is_told_with_the_one_that_may_be_meant(words, said):
    called = call(*words)
    assert (called.code, [*faults_of(called)], called.out) == (2, [], "")
    assert said in called.errors
    assert len(called.errors.splitlines()) == 1


def test_build_is_named_once():
    label = find_builds([f"host={sys.executable}"])
    with pytest.raises(UnknownNameError, match="host is named twice"):
        select_builds(label, "host,host")


@pytest.mark.newest
@pytest.mark.parametrize(("words", "buffered"), [
    (("run", "--help"), ""), (("--version",), "1"),
    *(pytest.param(words, buffered, marks=pytest.mark.slow) for words, buffered in (
        (("--help",), "1"), (("experiment", "run", "--help"), ""), (("--print-completion", "bash"), "1")))])
def test_help_that_cannot_be_written_is_no_success(words, buffered):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "gilscope", *words], cwd=ROOT, stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False, timeout=PATIENCE,
                              env={**os.environ, "PYTHONUNBUFFERED": buffered})
    assert done.returncode == 3
    assert done.stderr == "gilscope: cannot write to standard output: No space left on device\n"
