"""Functions that start threads are replaced while threads are watched, and only then."""

import _imp
import sys
import threading

import pytest

from gilscope.toolkit.gil_guard import project_threads
from gilscope.toolkit.gil_guard.project_threads import STARTS, ProjectCode, ProjectThreads

pytestmark = pytest.mark.skipif(sys.version_info < (3, 13), reason="only builds without a GIL are watched")


def starts():
    return [getattr(module, name) for module, name in STARTS]


@pytest.fixture(autouse=True)
def loads_as_before(monkeypatch):
    monkeypatch.setattr(_imp, "create_dynamic", _imp.create_dynamic)   # put back afterwards


def test_starts_are_replaced_until_the_end(tmp_path):
    before = starts()
    made = ProjectThreads(ProjectCode(tmp_path))
    during = starts()
    made.stop()
    assert all(one is not other for one, other in zip(before, during, strict=True))
    assert starts() == before


def test_replacement_of_somebody_else_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(threading, "_start_joinable_thread", threading._start_joinable_thread)
    made = ProjectThreads(ProjectCode(tmp_path))
    others = threading._start_joinable_thread = lambda *_, **__: None
    made.stop()
    assert threading._start_joinable_thread is others


def test_without_an_id_nothing_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(project_threads, "free_tool", lambda: None)
    before = starts()
    made = ProjectThreads(ProjectCode(tmp_path))
    assert (made.works, starts()) == (False, before)
    made.stop()
