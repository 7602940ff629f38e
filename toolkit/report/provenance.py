"""Provenance, to cite a run: how each build was compiled, the machine's settings, and how processes measured.

What a system or an earlier gilscope did not record is "not known", never left out: absence would read as "no".
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.report.document import Column, Entry, Lines, Table
from gilscope.toolkit.units import counted, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.model import Build, Machine, Observation, Run
    from gilscope.toolkit.report.document import Section

NOT_KNOWN = "not known"
WITHOUT_PGO = "these builds lack PGO, so released ones are faster: `gilscope builds install --optimize`"
RANDOM = "random"   # PYTHONHASHSEED is not set: every process draws its own
_JIT = {"no": "no JIT", "off": "JIT built in, but off", "on": "JIT on"}


def build_sections(builds: Sequence[Build]) -> tuple[Section, ...]:
    """Return the builds, with everything in which they can differ."""
    titles = ("build", "version", "GIL", "compiler", "options", "executable")
    return (
        Table(
            title="Builds", rows=tuple(tuple(map(Entry, _build_row(build))) for build in builds),
            columns=tuple(Column(title=title, align="left", key=title == "build") for title in titles),
        ),
        Lines("", tuple(_build_line(build) for build in builds)),
    )


def run_sections(run: Run) -> tuple[Section, ...]:
    """Return the builds of a run, its machine's settings, and what its processes measured."""
    lines = [_machine_line(run.machine), *_process_lines(process_values(run))]
    return (*build_sections(run.builds), Lines("Machine and processes", tuple(lines)))


def warnings(run: Run) -> Iterator[str]:
    """Yield warnings about the builds, for a reader who cites a number of the run."""
    if not any(build.pgo for build in run.builds):
        yield WITHOUT_PGO


def process_values(run: Run) -> dict[str, Any]:
    """Return how the processes of a run measured, as JSON has it; None: not known.

    Ranges are over all processes.  Steal and pressure are shares, while values were taken.
    """
    observations = [each for measurement in run.measurements for each in measurement.observations]
    return {
        "values": _range(len(each.wall) for each in observations),
        "loops": _range(each.loops for each in observations),
        "hash_seeds": _hash_seeds(observations),
        "steal": _usual_and_most(each.evidence.steal for each in observations),
        "pressure": _usual_and_most(each.evidence.pressure for each in observations),
    }


def _build_row(build: Build) -> tuple[str, ...]:
    options = ", ".join([
        build.opt_level, "PGO" if build.pgo else "no PGO", "LTO" if build.lto else "no LTO",
        *(["debug"] if build.debug else []),
    ])
    gil = "free-threaded" if build.free_threaded else "GIL"
    return build.label, build.version, gil, build.compiler, options, build.executable


def _build_line(build: Build) -> str:
    """Return the rest of what is known of a build: "3.14: commit 1a2b3c4d; no JIT; ...; pymalloc"."""
    words = {True: "tail-calling interpreter", False: "no tail-calling interpreter",
             None: f"tail-calling interpreter {NOT_KNOWN}"}
    archive = build.revision.partition("sha256:")[2]   # of a tarball, which does not tell the commit
    commit = f"commit {NOT_KNOWN}, source archive {archive}" if archive else f"commit {build.revision or NOT_KNOWN}"
    return f"{build.label}: {commit}; {_JIT.get(build.jit, build.jit)}; {words[build.tail_call]}; {build.allocator}"


def _machine_line(machine: Machine) -> str:
    switch: dict[bool | None, str] = {True: "on", False: "off", None: NOT_KNOWN}
    return (f"hypervisor {machine.hypervisor or NOT_KNOWN}; SMT {switch[machine.smt]}; turbo {switch[machine.turbo]}; "
            f"frequency governor {machine.governor or NOT_KNOWN}; microcode {machine.microcode or NOT_KNOWN}")


def _process_lines(values: Mapping[str, Any]) -> Iterator[str]:
    seeds = values["hash_seeds"]
    if values["values"] is None:
        return
    yield (f"each process: {_range_text(values['values'], 'value')} of {_range_text(values['loops'], 'loop')}; "
           f"hash seed {NOT_KNOWN if seeds is None else ' and '.join(seeds)}")
    yield (f"while values were taken, in the median process and at most: steal {_share_text(values['steal'])}; "
           f"CPU pressure {_share_text(values['pressure'])}")


def _range(counts: Iterable[int]) -> dict[str, int] | None:
    every = list(counts)
    return {"least": min(every), "most": max(every)} if every else None


def _range_text(found: Mapping[str, int], what: str) -> str:
    least, most = found["least"], found["most"]
    return counted(most, what) if least == most else f"{least} to {counted(most, what)}"


def _hash_seeds(observations: Iterable[Observation]) -> list[str] | None:
    seeds = {each.hash_seed for each in observations}
    return sorted(each for each in seeds if each is not None) if seeds and None not in seeds else None


def _usual_and_most(shares: Iterable[float | None]) -> dict[str, float] | None:
    known = [each for each in shares if each is not None]
    return {"median": median(known), "most": max(known)} if known else None


def _share_text(found: Mapping[str, float] | None) -> str:
    return NOT_KNOWN if found is None else f"{percent(found['median'], 1)}, {percent(found['most'], 1)}"
