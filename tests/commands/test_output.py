"""--json and --markdown: one meaning in every command, and no word of the command is taken for a FILE."""

import argparse

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.commands.options.files import STDOUT, FileOption
from gilscope.toolkit.commands.output.reports import Output
from gilscope.toolkit.report.document import Document, Heading

HAVE_BOTH = [["run"], ["report"], ["compare", "A", "B"], ["experiment", "run"], ["experiment", "show", "X"],
             ["evaluate", "."], ["doctor"]]


def parse(*words):
    return cli.make_parser((words[0],)).parse_args(words)


@pytest.mark.parametrize("command", HAVE_BOTH, ids=lambda words: " ".join(words[:2]))
def test_both_are_the_same_everywhere(command):
    for option, file in (("--json", "out.json"), ("--markdown", "out.md")):
        name = option.removeprefix("--")
        assert getattr(parse(*command), name) is None
        assert getattr(parse(*command, option), name) == STDOUT
        assert getattr(parse(*command, option, "-"), name) == STDOUT
        assert getattr(parse(*command, option, file), name) == file
        assert getattr(parse(*command, f"{option}={file}"), name) == file
        assert getattr(parse(*command, option, "/dev/null"), name) == "/dev/null"


@pytest.mark.parametrize("command", HAVE_BOTH, ids=lambda words: " ".join(words[:2]))
def test_help_says_the_same_everywhere(command, capsys):
    with pytest.raises(SystemExit):
        parse(*command, "--help")
    said = " ".join(capsys.readouterr().out.split())
    assert "--markdown [FILE] Write the " in said
    assert "to FILE, which ends in .json (default: to standard output, in place of the text)" in said


def test_word_of_the_command_is_no_file():
    args = parse("compare", "--markdown", "A", "B")
    assert (args.markdown, args.labels) == (STDOUT, ["A", "B"])
    args = parse("run", "--markdown", "x.md", "--json", "primes", "sort")
    assert (args.json, args.markdown, args.workload) == (STDOUT, "x.md", ["primes", "sort"])
    args = parse("run", "--json", "--rounds", "3")
    assert (args.json, args.rounds) == (STDOUT, 3)


@pytest.mark.parametrize(("words", "message"), [
    (["report", "--json=out.txt"], "does not end in .json"),
    (["report", "--json", "out.txt", "label"], "does not end in .json"),
    (["compare", "--markd", "A", "B"], "did you mean --markdown?"),   # an abbreviation takes no word
    (["report", "--json", "nowhere/out.json"], "there is no folder 'nowhere'"),
    (["report", "--json", "--markdown"], "cannot both be on standard output"),
    (["report", "--markdown", "--json", "-"], "cannot both be on standard output"),
])
def test_file_that_cannot_be_meant_is_refused_at_once(words, message, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(*words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_file_that_cannot_be_written_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out.json").mkdir()
    assert cli.main(["report", "--json", "out.json"]) == 2
    assert "cannot write out.json" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["run"], ["experiment", "run", "countdown"]])
def test_dry_run_has_no_report(command, capsys):
    assert cli.main([*command, "--dry-run", "--json"]) == 2
    assert "leave --json and --markdown out" in capsys.readouterr().err


def test_earlier_spelling_of_markdown_is_hidden_and_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        parse("report", "--help")
    assert "--format" not in capsys.readouterr().out
    for words in (["--format", "markdown"], ["--format=markdown"]):
        args = parse("report", *words)
        args.run(args)
        assert args.markdown == STDOUT


def test_every_command_with_a_markdown_option_has_this_one():
    parsers = [cli.make_parser((name,)) for name in cli.COMMANDS]
    found = [action for parser in parsers for action in every_action(parser) if "--markdown" in action.option_strings]
    assert len(found) == len(HAVE_BOTH)
    assert all(isinstance(action, FileOption) for action in found)


def every_action(parser):
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from every_action(below)


@pytest.mark.parametrize(("words", "printed"), [
    ([], "short"), (["--markdown"], "# whole"), (["--markdown", "out.md"], "short"), (["--json"], "{}"),
])
def test_terminal_shows_the_overview_and_markdown_has_the_whole(words, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    output = Output(parse("run", *words))
    output.show(Document((Heading("short", 3),)), Document((Heading("whole", 1),)))
    output.finish(dict)
    assert capsys.readouterr().out.strip() == printed
    if "out.md" in words:
        assert (tmp_path / "out.md").read_text().strip() == "# whole"
