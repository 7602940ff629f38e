"""The mode compare: the base and the head, each in its own environment, measured in turn on this runner."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from findings import ActionFinding, unlinked
from inputs import InputError, event, given
from outcome import ModeOutcome, failed, read_report
from prepare import GILSCOPE, run

from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inputs import ActionInputs

SLOWER, NOT_JUDGED = 1, 3    # exit statuses of `gilscope compare --fail-on`
MEASURED_BY = "pyperf"       # gilscope installs nothing into an environment that it has not made
NO_COMMIT = "0" * 40         # of a push that makes a branch


def compare(inputs: ActionInputs, folder: Path) -> ModeOutcome:
    """Measure the same functions of both sides, and compare."""
    revision = base_revision()
    if status := _first_look("head", inputs.folder, inputs, folder):
        return failed(status, "the head could not be measured: see the log")
    with worktree(inputs.workspace, revision, folder) as base:
        place = base / inputs.place
        if not place.is_dir() or _first_look("base", place, inputs, folder):
            return ModeOutcome(headline="nothing to compare with",
                               unknown="the base could not be measured: see the log")
        report, table = folder / "compare.json", folder / "compare.md"
        status = run(
            [*GILSCOPE, "compare", "base", "head", "--again", "--budget", given("budget") or "10m",
             "--fail-on", given("threshold") or "5%", "--json", str(report), "--markdown", str(table)],
            inputs.folder, **_results(folder))
    document = read_report(report, "gilscope/compare/4")
    gate = document and document["gate"]
    if not document or not gate or status not in {0, SLOWER, NOT_JUDGED}:
        return failed(status, f"gilscope compare ended with status {status} and told nothing")
    detail = f"The base is {unlinked(revision[:12])}.\n\n{table.read_text(encoding='utf-8')}"
    return _judged(document, detail, report)


def _judged(document: dict[str, Any], detail: str, report: Path) -> ModeOutcome:
    gate = document["gate"]
    limit = f"{100 * gate['limit']:g} %"
    unjudged = gate["untold"] + gate["one_sided"] + gate["empty"]
    not_told = f"; {unjudged} not judged" if unjudged else ""
    found = ActionFinding(rule="slower", title=f"slower by more than {limit}",
                          text=f"{counted(gate['past'], 'cell')}: the job summary has the table")
    if not gate["judged"]:
        return ModeOutcome(headline=f"no cell can be judged ({unjudged} too noisy or on one side only)",
                           unknown="more time (`budget`), a larger `threshold` or a quieter runner would tell",
                           detail=detail, report=report)
    return ModeOutcome(
        headline=f"{counted(gate['past'], 'cell')} slower by more than {limit}, {gate['within']} not{not_told}",
        findings=(found,) * bool(gate["past"]), count=gate["past"], detail=detail, report=report)


def base_revision() -> str:
    """Return the revision to compare with: the input, the base of the pull request, or the commit before the push.

    Raises:
        InputError: None of them is there, or the input is no revision.
    """
    told = event()
    pull = told.get("pull_request") or {}
    revision = given("base") or str((pull.get("base") or {}).get("sha") or told.get("before") or "")
    if revision.startswith("-"):
        raise InputError(f"base is {revision!r}: write a commit, a tag or a branch")
    if not revision or revision == NO_COMMIT:
        raise InputError("there is nothing to compare with: this event is no pull request and no push to a branch that "
                         "was there before; name a commit or a branch as `base`")
    return revision


@contextmanager
def worktree(workspace: Path, revision: str, folder: Path) -> Iterator[Path]:
    """Check the base out beside the head, which it shares its repository with, and remove it in the end."""
    _git(workspace, "worktree", "add", "--quiet", "--detach", str(folder / "base"), _commit(workspace, revision))
    try:
        yield folder / "base"
    finally:
        _git(workspace, "worktree", "remove", "--force", str(folder / "base"))


def _commit(workspace: Path, revision: str) -> str:
    """Return the commit of a revision; actions/checkout usually fetches none but that of the head."""
    for name in (revision, f"origin/{revision}"):
        if found := _git(workspace, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False):
            return found
    if _git(workspace, "fetch", "--no-tags", "--depth=1", "origin", revision, check=False) is None:
        raise InputError(f"{revision} is not in this checkout and cannot be fetched: give actions/checkout "
                         "`fetch-depth: 0`, or name another `base`")
    return str(_git(workspace, "rev-parse", "FETCH_HEAD"))


def _git(workspace: Path, *words: str, check: bool = True) -> str | None:
    """Run git and return its output; None if it failed and `check` is False."""
    done = subprocess.run(["git", *words], cwd=workspace, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode and check:
        raise InputError(f"`git {' '.join(words)}` failed: see the log")
    return done.stdout.strip() if done.returncode == 0 else None


def _first_look(side: str, place: Path, inputs: ActionInputs, folder: Path) -> int:
    """Make the environment of a side, and measure one round, which says what `--again` measures; return the status."""
    environment = folder / f"{side}-environment"
    python = environment / "bin" / "python"
    project = any((place / name).exists() for name in ("pyproject.toml", "setup.py"))
    words = inputs.install or (("--editable", ".") if project else ())
    for command in ([sys.executable, "-m", "venv", str(environment)],
                    [str(python), "-m", "pip", "install", "--disable-pip-version-check", MEASURED_BY, *words]):
        if status := run(command, place):
            return status
    return run([*GILSCOPE, "run", "--label", side, "--path", str(place), "--build", f"{side}={python}", "--rounds", "1",
                *inputs.arguments], place, **_results(folder))


def _results(folder: Path) -> dict[str, str]:
    return {"GILSCOPE_RESULTS": str(folder / "results")}
