"""How many programs of a folder get the right verdict: recall, false alarms, crashes, changed output, stability."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.race.whole.corpus_runs import has_numpy, run_checked, run_plain
from tests.race.whole.expectations import disagreements, read_head

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.race.whole.corpus_runs import Checked, Plain
    from tests.race.whole.expectations import Head

AT_ONCE = 2
TIMEOUT = 30.0         # seconds; a program takes a fraction of one


@dataclass(slots=True)
class Verdict:
    """One program: what it is, and what came of its runs."""

    program: Path
    head: Head
    plain: Plain
    runs: list[Checked] = field(default_factory=list)

    @property
    def alarmed(self) -> bool:
        """Whether the first run reported anything."""
        return bool(self.runs[0].races)

    @property
    def broken(self) -> bool:
        """Whether a run crashed, hung or printed something else."""
        return any(run.problem or not run.same_as(self.plain) for run in self.runs)

    @property
    def stable(self) -> bool:
        """Whether all runs came to the same verdict, by kinds and base of the variables."""
        return len({bool(run.races) for run in self.runs}) == 1

    @property
    def same_reports(self) -> bool:
        """Whether all runs reported the same places."""
        return len({frozenset((found.kind, found.places) for found in run.races) for run in self.runs}) == 1

    def differing(self) -> list[str]:
        """Return where the first run differs from the head."""
        return list(disagreements(self.head, self.runs[0].races, self.runs[0].notes))


def judge_folder(python: str, folder: Path, *, runs: int, only: tuple[str, ...] = ()) -> None:
    """Run all programs with a head below `folder` and print the outcomes."""
    heads = [(program, head) for program in sorted(folder.rglob("*.py"))
             if (not only or any(name in str(program) for name in only)) and (head := read_head(program)) is not None]

    if not has_numpy(python):
        without = [(program, head) for program, head in heads if "import numpy" not in program.read_text()]
        print(f"no NumPy in this build: {len(heads) - len(without)} programs left out")
        heads = without

    def judge(case: tuple[Path, Head]) -> Verdict:
        program, head = case
        verdict = Verdict(program, head, run_plain(python, program))
        verdict.runs.extend(run_checked(python, program, TIMEOUT) for _ in range(runs))
        return verdict

    with ThreadPoolExecutor(AT_ONCE) as executor:
        verdicts = list(executor.map(judge, heads))
    print_wrong(verdicts, folder)
    print_summary(verdicts, runs)


def print_wrong(verdicts: Iterable[Verdict], folder: Path) -> None:
    """Print each program that came out otherwise than it should."""
    for verdict in verdicts:
        name = verdict.program.relative_to(folder)
        for sentence in verdict.differing():
            print(f"{name}: {sentence}")
        for run in verdict.runs:
            if run.problem or not run.same_as(verdict.plain):
                last = run.stderr.strip().rpartition("\n")[2]
                print(f"{name}: {run.problem or f'changed: exit code {run.code}, printed {run.stdout!r}'} {last}")
                break


def print_summary(verdicts: list[Verdict], runs: int) -> None:
    """Print the numbers."""
    racy = [each for each in verdicts if not each.head.clean]
    clean = [each for each in verdicts if each.head.clean]
    reports = [found for each in verdicts for run in each.runs for found in run.races]
    for name, part, whole in (
        ("racy programs with a report", sum(each.alarmed for each in racy), len(racy)),
        ("  with all that was expected", sum(not each.differing() for each in racy), len(racy)),
        ("race-free programs with a false alarm", sum(each.alarmed for each in clean), len(clean)),
        ("crashed, hung or changed", sum(each.broken for each in verdicts), len(verdicts)),
        ("reports with variable and both stacks", sum(found.complete for found in reports), len(reports)),
        (f"same verdict in {runs} runs", sum(each.stable for each in verdicts), len(verdicts)),
        (f"same reports in {runs} runs", sum(each.same_reports for each in verdicts), len(verdicts)),
    ):
        print(f"{name:40} {part:4} of {whole:4}" + (f" = {part / whole:.1%}" if whole else ""))
