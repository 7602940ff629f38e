"""Old versions that an installer goes back to; what the index says is made up."""

import pytest
from packaging.specifiers import SpecifierSet

from gilscope.toolkit.evaluate.packages import scratch
from gilscope.toolkit.evaluate.packages.evidence import Distribution

WHEELS = "thing (0.10.1)\nAvailable versions: 0.10.1, 0.9\n"
ANSWER = "thing (4.4.0)\nAvailable versions: 4.4.0, 4.3.2, 0.10.1, 0.9\n  INSTALLED: 0.10.1\n"


@pytest.mark.parametrize(("allowed", "newest"), [("", "4.4.0"), ("<4.4", "4.3.2"), ("<=0.10.1", "0.10.1"), (">5", "")])
def test_newest_version_is_one_that_was_asked_for(allowed, newest):
    assert scratch.newest_of(ANSWER, SpecifierSet(allowed)) == newest


def test_without_an_answer_nothing_is_newer():
    assert scratch.newest_of("", SpecifierSet()) == ""


@pytest.mark.parametrize(("requirement", "version", "pure", "told"), [
    ("thing", "0.10.1", True, {"thing": "4.4.0"}),
    ("Thing[extra]>=0.9", "0.10.1", True, {"thing": "4.4.0"}),
    ("thing", "4.4.0", True, {}),            # the newest
    ("thing<1", "0.10.1", True, {}),         # the newest that was asked for
    ("thing==0.10.1", "0.10.1", True, {}),   # no choice
    ("thing", "0.9", True, {}),              # there is a newer wheel, which something else does not take
    ("thing", "0.10.1", False, {}),          # compiled: judged as it is
    ("other", "0.10.1", True, {}),           # only needed by what was asked for
    ("./thing", "0.10.1", True, {}),
])
def test_pure_version_older_than_what_was_asked_for_is_a_way_back(
    requirement, version, pure, told, monkeypatch, tmp_path,
):
    monkeypatch.setattr(scratch, "_index_versions", lambda _python, _name, *options: WHEELS if options else ANSWER)
    found = Distribution(name="thing", version=version, modules=("thing",), inner=(), extensions=(), tags=(), pure=pure)
    assert scratch.old_versions(tmp_path, [requirement], [found]) == told
