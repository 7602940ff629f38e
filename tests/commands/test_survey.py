"""`gilscope doctor --list`: what is asked, written and returned; packages are asked by a made-up function."""

import json
import threading

import pytest

from gilscope.toolkit.cli import main
from gilscope.toolkit.commands.doctor import command, survey
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.evaluate.survey.answer import PackageAnswer, from_doctor
from tests.evaluate.survey.told import package, told
from tests.fakes import make_build
from tests.patience import PATIENCE

pytestmark = pytest.mark.newest


class Asked:
    """Answer for every package; keep which were asked."""

    def __init__(self):
        self.packages = []
        self.questions = set()
        self.blocking = set()
        self.failing = set()

    def __call__(self, name, question):
        self.packages.append(name)
        self.questions.add(question)
        if name in self.failing:
            return PackageAnswer(package=name, problem="the package index does not answer")
        status = {"status": "turns-gil-on", "blocks": True} if name in self.blocking else {}
        return from_doctor(name, {"builds": [told(package(name, **status))]}, 1.0)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    made = Asked()
    monkeypatch.setattr(survey, "ask", made)
    monkeypatch.setattr(survey, "identity", lambda build: build.label)
    monkeypatch.setattr(command, "find_builds", lambda *_, **__: None)
    monkeypatch.setattr(command, "_targets", lambda *_: (make_build("3.14t"),))
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "packages.txt").write_text("one\ntwo  # the second\nthree\n")
    return made


def test_each_package_is_asked_by_itself(asked, capsys):
    assert main(["doctor", "--list", "packages.txt", "--timeout", "30s", "--interpreters"]) == 0
    assert sorted(asked.packages) == ["one", "three", "two"]
    (question,) = asked.questions
    assert question.words("one") == [
        "doctor", "--builds", "3.14t", "--timeout", "30s", "--interpreters", "--json=-", "--", "one"]
    shown = capsys.readouterr()
    assert "nothing stands in the way of 3 of 3 packages" in " ".join(shown.out.split())
    assert shown.err.splitlines()[-1].startswith("3 of 3: ")


def test_anything_in_the_way_is_exit_1(asked):
    asked.blocking = {"two"}
    assert main(["doctor", "--list", "packages.txt"]) == 1


def test_asking_again_takes_what_was_answered_and_asks_for_the_rest(asked, tmp_path, capsys):
    asked.failing = {"two"}
    assert main(["doctor", "--list", "packages.txt", "--lines", "first.jsonl"]) == 3
    assert "two: the package index does not answer" in capsys.readouterr().out
    asked.packages, asked.failing = [], set()
    assert main(["doctor", "--list", "packages.txt", "--lines", "second.jsonl"]) == 0
    assert asked.packages == ["two"]
    assert "using 2 answers from the last day" in capsys.readouterr().err
    lines = [json.loads(line) for line in (tmp_path / "second.jsonl").read_text().splitlines()]
    assert sorted((each["package"], each["blocked"]) for each in lines) == [
        ("one", False), ("three", False), ("two", False)]
    assert main(["doctor", "--list", "packages.txt", "--timeout", "9s"]) == 0
    assert len(asked.packages) == 4   # asked in another way


def test_lines_come_as_packages_are_answered(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(survey, "usable_cores", lambda: 2)   # one after the other
    seen = []

    def ask(name, question):
        seen.append((tmp_path / "now.jsonl").read_text().count("\n") if name == "three" else None)
        if name == "two":
            written.wait(PATIENCE)
        return asked(name, question)

    written = threading.Event()
    monkeypatch.setattr(survey, "ask", ask)
    monkeypatch.setattr(survey, "print_stderr", lambda _: written.set())   # after the line of the first
    assert main(["doctor", "--list", "packages.txt", "--lines", "now.jsonl"]) == 0
    assert seen[-1] >= 1


def test_lines_take_the_place_of_the_text_on_standard_output(asked, tmp_path, capsys):
    assert main(["doctor", "--list", "packages.txt", "--lines", "-", "--json", "all.json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted(each["package"] for each in lines) == ["one", "three", "two"]
    assert json.loads((tmp_path / "all.json").read_text())["counts"] == {"3.14t": {"ready": 3}}


def test_ctrl_c_keeps_what_was_answered(asked, monkeypatch, capsys):
    def ask(name, question):
        if name == "three":
            raise KeyboardInterrupt
        return asked(name, question)

    monkeypatch.setattr(survey, "usable_cores", lambda: 2)
    monkeypatch.setattr(survey, "ask", ask)
    assert main(["doctor", "--list", "packages.txt"]) == 130
    assert "run the same command again to continue" in capsys.readouterr().err
    monkeypatch.setattr(survey, "ask", asked)
    asked.packages = []
    assert main(["doctor", "--list", "packages.txt"]) == 0
    assert asked.packages == ["three"]


def test_ctrl_c_while_an_answer_is_told_keeps_it_and_ends_the_others(asked, monkeypatch, capsys):
    def interrupted(text):
        if text.startswith("1 of 3"):
            raise KeyboardInterrupt
        say(text)

    say = survey.print_stderr
    monkeypatch.setattr(survey, "usable_cores", lambda: 2)
    monkeypatch.setattr(survey, "print_stderr", interrupted)
    assert main(["doctor", "--list", "packages.txt"]) == 130
    assert "run the same command again to continue" in capsys.readouterr().err
    monkeypatch.setattr(survey, "print_stderr", say)
    assert main(["doctor", "--list", "packages.txt"]) == 0
    assert "from the last day; --clear-cache" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "told"), [
    (["lxml"], "PACKAGE cannot be used with --list"),
    (["--offline", "--explain", "x"], "--explain, --offline cannot be used with --list"),
    (["--lines", "-", "--json"], "cannot both be on standard output"),
    (["--lines", "answers.txt"], "does not end in .jsonl"),
    (["--lines", "nowhere/answers.jsonl"], "there is no folder 'nowhere'"),
])
def test_what_does_not_go_with_a_list_is_refused(asked, capsys, words, told):
    try:
        code = main(["doctor", "--list", "packages.txt", *words])
    except SystemExit as left:
        code = left.code
    assert code == 2
    assert told in capsys.readouterr().err
    assert not asked.packages


def test_lines_without_a_list_are_refused(asked, capsys):
    assert main(["doctor", "--lines", "-"]) == 2
    assert "name it with --list" in capsys.readouterr().err


def test_clear_cache_forgets_answers(asked, monkeypatch):
    assert main(["doctor", "--list", "packages.txt"]) == 0
    assert main(["doctor", "--clear-cache"]) == 0
    assert main(["doctor", "--list", "packages.txt"]) == 0
    assert len(asked.packages) == 6


def test_no_build_is_an_error_before_anything_is_asked(asked, monkeypatch):
    def none(*_):
        raise BuildError("no free-threaded build found")

    monkeypatch.setattr(command, "_targets", none)
    assert main(["doctor", "--list", "packages.txt"]) == 3
    assert not asked.packages
