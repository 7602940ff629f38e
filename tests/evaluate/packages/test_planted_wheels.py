"""Sets of wheels with one thing wrong each: every one is called what it is, and repairs are clean."""

import json

import pytest

from gilscope.toolkit.cli import main
from tests.evaluate.places import COMPILER
from tests.evaluate.planted_wheels import SETS, WheelKit
from tests.evaluate.views.test_schemas import valid

# Nothing is installed of these: making an environment and importing from it takes seconds; rebuilt wheels need both.
FAST = {"abi3 only", "abi3 over a free-threaded file", "classifier without a wheel", "newer C library", "only the GIL",
        "refuses this Python", "sdist only"}
# The sets with one repair in common.
REPAIRS = [tuple(name for name, (_, _, other) in SETS.items() if other is repair)
           for repair in dict.fromkeys(repair for _, _, repair in SETS.values() if repair)]
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


@pytest.fixture(scope="session")
def kit_of(pair, variants):
    """Return a kit that writes wheels of the newest pair of builds into a folder."""
    free, gil = pair
    libraries = {f"{each.minor.replace('.', '')}{'t' if each.free_threaded else ''}":
                 variants(each).read_bytes() for each in (free, gil)}
    return lambda folder, **how: WheelKit(folder, free.minor.partition(".")[2], libraries, **how)


@pytest.fixture
def judge(pair, environments, monkeypatch, tmp_path, capsys):
    """Return what doctor says of the files in a folder: its exit code and its JSON."""
    monkeypatch.setenv("GILSCOPE_CACHE", str(environments))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.chdir(tmp_path)
    free, gil = pair

    def ask(*files, builds=None, options=()):
        builds = builds or [free]
        code = main(["doctor", *map(str, files), "--json", "--builds", ",".join(each.label for each in builds),
                     *(f"--build={each.label}={each.executable}" for each in (free, gil)), *options])
        found = json.loads(capsys.readouterr().out)
        valid(found, "doctor")
        return code, found

    return ask


def codes_of(found):
    """Return the codes of what is wrong or missing in the set of the project, and of files that cannot be judged."""
    (own,) = (each for each in found["sets"] if each["name"] == "thing")
    return ({each["code"] for each in own["findings"] if each["effect"] != "note"}
            | {each["problem"] for each in found["unusable_files"]})


def blocks(found):
    return any(each["effect"] == "blocks" for one in found["sets"] for each in one["findings"])


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in SETS])
def test_planted_set_is_called_what_it_is(name, kit_of, judge, tmp_path):
    plant, codes, _ = SETS[name]
    plant(kit_of(tmp_path))
    code, found = judge(tmp_path)
    assert codes_of(found) == codes
    assert code == int(blocks(found) or bool(found["unusable_files"]))


@pytest.mark.slow
@pytest.mark.parametrize("repair", REPAIRS, ids=", ".join)
def test_repaired_set_is_clean(repair, kit_of, judge, tmp_path):
    SETS[repair[0]][2](kit_of(tmp_path))
    code, found = judge(tmp_path)
    assert (code, codes_of(found)) == (0, set())


def test_rebuilt_wheel_of_the_same_version_is_judged_anew(kit_of, judge, tmp_path):
    kit = kit_of(tmp_path)
    SETS["gil used"][0](kit)
    assert "import.turns-gil-on" in codes_of(judge(tmp_path)[1])
    SETS["gil used"][2](kit)   # under the same file names
    assert codes_of(judge(tmp_path)[1]) == set()
    assert len(list(tmp_path.glob("*.whl"))) == 2


def test_wheel_that_cannot_be_imported_on_the_build_with_the_gil_either_blocks(kit_of, judge, pair, tmp_path):
    SETS["abi3 over a free-threaded file"][0](kit_of(tmp_path))
    _, gil = pair
    code, found = judge(tmp_path, builds=[gil])
    assert code == 1
    assert codes_of(found) == {"wheel.file-for-another-build", "import.cannot-be-imported"}
    assert [each["status"] for each in found["sets"][0]["answers"]] == ["cannot-be-imported"]


@pytest.mark.slow
def test_two_projects_are_two_sets_and_both_are_in_the_answer(kit_of, judge, tmp_path):
    SETS["needs one that turns it on"][0](kit_of(tmp_path))
    code, found = judge(tmp_path)
    assert code == 1
    assert [(each["name"], each["blocked"]) for each in found["sets"]] == [("other", True), ("thing", True)]
    (needed,) = (each for each in found["sets"][1]["findings"] if each["code"] == "import.dependency-blocks")
    assert needed["package"] == "other"


def test_text_and_page_say_what_is_wrong_and_what_is_missing(kit_of, pair, judge, tmp_path, capsys):
    free, _gil = pair
    SETS["abi3 over a free-threaded file"][0](kit_of(tmp_path))
    named = [f"--build={each.label}={each.executable}" for each in pair]
    assert main(["doctor", str(tmp_path), "--builds", free.label, "--html", "thing.html", *named]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert f"= Blocked: thing 1.0 on {free.label} and on builds that were not asked for." in shown
    assert f"{free.label} NO WHEEL nothing" in shown
    assert "What is wrong cp310-abi3: thing/multi_best.cpython-" in shown
    assert f"What is missing an installer for {free.label} finds no wheel here" in shown
    page = (tmp_path / "thing.html").read_text()
    assert '<p class="word">in the way</p>' in page
    assert "missing.wheel" in page
