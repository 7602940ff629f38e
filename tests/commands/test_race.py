"""`gilscope race`: which words are whose, which program is meant, and what is said when there is none."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.commands.options.programs import cut_program
from gilscope.toolkit.commands.race import command as race
from gilscope.toolkit.commands.race import report as race_report
from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.programs import COMMAND, SCRIPT, STDIN
from gilscope.toolkit.programs import target as spec_target
from gilscope.toolkit.race.program.spec import CheckedRunSpec, read
from gilscope.toolkit.race.report import formats
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE
from tests.report.test_as_json import SCHEMAS, closed


@pytest.fixture(scope="module", autouse=True)
def core():
    """Make the C core while there is a compiler."""
    subprocess.run([sys.executable, "-c", "from gilscope.toolkit.race._core import build; build.load()"],
                   check=True, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder, with its bin as the only PATH."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("words", "own", "program"), [
    (["s.py"], [], ["s.py"]),
    (["s.py", "--notes", "-m", "--", "-x"], [], ["s.py", "--notes", "-m", "--", "-x"]),
    (["--notes", "s.py", "--json"], ["--notes"], ["s.py", "--json"]),
    (["--build", "3.14t", "s.py"], ["--build", "3.14t"], ["s.py"]),
    (["--build=3.14t", "s.py"], ["--build=3.14t"], ["s.py"]),
    (["--json", "s.py"], ["--json"], ["s.py"]),                      # never overwrites the program
    (["--json", "out.json", "s.py"], ["--json=out.json"], ["s.py"]),
    (["--json=out", "s.py"], ["--json=out"], ["s.py"]),
    (["--json", "out", "s.py"], ["--json=out"], ["s.py"]),
    (["--json", "/dev/fd/3", "s.py"], ["--json=/dev/fd/3"], ["s.py"]),
    (["--json", "-", "s.py"], ["--json=-"], ["s.py"]),               # refused, not taken for the program
    (["--confirm", "s.py"], ["--confirm"], ["s.py"]),
    (["--confirm", "3", "s.py"], ["--confirm=3"], ["s.py"]),
    (["--include", "a*", "--include", "b*", "-m", "p"], ["--include", "a*", "--include", "b*"], ["-m", "p"]),
    (["-m", "pkg", "--notes"], [], ["-m", "pkg", "--notes"]),
    (["-mpkg", "x"], [], ["-mpkg", "x"]),
    (["--notes", "--", "pytest", "-q", "--", "x"], ["--notes"], ["--", "pytest", "-q", "--", "x"]),
    (["-", "x"], [], ["-", "x"]),
    (["--notes"], ["--notes"], []),
    (["--build"], ["--build"], []),
])
def test_words_are_ours_or_the_programs(words, own, program):
    actions = cli.make_parser(("race",))._subparsers._group_actions[0].choices["race"]._option_string_actions
    assert cut_program(actions, words) == (own, program)


@pytest.mark.parametrize("words", [["s.py"], ["-m", "p", "--json"], ["-"], ["--", "pytest", "-q"]])
def test_options_without_a_parser_are_those_of_argparse(words):
    parsed = vars(cli.make_parser(("race",)).parse_args(["race", *words]))
    short = vars(race.options_without_parser(words))
    assert {name: short[name] for name in parsed if name != "command"} == {
        name: value for name, value in parsed.items() if name != "command"}


@pytest.mark.parametrize("words", [
    [], ["--notes"], ["--notes", "s.py"], ["--json", "s.py"], ["--help"], ["--nonsense", "s.py"]])
def test_what_needs_argparse_goes_there(words):
    assert race.options_without_parser(words) is None


def test_options_have_their_values():
    args = cli.make_parser(("race",)).parse_args(
        ["race", "--confirm", "--json", "--include", "a", "--include", "b", "--confirm-timeout", "2m", "s.py"])
    assert (args.confirm, args.json, args.include, args.confirm_timeout) == (5, "/dev/stderr", ["a", "b"], 120)
    assert args.program == ["s.py"]


@pytest.mark.parametrize(("words", "message"), [
    ([], "no program to run"),
    (["--"], "no command after --"),
    (["nowhere.py"], "no script 'nowhere.py'"),
    (["tool"], "to run the command, write `gilscope race -- tool`"),
    (["empty"], "'empty' is a folder without __main__.py"),
    (["binary"], "is not a Python script but a binary file"),
    (["shell"], "is a script of /bin/sh, not of Python"),
    (["old.pyc"], "is compiled and cannot be checked"),
    (["-m", "no such"], "write the name of a module"),
    (["-m"], "write the name of a module"),
    (["--", "./gone"], "no command './gone'"),
    (["--", "not-a-module"], "is not a Python program"),
    (["--", "python3"], "the interpreter itself"),
    (["--", "stale"], "which no longer exists"),
])
def test_what_cannot_be_run_is_told(words, message, folder):
    executable(folder / "bin" / "tool", f"#!{sys.executable}\n")
    executable(folder / "bin" / "stale", "#!/gone/bin/python\n")
    (folder / "empty").mkdir()
    (folder / "binary").write_bytes(b"\x7fELF\0\0")
    (folder / "shell").write_text("#!/bin/sh\necho\n")
    (folder / "old.pyc").write_bytes(b"\0\0")
    with pytest.raises(ToolkitError) as caught:
        spec_target.find(words)
    assert message in str(caught.value)


@pytest.mark.parametrize(("first_line", "python"), [
    (f"#!{sys.executable}", [sys.executable]),
    (f"#!{sys.executable} -sP", [sys.executable, "-sP"]),
    ("#!/usr/bin/env mypython", ["mypython"]),
    (f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''", [sys.executable]),
    (f"#!/bin/sh\n'''exec' {sys.executable} \"$0\" \"$@\"\n' '''", [sys.executable]),
    ("#!/bin/bash", ["/bin/bash"]),
    ("import this", []),
    ("#!", []),
])
def test_first_line_names_the_interpreter(first_line, python):
    assert spec_target.shebang(f"{first_line}\nx = 1\n".encode()) == python


def test_command_is_the_script_on_path_under_its_own_interpreter(folder):
    script = executable(folder / "bin" / "tool", f"#!{sys.executable} -P\n")
    target = spec_target.find(["--", "tool", "-q", "--", "x"])
    assert (target.kind, target.name, list(target.args)) == (SCRIPT, str(script), ["-q", "--", "x"])
    assert target.python == [sys.executable, "-P"]


def test_command_that_is_not_on_path_is_a_module():
    target = spec_target.find(["--", "pytest", "-q"])
    assert (target.kind, target.name, list(target.args), target.python) == (COMMAND, "pytest", ["-q"], ())


def test_command_of_another_language_is_a_module_of_that_name(folder):
    executable(folder / "bin" / "tool", "#!/bin/sh\n")   # a pyenv shim is one
    assert spec_target.find(["--", "tool"]).kind == COMMAND


def test_path_entry_is_what_python_would_take(folder):
    (folder / "package").mkdir()
    (folder / "package" / "__main__.py").write_text("")
    (folder / "real.py").write_text("")
    (folder / "package" / "link.py").symlink_to(folder / "real.py")
    with zipfile.ZipFile(folder / "app.zip", "w") as archive:
        archive.writestr("__main__.py", "")
    entries = {name: spec_target.find(words).entry() for name, words in {
        "script": ["real.py"], "link": ["package/link.py"], "folder": ["package"], "zip": ["app.zip"],
        "module": ["-m", "real"], "stdin": ["-"]}.items()}
    here = str(folder)
    assert entries == {"script": here, "link": here, "folder": here + "/package", "zip": here + "/app.zip",
                       "module": here, "stdin": ""}


def test_active_environment_is_meant(folder, monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", str(folder / "env"))
    (folder / "env" / "bin").mkdir(parents=True)
    with pytest.raises(ToolkitError, match="has no bin/python; deactivate it"):
        spec_target.default_python()
    python = executable(folder / "env" / "bin" / "python", "#!/bin/sh\n")
    assert spec_target.default_python() == str(python)


@pytest.mark.parametrize("active", ["", sys.prefix])
def test_own_python_is_meant_where_no_other_is_active(active, monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", active)
    assert spec_target.default_python() == sys.executable


@pytest.mark.parametrize("argv", [
    (["race", "--build", "x=/nowhere/python", "s.py"], "no interpreter /nowhere/python"),
    (["race", "--confirm", "-"], "standard input can be read only once"),
    (["race", "--confirm-timeout", "soon", "s.py"], "'soon' is not a duration"),
    (["race", "--confirm=0", "s.py"], "'0' is not a whole number from 1 on"),
    (["race", "--no-such-option", "s.py"], "--no-such-option"),
])
def test_wrong_requests_end_with_2(argv, folder, capsys):
    (folder / "s.py").write_text("")
    try:
        code = cli.main(argv[0])
    except SystemExit as left:
        code = left.code
    assert code == 2
    assert argv[1] in capsys.readouterr().err


def test_broken_settings_are_told_before_anything_runs(folder, capsys):
    (folder / "s.py").write_text("open('ran', 'w')")
    (folder / "pyproject.toml").write_text("[tool.gilscope.race]\nincluded = []\n")
    assert cli.main(["race", "s.py"]) == 2
    assert "has no key 'included'" in capsys.readouterr().err
    assert not (folder / "ran").exists()


def test_spec_travels_in_its_file(folder):
    spec = CheckedRunSpec(kind=STDIN, name="-", args=["a", "é"], python=["/p", "-O"], include=["x*"],
                          options={"root": "/r"}, pauses=[["id", "lost", []]], lifeline=7)
    spec.write(str(folder))
    found = read(str(folder))
    assert {name: getattr(found, name) for name in CheckedRunSpec.__slots__} == {
        name: getattr(spec, name) for name in CheckedRunSpec.__slots__}
    assert found.words() == ["/p", "-O", "-", "a", "é"]


def test_race_command_imports_little():
    heavy = {"argparse", "rich", "pyperf", "shtab", "re", "subprocess", "typing", "dataclasses", "json", "pathlib",
             "tempfile", "threading", "enum"}
    code = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import gilscope.toolkit.cli, gilscope.toolkit.commands.race.command
print(sorted({heavy} & set(sys.modules)))
"""
    shown = subprocess.run([sys.executable, "-ISc", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert shown.stdout.strip() == "[]"


RACY = """\
import threading

total = 0

def add():
    global total
    total += 1

threads = [threading.Thread(target=add) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_json_of_a_program_with_a_race_fits_the_schema(tmp_path):
    (tmp_path / "racy.py").write_text(RACY)
    assert cli.main(["race", "--json=out.json", "racy.py"]) == race.RACE_FOUND
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["races"]
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(found, closed(json.loads((SCHEMAS / "race.json").read_text())))


GITLAB = """\
import json


def render(report):
    return json.dumps([{"description": f"{race.kind} on {race.variable}", "fingerprint": race.ident,
                        "location": {"path": race.second.place.path}} for race in report.races])
"""


def test_a_ci_format_is_one_file_and_one_line(tmp_path, monkeypatch):
    (tmp_path / "more_formats").mkdir()
    (tmp_path / "more_formats" / "gitlab.py").write_text(GITLAB)
    monkeypatch.syspath_prepend(tmp_path)
    form = formats.RaceFormat("gitlab", formats.FILE, "Also write a code quality report for GitLab to FILE.",
                              module="more_formats.gitlab")
    for module in (race, race_report):
        monkeypatch.setattr(module, "RACE_FORMATS", (*formats.RACE_FORMATS, form))
    (tmp_path / "racy.py").write_text(RACY)
    assert race.RaceOptions(["racy.py"]).gitlab is None
    assert cli.main(["race", "--gitlab", "races.json", "racy.py"]) == race.RACE_FOUND
    (found,) = json.loads((tmp_path / "races.json").read_text())
    assert found["description"] == "lost update on global total in racy.py"
    assert found["location"] == {"path": str(tmp_path / "racy.py")}
