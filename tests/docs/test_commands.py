"""Every command of README, CONTRIBUTING and docs: parsed all, and run unless its page says "only parsed" and why.

Run with less effort where it would measure for long: README's `gilscope run` for one round, as those that write
a report; the others of docs as a dry run.
"""

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.actionlint import lint
from tests.docs import parsing
from tests.docs.pages import DOCS, INLINE, PAGES, README, ROOT, Command, all_commands, blocks, modules, prose
from tests.patience import PATIENCE
from tests.shared import once

ALL = all_commands()
LESS = ["--rounds", "1", "--budget", "30s"]   # appended to README's `gilscope run`
CI = ROOT / "docs" / "ci.md"


def with_less_effort(command: Command) -> list[str]:
    """Return the command with what makes it short; what it means stays."""
    words = parsing.parts(command.text)[0]   # what it is piped into is not ours
    if words[:2] == ["gilscope", "run"] and "--dry-run" not in words:
        if "--resume" in words:
            return [*words, "--rounds", "2"]
        if "--add-session" in words:
            return [*words, "--rounds", "1"]
        return words + (LESS if command.page == README or {"--json", "--fleet"} & {*words} else ["--dry-run"])
    if words[:3] == ["gilscope", "experiment", "run"] and "--quick" in words:
        # What all of them do in their smallest size, their own tests see.
        return ["--smoke" if word == "--quick" else "countdown" if word == "all" else word for word in words]
    return words


TO_RUN = [each for each in ALL if each.only_parsed is None]
RUN = list({shlex.join(with_less_effort(each)): each for each in TO_RUN}.values())   # several become the same


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    found = {"gilscope": [sys.executable, "-m", "gilscope"], "python": [sys.executable],
             "pytest": [sys.executable, "-m", "pytest"]}
    here = {name: value for name, value in os.environ.items() if name != "GILSCOPE_RESULTS"}
    here["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run([*found[command[0]], *command[1:]], cwd=folder, capture_output=True, text=True,
                          timeout=PATIENCE, check=False, env=here)


def output(*words: str) -> str:
    done = run(["gilscope", *words], ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with the pages' modules in it."""
    folder = tmp_path_factory.mktemp("pages")
    for name, code in modules().items():
        (folder / name).write_text(code)
    (folder / "tests").mkdir()
    pair = json.loads(run(["gilscope", "builds", "--json"], folder).stdout)["default_pair"]
    if pair is None:
        pytest.skip("no GIL and free-threaded build of one version at hand")
    # The builds that the pages name may not be those of this machine.
    (folder / "pair").write_text(f"{pair['gil']},{pair['free_threaded']}")
    return folder


@pytest.fixture(scope="module")
def labels(folder, tmp_path_factory) -> None:
    """Make the runs LABEL, OLD and NEW."""
    pair = (folder / "pair").read_text()
    made = once(tmp_path_factory, "pages-runs", lambda made: make_labels(made, pair))
    shutil.copytree(made / ".gilscope-results", folder / ".gilscope-results", dirs_exist_ok=True)


def make_labels(folder: Path, pair: str) -> None:
    done = run(["gilscope", "run", "sort", "--builds", pair,
                "--models", "threads,subinterpreters", "--rounds", "1", "--label", "LABEL"], folder)
    assert done.returncode == 0, done.stderr
    results = folder / ".gilscope-results"
    for label, factor in (("OLD", 1.01), ("NEW", 1.02)):   # measuring them would take as long again
        copied = shutil.copytree(results / "LABEL", results / label)
        header = copied / "run.json"
        header.write_text(header.read_text().replace('"label": "LABEL"', f'"label": "{label}"'))
        for file in copied.glob("3*.json"):
            suite = json.loads(file.read_text())
            for each in (one for benchmark in suite["benchmarks"] for one in benchmark["runs"] if "values" in one):
                each["values"] = [value * factor for value in each["values"]]
            file.write_text(json.dumps(suite))


@pytest.fixture(scope="module")
def today(folder, tmp_path_factory) -> None:
    """Make the experiments TODAY."""
    def make(made: Path) -> None:
        done = run(["gilscope", "experiment", "run", "countdown", "--smoke", "--label", "TODAY", "--builds",
                    (folder / "pair").read_text()], made)
        assert done.returncode == 0, done.stderr

    made = once(tmp_path_factory, "pages-experiments", make)
    shutil.copytree(made / ".gilscope-results", folder / ".gilscope-results", dirs_exist_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("command", RUN, ids=str)
def test_command_works(command: Command, folder, request):
    if re.search(r"\b(LABEL|OLD|NEW)\b", command.text) or command.text in {"python cells.py", "gilscope report --json"}:
        request.getfixturevalue("labels")
    if "TODAY" in command.text:
        request.getfixturevalue("today")
    pair = (folder / "pair").read_text()
    words = [word.replace("3.13,3.13t", pair) for word in with_less_effort(command)]
    words = [pair.split(",")[1] if word == "3.13t" else word for word in words]
    words = [re.sub(r"LABEL/3\.13\.json", f"LABEL/{pair.split(',')[0]}.json", word) for word in words]
    before = set(folder.iterdir())
    done = run(words, folder)
    # A gate may find something, or nothing to judge after one round.
    allowed = {0, 1, 3} if "--fail-on" in words else {command.exits}
    assert done.returncode in allowed, done.stdout + done.stderr
    assert done.stdout.strip() or done.stderr.strip() or set(folder.iterdir()) - before, "it said and wrote nothing"


@pytest.mark.slow
def test_race_is_reported_as_the_page_shows_it(folder):
    page = ROOT / "docs" / "race-checking.md"
    shown = next(block for block in (*blocks(page, "console"), *blocks(page, "text")) if "DATA RACE" in block)
    report = run(["gilscope", "race", "bank.py"], folder).stderr
    # Which of the two threads comes first differs from run to run.
    for start in ("DATA RACE", "  1 of 2 places", "  Repair:"):
        (line,) = [each for each in shown.splitlines() if each.startswith(start)]
        assert line in report.splitlines()


SHOWN = [(page, label) for page in DOCS
         for label in re.findall(r"`gilscope report results/example/(\S+)` prints it again", page.read_text())]


@pytest.mark.parametrize(("page", "label"), SHOWN, ids=lambda value: getattr(value, "name", value))
def test_report_on_a_page_is_that_of_the_run_it_names(page, label):
    short, whole = (output("report", f"results/example/{label}", *full) for full in ((), ("--full",)))
    first, *others = [block.strip("\n") for block in blocks(page, "text")]
    assert short.strip().startswith(first)
    assert page.name != "reading-a-table.md" or others[0] in whole


@pytest.mark.parametrize(("command", "label"), [
    ("$ gilscope run --quick", "first-look"), ("$ gilscope run mywork:", "own-function"),
])
def test_output_in_readme_is_that_of_a_kept_run(command, label):
    (shown,) = [block for block in blocks(README, "console") if block.startswith(command)]
    printed = output("report", f"results/example/{label}").splitlines()
    assert set(shown.splitlines()[1:]) - {"..."} <= set(printed)


def test_answer_on_the_page_of_migrations_is_the_golden_one():
    shown = next(block for block in blocks(ROOT / "docs" / "migration.md", "text") if block.startswith("evaluate: "))
    assert (ROOT / "tests" / "golden" / "evaluate-answer.txt").read_text().strip() == shown.strip()


@pytest.mark.slow
def test_watched_block_tells_what_the_page_says(folder):
    page = ROOT / "docs" / "race-checking.md"
    (shown,) = [block for block in blocks(page, "console") if "$ python watching.py" in block]
    assert run(["python", "watching.py"], folder).stdout.splitlines() == shown.splitlines()[1:]


@pytest.mark.parametrize("command", ALL, ids=str)
def test_command_can_be_parsed(command: Command):
    parsing.check(command.text)


SPANS = sorted({span for page in PAGES for span in INLINE.findall(prose(page)) if span.startswith("gilscope ")})


@pytest.mark.parametrize("span", SPANS)
def test_command_in_running_text_has_the_options_it_names(span):
    words = span.split()[1:]
    options = parsing.options_of(words)
    for word in words:
        assert not word.startswith("--") or word == "--" or word in options, f"{span}: no option {word}"


BENCHMARKS = {file.stem for file in (ROOT / "tests" / "benchmarks").glob("*.py")}
MODULES = sorted({span for page in PAGES for span in INLINE.findall(prose(page))
                  if span.startswith("python -m tests.")}
                 | {f"python -m tests.benchmarks.{span}"   # as the page of numbers has them
                    for span in INLINE.findall(prose(ROOT / "docs" / "numbers.md")) if span.split()[0] in BENCHMARKS})


@pytest.mark.parametrize("span", MODULES)
def test_benchmark_in_running_text_is_there_with_its_options(span):
    words = span.split()
    file = ROOT / (words[2].replace(".", "/") + ".py")
    source = file.read_text() + (file.parent / "common.py").read_text()
    handed_on = parsing.options_of(["run"]) if "parse_known_args" in source else ()   # what it does not know itself
    for word in words[3:]:
        assert not word.startswith("--") or f'"{word}"' in source or word in handed_on, f"{span}: no option {word}"


# What the action makes of the arguments of each mode.
OF_MODES = {"race": "gilscope race", "guard": "pytest --gil=off", "doctor": "gilscope doctor",
            "dist": "gilscope doctor", "compare": "gilscope run"}


def test_examples_for_ci_have_commands_that_can_be_parsed():
    (workflow,) = blocks(CI, "yaml")
    uses = re.findall(r"^ +mode: (\w+)\n(?:(?! +- ).*\n)*? +arguments: (.+)$", workflow, re.MULTILINE)
    assert [mode for mode, _ in uses] == [*OF_MODES]
    lines = [f"{OF_MODES[mode]} {arguments}" for mode, arguments in uses]
    (tox,) = blocks(CI, "ini")
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(tox)
    lines += [re.sub(r"\{posargs:(\w+)\}", r"\1", section["commands"]) for name, section in parser.items()
              if "commands" in section]
    assert len(lines) >= 7
    for line in lines:
        parsing.check(line)


@pytest.mark.slow
@pytest.mark.network   # the first time
def test_workflow_example_is_clean_for_actionlint():
    (workflow,) = blocks(CI, "yaml")
    assert lint(workflow) == ""
