"""Packages that do one thing each, in real environments of a free-threaded build and its counterpart."""

import json
import pickle
from dataclasses import replace

import pytest

from gilscope.toolkit.evaluate.packages import doctor
from gilscope.toolkit.evaluate.packages.doctor import DoctorOptions, diagnose, reference_of
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.packages.imports import ImportRequest, import_run
from gilscope.toolkit.evaluate.packages.scratch import EnvironmentRequest
from gilscope.toolkit.evaluate.views.doctor import document, plain
from gilscope.toolkit.evaluate.views.explain_package import explain
from gilscope.toolkit.report.terminal import render
from tests.conformance.builds import found, host
from tests.evaluate.places import Site
from tests.evaluate.views.test_schemas import valid
from tests.patience import PATIENCE
from tests.shared import once

ON_FREE = pytest.mark.builds("free")
HANGING = (1.0, 10.0, 60.0, PATIENCE)   # seconds for what hangs: more where a busy machine has not let it get there


def package(name, text, *modules):
    return {f"{name}/__init__.py": text, **{f"{name}/{module}.so": None for module in modules}}


DATES = "import datetime, decimal, ssl\nimport dates.multi_best\n"

# What each distribution is made of, and what it must be called: on the build, and in interpreters of their own.
PACKAGES = {
    "good": (package("good", "from good import multi_best\n", "multi_best"), Status.READY, InterpreterStatus.OK),
    "plain": (package("plain", "x = 1\n"), Status.PURE, InterpreterStatus.OK),
    "flips": ({**package("flips", "from flips import multi_plain\n", "multi_plain"), "flips/other.py": "x = 1\n"},
              Status.GIL, InterpreterStatus.FAILS),
    "old": (package("old", "import old.single_plain\n", "single_plain"), Status.GIL, InterpreterStatus.FAILS),
    "lazy": (package("lazy", "def use():\n    import lazy.multi_own_used\n", "multi_own_used"),
             Status.GIL, InterpreterStatus.OK),
    # Nothing of the package is loaded by importing it; one of its modules asks for it.
    "inner": ({**package("inner", "x = 1\n", "multi_own_used"), "inner/use.py": "import inner.multi_own_used\n"},
              Status.GIL, InterpreterStatus.OK),
    "strange": (package("strange", "import strange.strange\n", "strange"), Status.GIL, InterpreterStatus.FAILS),
    "crash": (package("crash", "import crash.crashing\n", "crashing"), Status.CRASH, InterpreterStatus.UNKNOWN),
    "hang": (package("hang", "import hang.hanging\n", "hanging"), Status.HANG, InterpreterStatus.UNKNOWN),
    "leaves": (package("leaves", "import os\nos._exit(0)\n", "multi_best"), Status.FAILS, InterpreterStatus.UNKNOWN),
    "swallows": (package("swallows", "try:\n    from swallows import multi_free\nexcept ImportError:\n    pass\n",
                         "multi_free"), Status.READY, InterpreterStatus.LOST),
    # Importing it is fine; one module inside ends every process that imports it, on every build.
    "server": ({**package("server", "x = 1\n", "multi_best"), "server/run.py": "import os\nos._exit(1)\n"},
               Status.READY, InterpreterStatus.OK),
    # What the standard library alone does to an interpreter is not this package's fault: 3.12 aborts at the second one.
    "dates": (package("dates", DATES, "multi_best"),
              Status.READY, InterpreterStatus.OK),
    "needy": (package("needy", "import absent\n", "multi_best"), Status.FAILS, InterpreterStatus.UNKNOWN),
}
FALLBACK = "try:\n    from fallback import multi_best\nexcept ImportError:\n    multi_best = None\n"


def filled(site, *, free_threaded):
    for name, (files, *_) in PACKAGES.items():
        if name == "hang":
            continue
        site.add(name, files, requires=["absent"] if name == "needy" else ())
    site.add("fallback", package("fallback", FALLBACK, *([] if free_threaded else ["multi_best"])))
    if not free_threaded:
        site.add("absent", package("absent", "x = 1\n"))
    return site.scratch(**({"absent": "no wheel for this build"} if free_threaded else {}))


@pytest.fixture(scope="session")
def report(build, variants, tmp_path_factory):
    """Return what the doctor said on a build: it takes seconds, so once for all processes that run tests."""
    counterpart = reference_of(build, found())
    if counterpart is None:
        pytest.skip(f"no build of {build.label} with a GIL")
    libraries = {each.label: variants(each) for each in (build, counterpart)}

    def make(folder):
        sites = {each.label: Site(each, folder / each.label, libraries[each.label]) for each in (build, counterpart)}
        scratches = {each.label: filled(sites[each.label], free_threaded=each.free_threaded)
                     for each in (build, counterpart)}
        request = EnvironmentRequest(requirements=("plain", "good", "lazy"))
        seen = diagnosed(request, build, scratches, PATIENCE)
        hanging = the_one_that_hangs(build, counterpart, folder, libraries)
        told = replace(seen, findings=(*seen.findings, hanging))
        (folder / "report").write_bytes(pickle.dumps(told))

    return pickle.loads((once(tmp_path_factory, f"doctor-{build.label}", make) / "report").read_bytes())


def diagnosed(request, build, scratches, limit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "prepare", lambda *_: scratches)
        (seen,) = diagnose(request, [build], found(), DoctorOptions(limit=limit, interpreters=True))
    return seen


def the_one_that_hangs(build, counterpart, folder, libraries):
    """Return what the doctor says of it alone, as it takes all the time that there is, several times."""
    scratches = {}
    for each in (build, counterpart):
        site = Site(each, folder / f"hang-{each.label}", libraries[each.label])
        site.add("hang", PACKAGES["hang"][0])
        scratches[each.label] = site.scratch()
    for limit in HANGING:
        (finding,) = diagnosed(EnvironmentRequest(requirements=("hang",)), build, scratches, limit).findings
        if "while importing hang.hanging" in finding.verdict.reasons[0] and finding.seen.control.kind == "done":
            break
    return finding


def by_name(report):
    return {finding.name: finding for finding in report.findings}


@ON_FREE
def test_every_package_is_called_what_it_is(report):
    named = by_name(report)
    expected = {name: status for name, (_, status, _) in PACKAGES.items()}
    expected |= {"fallback": Status.LOST, "absent": Status.NO_WHEEL}
    assert {name: finding.verdict.status for name, finding in named.items()} == expected
    assert report.blocked


@ON_FREE
def test_interpreters_are_told_apart(report):
    named = by_name(report)
    expected = {name: status for name, (_, _, status) in PACKAGES.items()}
    assert {name: finding.interpreters for name, finding in named.items() if name in expected} == expected


@ON_FREE
def test_the_reasons_name_module_and_evidence(report):
    named = by_name(report)
    assert named["flips"].verdict.reasons == ("flips.multi_plain needs the GIL (seen by hook and import)",)
    assert named["strange"].verdict.reasons == ("strange.strange needs the GIL (seen by import)",)
    assert named["fallback"].verdict.reasons == ("fallback.multi_best: not in the wheel of this build",)
    assert "crashed with SIGSEGV while importing crash.crashing" in named["crash"].verdict.reasons[0]
    assert named["hang"].verdict.reasons[0].startswith(tuple(
        f"did not end within {limit:g} s while importing hang.hanging" for limit in HANGING))
    assert named["needy"].verdict.reasons[-1] == "it needs absent, which is not there"


@ON_FREE
def test_all_culprits_stand_in_one_report_with_their_way(report):
    text = render(document([report]), width=200)
    culprits = ("flips", "old", "lazy", "strange", "inner")
    assert all(f"{name} 1.0 on {report.build.label} turns the GIL on" in text for name in culprits)
    assert "loaded through flips (flips/__init__.py:1)" in text
    assert f"absent 1.0 on {report.build.label}: no wheel for this build\n" in text
    assert "loaded through inner.use (inner/use.py:1)" in text


@ON_FREE
def test_inner_modules_are_imported_where_the_package_asks_for_no_c_code(report):
    named = by_name(report)
    assert "inner.use" in named["inner"].seen.run.imported
    assert "flips.other" not in named["flips"].seen.run.imported


@ON_FREE
def test_nobody_is_blamed_before_the_standard_library_was_tried_alone(report):
    named = by_name(report)
    for name in ("flips", "crash", "hang"):
        control = named[name].seen.control
        assert (control.kind, control.gil_on, control.failed) == ("done", False, ())
    assert named["good"].seen.control is None


@ON_FREE
def test_what_turns_the_gil_on_is_imported_again_with_it_forced_off(report):
    named = by_name(report)
    forced = named["flips"].seen.forced
    assert (named["flips"].seen.run.gil_on, forced.gil_on, forced.imported) == (True, False, ("flips",))
    assert named["good"].seen.forced is None


@ON_FREE
def test_what_interpreters_refuse_is_said_once(report):
    text = render(document([report]), width=200)
    assert (f"swallows 1.0 on {report.build.label} loses its C code: swallows.multi_free "
            "supports no interpreter with its own GIL" in text)


@ON_FREE
def test_explain_shows_one_package_alone(report):
    text = render(explain([report], "flips.multi_plain"))
    assert "flips 1.0" in text
    assert "TURNED THE GIL ON" in text
    assert "good" not in text
    assert explain([report], "nothing-of-that-name").sections == ()


@ON_FREE
def test_json_has_the_same(report):
    valid(plain([report]), "doctor")
    (build,) = json.loads(json.dumps(plain([report])))["builds"]
    flips = next(each for each in build["packages"] if each["name"] == "flips")
    assert (flips["status"], flips["blocks"]) == ("turns-gil-on", True)
    (culprit,) = flips["culprits"]
    assert (culprit["module"], culprit["way"][0]["module"]) == ("flips.multi_plain", "flips")
    assert flips["extensions"][0]["init"] == "multi-phase"


@pytest.mark.builds("gil")
def test_what_the_standard_library_does_to_an_interpreter_is_not_the_packages_fault(site, build):
    place = site(build)
    place.add("dates", package("dates", DATES, "multi_best"))
    request = EnvironmentRequest(requirements=("dates",))
    (dates,) = diagnosed(request, build, {build.label: place.scratch()}, PATIENCE).findings
    assert (dates.verdict.status, dates.interpreters) == (Status.READY, InterpreterStatus.OK)


@ON_FREE
def test_what_was_asked_is_kept_until_the_packages_change(site, build):
    place = site(build)
    place.add("good", PACKAGES["good"][0])
    scratch = place.scratch()
    told = [import_run(scratch.python, ImportRequest(roots=("good",)), memo=scratch.answers) for _ in range(2)]
    (kept,) = scratch.answers.iterdir()
    assert told[0] == told[1]
    assert [load.name for load in told[0].loads] == ["good.multi_best"]
    (scratch.folder / "pyvenv.cfg").unlink()   # now the question itself cannot be asked
    assert import_run(scratch.python, ImportRequest(roots=("good",)), memo=scratch.answers) == told[0]
    kept.write_text("{")
    assert import_run(scratch.python, ImportRequest(roots=("good",)), memo=scratch.answers) != told[0]


def test_reference_is_the_same_version_with_a_gil():
    build = host()
    free = replace(build, label="3.77t", version="3.77.2", free_threaded=True)
    others = [replace(build, label=version, version=version, free_threaded=False)
              for version in ("3.76.2", "3.77.1", "3.77.2")]
    assert reference_of(free, others).label == "3.77.2"
    assert reference_of(free, others[:2]).label == "3.77.1"
    assert reference_of(free, others[:1]) is None
