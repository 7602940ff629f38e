"""What a run installs for its models: packages only for those that need them, in a place of their own."""

import sys
from pathlib import Path

import pytest

from gilscope.runners.catalog import PACKAGES, RUNNERS
from gilscope.toolkit.builds.environment import Environment
from gilscope.toolkit.measure import preparation
from gilscope.toolkit.measure.abilities import Abilities
from gilscope.toolkit.measure.cells import Selection
from gilscope.toolkit.model import Phase
from tests.fakes import make_build

pytestmark = pytest.mark.newest

DASK = PACKAGES["dask"]


@pytest.fixture
def prepared(monkeypatch, tmp_path):
    """Prepare a run of some models; nothing is installed, and the builds say that they have all but dask."""
    asked = []

    def build_environment(build, packages, optional, *, purpose, **_):
        asked.append((build.label, tuple(optional), purpose))
        return Environment(python=Path(sys.executable), missing=dict.fromkeys(optional, "no wheel for this build"))

    def ask_build(*_, **__):
        return Abilities(runners={each.name: "needs it" if each.name in PACKAGES else None for each in RUNNERS},
                         modules={}, isolated={})

    monkeypatch.setattr(preparation, "build_environment", build_environment)
    monkeypatch.setattr(preparation, "ask_build", ask_build)

    def prepare(*models, **changes):
        selection = Selection(workloads=("noop",), user=None, models=models, workers=(1,), phases=(Phase.STEADY,),
                              size="small")
        made = preparation.prepare(selection, [make_build("3.14t", **changes)], paths=[], packages=[],
                                   folder=tmp_path, say=lambda _: None)
        return asked, made.abilities["3.14t"].runners

    return prepare


def test_nothing_is_installed_for_models_of_the_standard_library(prepared):
    asked, runners = prepared("threads", "processes-spawn")
    assert asked == [("3.14t", (), "")]
    assert runners["dask"] == "needs it"


def test_engine_has_an_environment_of_its_own_and_its_cells_the_installers_reason(prepared):
    asked, runners = prepared("dask", "dask-threads", "threads")
    assert asked == [("3.14t", (DASK,), "engines")]
    assert runners["dask"] == f"{DASK} cannot be installed: no wheel for this build"
    assert runners["threads"] is None


def test_environment_of_the_users_is_measured_as_it_is(prepared):
    asked, runners = prepared("dask", source="tox")
    assert asked == [("3.14t", (DASK,), "")]
    assert runners["dask"].startswith(DASK)
