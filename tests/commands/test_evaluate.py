"""`gilscope evaluate`: its options, what it prints, and its exit code.  Real evaluations are in tests/evaluate."""

import json
import shlex
from pathlib import Path

import pytest

from gilscope.toolkit.builds.find import FoundBuilds
from gilscope.toolkit.cli import main, make_parser
from gilscope.toolkit.commands import evaluate as command
from gilscope.toolkit.evaluate.request import WAIT_QUIET, EvaluationRequest
from tests.evaluate.made_up import evaluation
from tests.fakes import make_build


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Have an evaluation at once, and the builds 3.13t to 3.15t; give what was asked for."""
    got = []

    class Evaluator:
        def __init__(self, request, builds, at_hand, say, *, open_cache):
            got.append((request, [build.label for build in builds]))

        def run(self):
            return evaluation()

        def explain(self, _name):
            return evaluation()

    labels = ("3.13t", "3.14", "3.14t", "3.15t")
    monkeypatch.setattr(command, "Evaluator", Evaluator)
    found = FoundBuilds(builds=tuple(map(make_build, labels)), problems=())
    monkeypatch.setattr(command, "find_builds", lambda *_, **__: found)
    (tmp_path / "pyproject.toml").write_text(   # the command looks for a project first
        "[project]\nname = 'myapp'\n[project.optional-dependencies]\nexcel = []\nxml = []\n")
    (tmp_path / "uv.lock").touch()
    monkeypatch.chdir(tmp_path)
    return got


def test_newest_builds_are_the_default(asked, capsys):
    assert main(["evaluate", "."]) == 1
    ((request, labels),) = asked
    assert labels == ["3.14t", "3.15t"]
    assert (request.budget, request.offline, request.workload) == (600.0, False, None)
    assert "evaluate: myapp" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "everything"), [([], False), (["--full"], True)])
def test_answer_is_printed_unless_everything_is_asked_for_and_files_have_everything(asked, capsys, words, everything):
    main(["evaluate", ".", "--markdown", "report.md", *words])
    assert ("Not looked at" in capsys.readouterr().out) is everything
    assert "Not looked at" in Path("report.md").read_text()


@pytest.mark.parametrize(("words", "made"), [([], ["answer_document"]), (["--full"], ["document"]), (["--json"], [])])
def test_report_is_made_only_if_it_is_shown(asked, monkeypatch, words, made):
    called = []
    for name in ("answer_document", "document"):
        usual = getattr(command.screen, name)
        monkeypatch.setattr(command.screen, name,
                            lambda found, name=name, usual=usual: called.append(name) or usual(found))
    main(["evaluate", ".", *words])
    assert called == made


@pytest.mark.parametrize(("at_hand", "taken", "said"), [
    ({"3.13t": "3.13.9", "3.14t": "3.14.7+", "3.15t": "3.15.0rc1"}, ["3.13t", "3.14t"], ""),
    ({"3.14": "3.14.7", "3.15t": "3.15.0rc1"}, ["3.15t"],
     "no final release without a GIL is at hand: 3.15t is 3.15.0rc1\n"),
])
def test_candidate_is_taken_only_if_there_is_nothing_else(asked, monkeypatch, capsys, at_hand, taken, said):
    builds = tuple(make_build(label, version=version, source="PATH") for label, version in at_hand.items())
    monkeypatch.setattr(command, "find_builds", lambda *_, **__: FoundBuilds(builds=builds, problems=()))
    main(["evaluate", "."])
    assert [labels for _, labels in asked] == [taken]
    assert capsys.readouterr().err == said


def test_options_reach_the_evaluation(asked):
    main(["evaluate", ".", "--builds", "3.13t", "--tests", "pytest -q", "--workload", "app:f", "--budget", "90s",
          "--offline", "--build-sdists", "--lock", "uv.lock", "--threads", "4", "--extra", "excel", "--extra", "xml"])
    ((request, labels),) = asked
    assert labels == ["3.13t"]
    assert (request.tests, request.workload, request.budget) == ("pytest -q", "app:f", 90.0)
    assert (request.offline, request.sdists, str(request.lock)) == (True, True, "uv.lock")
    assert (request.threads, request.extras) == (4, ("excel", "xml"))


def test_json(asked, capsys):
    assert main(["evaluate", ".", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["tool"] == "gilscope evaluate"


def test_html(asked, tmp_path, capsys):
    assert main(["evaluate", ".", "--html", "myapp.html"]) == 1
    page = (tmp_path / "myapp.html").read_text()
    assert '<p class="word">BLOCKED</p>' in page
    assert "What turns the GIL on" in page
    assert "evaluate: myapp" in capsys.readouterr().out, "and the text is printed as ever"
    main(["evaluate", ".", "--explain", "lxml", "--html", "lxml.html"])
    assert '<p class="word">' not in (tmp_path / "lxml.html").read_text()


def test_markdown(asked, capsys):
    main(["evaluate", ".", "--markdown"])
    assert capsys.readouterr().out.startswith("# evaluate: myapp")


@pytest.mark.parametrize("name", ["lxml", "lxml.etree", "etree.cpython-314t-x86_64-linux-gnu.so"])
def test_explain_shows_all_of_a_package_by_any_of_its_names(asked, capsys, name):
    main(["evaluate", ".", "--explain", name])
    shown = capsys.readouterr().out
    assert "lxml 6.1 on 3.14t: turns the GIL on" in shown
    assert "evaluate: myapp" not in shown


def test_explain_runs_nothing_but_packages(asked, monkeypatch, capsys):
    monkeypatch.delattr(command.Evaluator, "run")
    main(["evaluate", ".", "--explain", "lxml"])
    assert "lxml 6.1 on 3.14t" in capsys.readouterr().out


def test_plan_is_written_and_says_what_moved_the_next_time(asked, capsys, tmp_path):
    main(["evaluate", ".", "--plan"])
    shown = capsys.readouterr().out
    assert "Plan (in free-threading.md)" in shown
    assert "[ ] dependencies are ready: lxml 6.1 turns the GIL on" in shown
    plan = tmp_path / "free-threading.md"
    assert "- [ ] **dependencies are ready** (open): lxml 6.1 turns the GIL on" in plan.read_text()
    plan.write_text(plan.read_text().replace('"dependencies": "open"', '"dependencies": "done"'))
    main(["evaluate", ".", "--plan", "free-threading.md"])
    assert "dependencies are ready: done -> open" in capsys.readouterr().out
    assert "What moved" in plan.read_text()


def test_plan_before_the_path_is_no_name_of_a_file(asked, tmp_path):
    assert main(["evaluate", "--plan", "."]) == 1
    assert (tmp_path / "free-threading.md").is_file()


@pytest.mark.parametrize("name", ["plan.txt", "absent/plan.md"])
def test_plan_that_is_no_markdown_or_has_no_folder_is_refused_at_once(asked, capsys, name):
    with pytest.raises(SystemExit) as ending:
        main(["evaluate", ".", "--plan", name])
    assert ending.value.code == 2
    assert asked == []


def test_plan_that_cannot_be_written_is_said(asked, capsys, tmp_path):
    (tmp_path / "taken.md").mkdir()
    assert main(["evaluate", ".", "--plan", "taken.md"]) == 2
    assert "cannot write taken.md" in capsys.readouterr().err


def test_ci_is_written_once(asked, capsys, tmp_path):
    place = tmp_path / ".github/workflows/free-threading.yml"
    main(["evaluate", ".", "--ci", "github"])
    assert 'python: ["3.14t", "3.15t"]' in place.read_text()
    place.write_text("mine")
    assert main(["evaluate", ".", "--ci", "github"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert place.read_text() == "mine"
    assert len(asked) == 1   # nothing was measured for it


def test_figure_stands_behind_the_answer_in_markdown(asked, monkeypatch, capsys, tmp_path):
    drawn = []
    monkeypatch.setattr(command, "python_that_draws", lambda _: "python")
    monkeypatch.setattr(command, "draw_figures", lambda _, figures, folder: drawn.extend(figures) or [
        folder / f"{figure.name}.svg" for figure in figures])
    (tmp_path / "docs").mkdir()
    main(["evaluate", ".", "--figure", "images", "--markdown", "docs/report.md"])
    text = (tmp_path / "docs" / "report.md").read_text()
    assert "![myapp without a GIL](../images/free-threading.svg)" in text
    assert text.index("Should we move?") < text.index("![myapp") < text.index("| target")
    assert [bar for panel in drawn[0].panels for bar in panel.categories] == [
        "3.14t, 4 threads", "processes 3.14", "3.14t, CPU", "3.14t, memory"]
    assert "free-threading.svg" not in capsys.readouterr().out


def test_figure_that_cannot_be_drawn_costs_nothing_else(asked, monkeypatch, capsys):
    monkeypatch.setattr(command, "python_that_draws", lambda _: None)
    assert main(["evaluate", ".", "--figure", "."]) == 1
    assert "Should we move?" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "seconds"), [([], 0.0), (["--wait-quiet"], 1800.0)])
def test_waiting_for_a_quiet_machine(asked, words, seconds):
    main(["evaluate", ".", *words])
    assert asked[0][0].wait_quiet == seconds


def test_explain_of_what_is_not_there_is_a_mistake(asked, capsys):
    assert main(["evaluate", ".", "--explain", "absent"]) == 2
    assert "no package, extension module or file 'absent'" in capsys.readouterr().err


def test_build_that_is_not_there_is_a_mistake(asked, capsys):
    assert main(["evaluate", ".", "--builds", "3.99t"]) == 2
    assert "3.99t" in capsys.readouterr().err


def test_build_with_a_gil_is_no_target(asked, capsys):
    assert main(["evaluate", ".", "--builds", "3.14"]) == 2
    assert "has a GIL" in capsys.readouterr().err


def test_without_a_free_threaded_build_it_says_how_to_get_one(asked, monkeypatch, capsys):
    monkeypatch.setattr(command, "find_builds", lambda *_, **__: FoundBuilds(builds=(make_build("3.14"),), problems=()))
    assert main(["evaluate", "."]) != 0
    assert "gilscope builds install 3.14t" in capsys.readouterr().err


@pytest.mark.parametrize("words", [
    [], [".", "--budget", "soon"], [".", "--threads", "1"], [".", "--json", "--markdown"]])
def test_mistakes_on_the_command_line(words, capsys):
    with pytest.raises(SystemExit) as ending:
        main(["evaluate", *words])
    assert ending.value.code == 2
    assert "`gilscope evaluate --help` shows the options" in capsys.readouterr().err


def test_folder_that_is_none(capsys, tmp_path):
    assert main(["evaluate", str(tmp_path / "absent")]) == 2
    assert "is not a folder" in capsys.readouterr().err


@pytest.mark.parametrize("options", [
    {"hammer": 20.0, "threads": 8, "budget": 90.0},
    {"workload": "load:load", "payloads": "load:orders", "calls": 60, "wait_quiet": WAIT_QUIET},
    {"tests": "pytest -x 'a b'", "offline": True, "sdists": True, "extras": ("web", "db"), "labels": "3.14t",
     "lock": Path("pylock.toml"), "added": ("it=/my py/python",)},
])
def test_command_of_a_request_is_one_that_makes_the_same_request(options):
    request = EvaluationRequest(path=Path("shop"), **options)
    words = shlex.split(request.command())
    assert words[:2] == ["gilscope", "evaluate"]
    assert command.request_of(make_parser().parse_args(words[1:])) == request
