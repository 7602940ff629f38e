"""Made-up values for the tests of everything above the measuring: no process is started here."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gilscope.toolkit.model import (
    Build,
    Cell,
    Evidence,
    Failure,
    Machine,
    Measurement,
    Note,
    Observation,
    Phase,
    Run,
    RunSession,
    Skip,
    SkipKind,
)

MIB = 1024 * 1024
QUIET = Evidence(others_cores=0.02, steal=0.0, pressure=0.01, load=0.4)
BUSY = Evidence(others_cores=1.7, steal=0.0, pressure=0.8, load=9.0)


def make_build(label: str, **changes: object) -> Build:
    """Return a build whose version and GIL follow from its label: "3.14t"."""
    build = Build(
        label=label, version=label.rstrip("t") + ".0", executable=f"/opt/{label}/bin/python",
        base_executable=f"/opt/{label}/bin/python", free_threaded=label.endswith("t"), source="explicit", debug=False,
        jit="no", compiler="GCC 12.2.0", opt_level="-O3", pgo=False, lto=False,
        allocator="mimalloc" if label.endswith("t") else "pymalloc", revision="", config_args="",
    )
    return replace(build, **changes)


MACHINE = Machine(
    cpu_model="Made-up CPU", cores=8, memory_bytes=16 * 1024 * MIB, system="Linux-6.1.0-x86_64", governor=None,
    hostname="fake",
)


def usl_seconds(alone: float, workers: int, sigma: float, kappa: float) -> float:
    """Return the time of `workers` workers by the Universal Scalability Law, `alone` being that of one."""
    return alone * (1 + sigma * (workers - 1) + kappa * workers * (workers - 1)) / workers


@dataclass
class RunMaker:
    """Collects cells with known true times on a machine that drifts by the same factor for all arms of a round."""

    rounds: int = 8
    seed: int = 1
    noise: float = 0.004     # standard deviation of the log of one process's own time
    measurements: list[Measurement] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)
        self.machine = [1 + self.draw.random() / 10 for _ in range(self.rounds)]   # up to 10 % slower, for all arms

    def measure(self, cell: Cell, wall: float | list[float], cpu: float | None = None, *, starved: int = 0,
                pss: float = 25, gil: bool | None = None, culprit: str | None = None, tasks: int | None = None,
                **metrics: float | str | list[float]) -> None:
        """Add the cell; its first `starved` rounds did not get their cores.

        `pss` is in MiB; `metrics` are exact, and so is a list with a value for each round, of `wall` or of a metric.
        """
        observations = []
        for number, shared in enumerate(self.machine):
            own, cpu_own = (2.718281828 ** self.draw.gauss(0, sigma) for sigma in (self.noise, self.noise / 4))
            took = wall[number] if isinstance(wall, list) else wall * shared * own
            used = took if cpu is None and isinstance(wall, list) else (wall if cpu is None else cpu) * cpu_own
            told = {name: each[number] if isinstance(each, list) else each for name, each in metrics.items()}
            observations.append(Observation(
                round=number, wall=(took,) * 3, cpu=(used,) * 3, loops=1,
                evidence=BUSY if number < starved else QUIET, starved=number < starved,
                gil_end=True if culprit else gil, gil_culprit=culprit, tasks=tasks, metrics=tuple(sorted({
                    **told, "rss_bytes": int((pss + 9) * MIB), "pss_bytes": int(pss * MIB)}.items())),
            ))
        self.measurements.append(Measurement(cell=cell, observations=tuple(observations)))

    def twin(self, cell: Cell, wall: float | list[float], cpu: float | None = None) -> None:
        """Add the cell's A/A arm."""
        self.measure(replace(cell, twin=True), wall, cpu)

    def skip(self, cell: Cell, reason: str, kind: SkipKind = SkipKind.CANNOT_RUN) -> None:
        """Add a cell that was not run."""
        self.skips.append(Skip(cell=cell, reason=reason, kind=kind))

    def fail(self, cell: Cell, kind: str, reason: str) -> None:
        """Add a cell that broke in round 0."""
        self.failures.append(Failure(cell=cell, kind=kind, reason=reason, output="last words\n", round=0))

    def run(self, builds: tuple[str, ...], **changes: object) -> Run:
        """Return the run."""
        run = Run(
            label="example", started="2026-11-21T12:00:00+00:00", builds=tuple(map(make_build, builds)),
            machine=MACHINE, seed=self.seed, rounds_planned=self.rounds, rounds_done=self.rounds, stopped="rounds",
            baseline="serial", measurements=tuple(self.measurements), skips=tuple(self.skips),
            failures=tuple(self.failures),
        )
        return replace(run, **changes)


def make_run(*, rounds: int = 8, seed: int = 1, twins: bool = True) -> Run:
    """Return a made-up run: two workloads, three builds, and every kind of cell that has no number.

    `primes` (steady): up to 8 workers; subinterpreters follow the USL with sigma 0.03 and kappa 0.002, threads gain
    nothing with the GIL, free-threaded has sigma 0.05.  3.14t takes 4 % more CPU than 3.14, that 10 % less than 3.13.
    `sleep` (startup): one and two workers, asyncio only in one.
    """
    maker = RunMaker(rounds=rounds, seed=seed)
    for build, alone in (("3.13", 0.44), ("3.14", 0.40), ("3.14t", 0.416)):
        _primes(maker, build, alone, twins=twins)
    for build in ("3.13", "3.14", "3.14t"):
        _sleep(maker, build, twins=twins)
    return maker.run(("3.13", "3.14", "3.14t"), notes=(
        Note(text="3.13 and 3.14t are not a fair pair: 3.13 was compiled with PGO, 3.14t without"),
    ))


def _primes(maker: RunMaker, build: str, alone: float, *, twins: bool) -> None:
    free = build.endswith("t")

    def cell(runner: str, workers: int) -> Cell:
        return Cell(workload="primes", runner=runner, workers=workers, build=build)

    maker.measure(cell("serial", 1), alone, gil=not free, pss=11)
    if twins and build == "3.13":
        maker.twin(cell("serial", 1), alone)
    for workers in (1, 2, 4, 8):
        if free:
            maker.measure(cell("threads", workers), alone * 1.02, alone * 1.03, gil=True, pss=12)
            seconds = usl_seconds(alone, workers, 0.05, 0.0)
            maker.measure(cell("free-threaded", workers), seconds, alone * (1 + workers / 50), gil=False, pss=14)
        else:
            maker.measure(cell("threads", workers), alone * 1.001, alone * 1.01, gil=True, pss=11)
            maker.skip(cell("free-threaded", workers), "the GIL is enabled in this build")
        seconds = usl_seconds(alone, workers, 0.03, 0.002)
        starved = {8: rounds_more_than_half(maker), 4: 2}.get(workers, 0) if build == "3.14" else 0
        maker.measure(cell("subinterpreters", workers), seconds, alone * 1.02, gil=not free, pss=11 + 5 * workers,
                      starved=starved, culprit="_decimal" if free and workers == 2 else None)
        if build == "3.13":
            maker.skip(cell("interpreter-pool", workers), "InterpreterPoolExecutor is new in Python 3.14")
        elif free:
            maker.fail(cell("interpreter-pool", workers), "crash", "killed by SIGSEGV")
        else:
            seconds *= 1.1
            maker.measure(cell("interpreter-pool", workers), seconds, alone * 1.1, gil=True, pss=12 + 5 * workers)
        maker.skip(cell("asyncio", workers), "its task has nothing to await")
    if twins and free:
        maker.twin(cell("free-threaded", 8), usl_seconds(alone, 8, 0.05, 0.0), alone * 1.16)


def _sleep(maker: RunMaker, build: str, *, twins: bool) -> None:
    def cell(runner: str, workers: int) -> Cell:
        return Cell(workload="sleep", runner=runner, workers=workers, build=build, phase=Phase.STARTUP)

    if build == "3.14t":   # the baseline itself is missing here
        maker.fail(cell("serial", 1), "hang", "no progress for 60 s")
    else:
        maker.measure(cell("serial", 1), 0.100, 0.0004)
    if twins and build == "3.13":
        maker.twin(cell("serial", 1), 0.100, 0.0004)
    maker.measure(cell("asyncio", 1), 0.0118, 0.0009)
    for workers in (1, 2):
        maker.measure(cell("processes-spawn", workers), 0.100 / workers + 0.06, 0.05 * workers, pss=20 + 11 * workers)


def rounds_more_than_half(maker: RunMaker) -> int:
    """Return how many starved rounds withhold a cell's number."""
    return maker.rounds // 2 + 1


def in_sessions(run: Run, first_rounds: Sequence[int], shift: Sequence[float] = ()) -> Run:
    """Return the run with its rounds as sessions of two hours' distance.

    Args:
        run: A run with one session.
        first_rounds: The first round of each session, the first of them 0.
        shift: By session: how many times as long cells with several workers take.
    """
    sessions = tuple(RunSession(started=f"2026-11-21T{12 + 2 * i}:00:00+00:00", first_round=first)
                     for i, first in enumerate(first_rounds))
    run = replace(run, later_sessions=sessions[1:])

    def changed(cell: Cell, one: Observation) -> Observation:
        session = run.session_of(one.round)
        times = shift[session - 1] if shift and cell.workers > 1 else 1.0
        return replace(one, session=session, wall=tuple(times * value for value in one.wall))

    return replace(run, measurements=tuple(
        replace(each, observations=tuple(changed(each.cell, one) for one in each.observations))
        for each in run.measurements))
