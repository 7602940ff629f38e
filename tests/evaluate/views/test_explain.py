"""Everything known of one package: made-up findings, and a lock."""

from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.packages.evidence import Distribution, InterpreterStatus, Status
from gilscope.toolkit.evaluate.requirements.locks import LockedPackage
from gilscope.toolkit.evaluate.sections import Place
from gilscope.toolkit.evaluate.views.explain_package import Beside, explain
from gilscope.toolkit.report.terminal import render
from tests.evaluate.made_up import ETREE, evaluation, finding, lxml, report
from tests.fakes import make_build

LOCK = (
    LockedPackage(name="soup", version="4.1", wheels=("soup-4.1-py3-none-any.whl",), sdist=True, needs=("lxml",)),
    LockedPackage(name="lxml", version="6.1", wheels=("lxml-6.1-cp313-cp313t-win_amd64.whl",), sdist=True),
)
SOUP = Distribution(name="soup", version="4.1", modules=("soup",), inner=(), extensions=(), tags=("py3-none-any",),
                    pure=True, requires=("lxml",))


def shown(reports, name, **beside):
    return " ".join(render(explain(reports, name, Beside(**beside)), width=300).split())


def culprit():
    """Return lxml as a wheel for glibc 2.26 and newer, needed by soup; on the counterpart it has another version."""
    found = lxml()
    here = replace(found.seen.distribution, tags=("cp314-cp314t-manylinux_2_26_x86_64",))
    return replace(found, way=("soup", "lxml"),
                   seen=replace(found.seen, distribution=here, reference_distribution=replace(here, version="6.0")))


def test_all_of_a_package_that_turns_the_gil_on():
    line = Place(file="io.py", line=3, what="lxml.etree", way=("soup/__init__.py:8",))
    text = shown([replace(report(culprit()), newest={"lxml": ("7.0", Status.READY)})], "LXML", project="myapp",
                 places={"3.14t": (line,)})
    for told in ("lxml 6.1 on 3.14t: turns the GIL on", "asked for by: myapp -> soup -> lxml",
                 "wheel: cp314-cp314t-manylinux_2_26_x86_64 (glibc 2.26 or newer)",
                 "3.14 has 6.0 (cp314-cp314t-manylinux_2_26_x86_64)", "7.0, the newest, mends it",
                 "lxml.etree, seen by hook and import; the project's line is io.py:3 -> soup/__init__.py:8",
                 "TURNED THE GIL ON <- lxml.html:41", "does not support loading in subinterpreters"):
        assert told in text


@pytest.mark.parametrize(("version", "status", "told"), [
    ("7.0", Status.UNKNOWN, "7.0, the newest, could not be judged"), ("6.1", Status.READY, "6.1 is the newest"),
    ("7.0", Status.GIL, "7.0, the newest, turns the GIL on, too")])
def test_newest_version_that_is_not_known_to_run_mends_nothing(version, status, told):
    text = shown([replace(report(culprit()), newest={"lxml": (version, status)})], "lxml")
    assert told in text
    assert "mends" not in text


def test_package_that_no_index_has_has_no_newest_version():
    absent = replace(finding(Status.NOT_FOUND, InterpreterStatus.UNKNOWN, "no package index knows it"), version="")
    text = shown([replace(report(absent), newest={"lxml": ("", Status.NOT_FOUND)})], "lxml")
    assert "no package index knows it" in text
    assert "newest" not in text


def test_other_packages_are_left_out():
    text = shown([report(culprit(), replace(finding(), name="other"))], "other")
    assert "other 6.1 on 3.14t: ready" in text
    assert "lxml 6.1" not in text


def test_file_is_found_by_its_path():
    assert ETREE in shown([report(culprit())], ETREE)


def test_what_has_no_wheel_says_who_needs_it():
    none = finding(Status.NO_WHEEL, InterpreterStatus.UNKNOWN, "no wheel for 3.14t")
    none = replace(none, version="", way=("soup", "lxml"), seen=replace(none.seen, distribution=None))
    text = shown([report(none)], "lxml")
    assert "asked for by: soup -> lxml" in text
    assert "Why no wheel for 3.14t" in text


def test_pure_package_that_another_one_needs_is_known_too():
    others = replace(report(), rest=(SOUP,), ways={"soup": ("web", "soup")})
    assert "soup 4.1 on 3.14t: pure Python, needed by others" in shown([others], "soup")
    assert "asked for by: web -> soup" in shown([others], "soup")


def test_lock_alone_tells_its_wheels():
    text = shown([], "lxml", locked=LOCK, builds=(make_build("3.14t"),))
    for told in ("lxml 6.1 in the lock (metadata only, not a verdict)", "3.14t has its source only: no wheel for 3.14t",
                 "needed by: soup", "lxml-6.1-cp313-cp313t-win_amd64.whl"):
        assert told in text


def test_nothing_known_is_nothing_shown():
    assert explain(list(evaluation().builds[:0]), "absent", Beside(locked=LOCK)).sections == ()
