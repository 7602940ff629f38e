"""README's commands are run, each as it stands there, with less effort where it would measure for long."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
LESS = ["--rounds", "1", "--budget", "3s"]   # appended to every `gilscope run`
NOT_HERE = {                                  # command's first words -> who runs it
    "make": ".ci/run",
    "gilscope builds install": ".ci/run, by make pair",
    "tox run": "by hand: it makes environments for minutes",
    "gilscope doctor": "by hand: it installs packages; tests/evaluate has packages of its own",
    "gilscope evaluate": "likewise",
    "pip": "likewise",
}


def console_lines() -> list[str]:
    """Return what stands after "$ " in README's console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def commands() -> list[str]:
    """Return README's commands without comments."""
    return [re.sub(r"\s+#.*", "", line) for line in console_lines()]


# "exits with N" in a command's comment says what it exits with.
EXITS = {re.sub(r"\s+#.*", "", line): int(found[1]) for line in console_lines()
         if (found := re.search(r"#.*\bexits with (\d+)", line))}


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    found = {"gilscope": [sys.executable, "-m", "gilscope"], "python": [sys.executable],
             "pytest": [sys.executable, "-m", "pytest"]}
    return subprocess.run([*found[command[0]], *command[1:]], cwd=folder, capture_output=True, text=True, timeout=900,
                          check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with README's modules in it and the labels that it names."""
    folder = tmp_path_factory.mktemp("readme")
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", README, re.DOTALL):
        (folder / name).write_text(code)
    pair = json.loads(run(["gilscope", "builds", "--json"], folder).stdout)["default_pair"]
    if pair is None:
        pytest.skip("no GIL and free-threaded build of one version at hand")
    done = run(["gilscope", "run", "sort", "--builds", f"{pair['gil']},{pair['free_threaded']}",
                "--models", "threads,subinterpreters", "--rounds", "1", "--label", "LABEL"], folder)
    assert done.returncode == 0, done.stderr
    for label in ("OLD", "NEW"):   # runs of the same; measuring them would take as long again
        copied = shutil.copytree(folder / "results" / "LABEL", folder / "results" / label) / "run.json"
        copied.write_text(copied.read_text().replace('"label": "LABEL"', f'"label": "{label}"'))
    done = run(["gilscope", "experiment", "run", "countdown", "--smoke", "--label", "TODAY", "--builds",
                f"{pair['gil']},{pair['free_threaded']}"], folder)
    assert done.returncode == 0, done.stderr
    # The builds README names may not be those of this machine.
    (folder / "pair").write_text(f"{pair['gil']},{pair['free_threaded']}")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", [each for each in commands() if not each.startswith(tuple(NOT_HERE))])
def test_command_of_readme_works(command, folder):
    pair = (folder / "pair").read_text()
    words = [word.replace("3.13,3.13t", pair) for word in shlex.split(command)]
    words = [pair.split(",")[1] if word == "3.13t" else word for word in words]
    words = [re.sub(r"LABEL/3\.13\.json", f"LABEL/{pair.split(',')[0]}.json", word) for word in words]
    if words[:2] == ["gilscope", "run"] and "--dry-run" not in words:
        words += ["--rounds", "2"] if "--resume" in words else LESS
    if words[:3] == ["gilscope", "experiment", "run"] and "--quick" in words:
        # What all of them do in their smallest size, their own tests see.
        words = ["--smoke" if word == "--quick" else "countdown" if word == "all" else word for word in words]
    done = run(words, folder)
    # A gate may find something, or nothing to judge after one round.
    allowed = {0, 1, 3} if "--fail-on" in words else {EXITS.get(command, 0)}
    assert done.returncode in allowed, done.stdout + done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("start", NOT_HERE)
def test_command_run_elsewhere_is_in_readme(start):
    assert any(each.startswith(start) for each in commands())


def test_readme_has_commands():
    assert len(commands()) > 20
