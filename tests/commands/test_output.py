"""--json and --markdown: one meaning in every command, and no word of the command is taken for a FILE."""

import argparse
import importlib
import json
import os
import subprocess
import sys

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.commands.options.files import STDOUT, FileOption
from gilscope.toolkit.commands.options.programs import STDERR, ProgramFileOption
from gilscope.toolkit.commands.output import reports
from gilscope.toolkit.commands.output.reports import ReportOutput
from gilscope.toolkit.gil import preload
from gilscope.toolkit.report import DOCUMENT_FORMATS, DocumentFormat
from gilscope.toolkit.report.document import Column, Document, Entry, Heading, Table
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

EXAMPLE = str(ROOT / "results" / "example" / "first-look")
HAVE_BOTH = [["run"], ["report"], ["compare", "A", "B"], ["experiment", "run"], ["experiment", "show", "X"],
             ["evaluate", "."], ["doctor"], ["scale", "app:f"]]


def parse(*words):
    return cli.make_parser((words[0],)).parse_args(words)


@pytest.mark.parametrize("command", HAVE_BOTH, ids=lambda words: " ".join(words[:2]))
def test_both_are_the_same_everywhere(command):
    check_values(command, ("--json", "out.json"), ("--markdown", "out.md"))


@pytest.mark.parametrize("command", [["list"], ["builds"], ["experiment", "list"], ["fleet", "ADDRESS"]],
                         ids=lambda words: words[0])
def test_json_alone_is_the_same(command):
    check_values(command, ("--json", "out.json"))


def check_values(command, *options):
    for option, file in options:
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
    assert "--markdown [FILE] Also write the " in said
    assert "to FILE, which ends in .json; without FILE, write it to standard output in place of the text." in said


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
    assert "leave --json out" in capsys.readouterr().err


def test_earlier_spelling_of_markdown_is_hidden_and_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        parse("report", "--help")
    assert "--format" not in capsys.readouterr().out
    for words in (["--format", "markdown"], ["--format=markdown"]):
        args = parse("report", *words)
        args.run(args)
        assert args.markdown == STDOUT


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_with_a_form_has_the_same_grammar(command):
    for action in every_action(cli.make_parser((command,))):
        for option, title, suffix in (("--json", "JSON", ".json"), ("--markdown", "Markdown", ".md")):
            if option in action.option_strings:
                on_stdout = command not in {"race", "gil"}   # which leave it to the program
                stream = "standard output" if on_stdout else "standard error"
                assert isinstance(action, FileOption if on_stdout else ProgramFileOption)
                assert (action.nargs, action.metavar, action.suffix) == ("?", "FILE", suffix)
                assert action.const == (STDOUT if on_stdout else STDERR)
                ends = f", which ends in {suffix}" if on_stdout else ""
                assert f" as {title} to FILE{ends}; without FILE, write it to {stream} in place of " in action.help


PROGRAM = "print('of the program')\n"


@pytest.mark.parametrize("words", [
    ["list"], ["builds"], ["experiment", "list"], ["report"], ["report", EXAMPLE],
    ["compare", EXAMPLE, "--builds", "3.14,3.14t"],
    ["race", "--stacks"], ["gil", "--once"]], ids=lambda words: " ".join(words).replace(EXAMPLE, "EXAMPLE"))
def test_json_replaces_the_text_and_with_a_file_leaves_it(words, tmp_path):
    program, stream = [], "stdout"
    if words[0] in {"race", "gil"}:
        if words[0] == "gil" and (reason := preload.unavailable()):
            pytest.skip(reason)
        (tmp_path / "prog.py").write_text(PROGRAM)
        program, stream = ["prog.py"], "stderr"

    def call(*option):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "gilscope", *words, *option, *program], cwd=tmp_path, text=True,
            timeout=PATIENCE, capture_output=True, check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"})
        assert done.returncode == 0, done.stderr
        assert (done.stdout == "of the program\n") is bool(program)
        return getattr(done, stream)

    replaced = call("--json")
    assert isinstance(json.loads(replaced), dict | list)
    beside = call("--json", "out.json")
    assert len(json.loads((tmp_path / "out.json").read_text())) == len(json.loads(replaced))
    assert beside
    with pytest.raises(ValueError, match=r"Expecting value|Extra data"):
        json.loads(beside)


def every_action(parser):
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from every_action(below)


@pytest.mark.parametrize(("words", "printed"), [
    ([], "short"), (["--full"], "whole\n====="), (["--markdown"], "# whole"), (["--markdown", "out.md"], "short"),
    (["--json"], "{}"),
])
def test_terminal_shows_the_answer_and_markdown_has_the_whole(words, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    args = parse("run", *words)
    output = ReportOutput(args)
    output.show_answer(
        lambda: Document((Heading("short", 3),)), lambda: Document((Heading("whole", 1),)), full=args.full)
    output.finish(dict)
    assert capsys.readouterr().out.strip() == printed
    if "out.md" in words:
        assert (tmp_path / "out.md").read_text().strip() == "# whole"


CSV = """\
import csv
import io

from gilscope.toolkit.report.document import Table
from gilscope.toolkit.report.wording import entry_text


def render(document):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\\n")
    for table in document.sections:
        if isinstance(table, Table):
            writer.writerow(column.title for column in table.columns)
            writer.writerows(map(entry_text, row) for row in table.rows)
    return out.getvalue().rstrip("\\n")
"""


@pytest.fixture
def csv_renderer(tmp_path, monkeypatch):
    """A form that is one file, in a package of its own, and one line in the list."""
    package = tmp_path / "more_forms"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "csv_.py").write_text(CSV)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("more_forms.csv_")
    form = DocumentFormat(name="csv", suffix=".csv", title="CSV", purpose="For spreadsheets.", document=module.render)
    monkeypatch.setattr(reports, "DOCUMENT_FORMATS", (*DOCUMENT_FORMATS, form))


@pytest.mark.usefixtures("csv_renderer")
@pytest.mark.parametrize("command", HAVE_BOTH, ids=lambda words: " ".join(words[:2]))
def test_every_command_offers_a_new_renderer(command, capsys):
    assert parse(*command, "--csv", "out.csv").csv == "out.csv"
    assert parse(*command, "--csv").csv == STDOUT
    with pytest.raises(SystemExit):
        parse(*command, "--csv", "--json")
    assert "--csv and --json cannot both be on standard output" in capsys.readouterr().err


@pytest.mark.usefixtures("csv_renderer")
def test_command_that_runs_a_program_offers_a_new_renderer(tmp_path):
    assert parse("gil", "--csv", str(tmp_path / "out.csv"), "script.py").csv == str(tmp_path / "out.csv")


@pytest.mark.usefixtures("csv_renderer")
def test_a_new_renderer_writes_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    document = Document((Table(title="", columns=(Column(title="build", key=True), Column(title="cells")),
                               rows=((Entry("3.14"), Entry("4")),)),))
    for words in (["--csv"], ["--csv", "out.csv"]):
        output = ReportOutput(parse("run", *words))
        output.show(document)
        output.finish(dict)
        written = (tmp_path / "out.csv").read_text() if "out.csv" in words else capsys.readouterr().out
        assert written == "build,cells\n3.14,4\n"
