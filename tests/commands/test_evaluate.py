"""`gilscope evaluate`: its options, what it prints, and its exit code.  Real evaluations are in tests/evaluate."""

import json

import pytest

from gilscope.toolkit.builds.find import FoundBuilds
from gilscope.toolkit.cli import main
from gilscope.toolkit.commands import evaluate as command
from gilscope.toolkit.site.renderer import CannotRenderError
from gilscope.toolkit.site.single import page
from tests.evaluate.made_up import evaluation
from tests.fakes import make_build


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Have an evaluation at once, and the builds 3.13t to 3.15t; give what was asked for."""
    got = []

    class Evaluator:
        def __init__(self, request, builds, at_hand, say):
            got.append((request, [build.label for build in builds]))

        def go(self):
            return evaluation()

    labels = ("3.13t", "3.14", "3.14t", "3.15t")
    monkeypatch.setattr(command, "Evaluator", Evaluator)
    found = FoundBuilds(builds=tuple(map(make_build, labels)), problems=())
    monkeypatch.setattr(command, "find_builds", lambda *_, **__: found)
    monkeypatch.chdir(tmp_path)
    return got


def test_newest_builds_are_the_default(asked, capsys):
    assert main(["evaluate", "."]) == 1
    ((request, labels),) = asked
    assert labels == ["3.14t", "3.15t"]
    assert (request.budget, request.offline, request.workload) == (600.0, False, None)
    assert "evaluate: myapp" in capsys.readouterr().out


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


def test_page_that_cannot_be_had_is_refused_before_anything_is_looked_at(asked, monkeypatch, capsys):
    def nowhere(_say):
        raise CannotRenderError("no pages without Jinja2")

    monkeypatch.setattr(page, "rendering_python", nowhere)
    assert main(["evaluate", ".", "--html", "myapp.html"]) == 3
    assert not asked
    assert "no pages without Jinja2" in capsys.readouterr().err


def test_markdown(asked, capsys):
    main(["evaluate", ".", "--markdown"])
    assert capsys.readouterr().out.startswith("# evaluate: myapp")


@pytest.mark.parametrize("name", ["lxml", "lxml.etree", "etree.cpython-314t-x86_64-linux-gnu.so"])
def test_explain_shows_all_of_a_package_by_any_of_its_names(asked, capsys, name):
    main(["evaluate", ".", "--explain", name])
    shown = capsys.readouterr().out
    assert "lxml 6.1 on 3.14t: turns the GIL on" in shown
    assert "evaluate: myapp" not in shown


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
    assert main(["evaluate", str(tmp_path / "absent")]) in {2, 3}
    assert "is not a folder" in capsys.readouterr().err
