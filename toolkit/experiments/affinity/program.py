"""Run the countdown, and an echo server beside CPU threads, with threads pinned to one core or free."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.affinity import pinning
from gilscope.toolkit.experiments.countdown import program as countdown
from gilscope.toolkit.experiments.helpers import echo
from gilscope.toolkit.experiments.helpers.burners import burning
from gilscope.toolkit.measure.child.program import ProgramValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.measure.child.program import ProgramTrial
    from gilscope.toolkit.processes.helper_process import HelperProcess

CLIENT = "gilscope.toolkit.experiments.load.echo_client"
ANSWER_SECONDS = 30.0  # grace beyond the echo client's bound: beside 8 CPU threads everything is late
BOTH = 2.0  # cores: for a server and its client, or for a pinned process and whatever else wants its core


def measure(trial: ProgramTrial) -> ProgramValue:
    """Return the wall seconds of the countdown, or the seconds per request of the echo server."""
    if trial.parameters["work"] == "echo":
        return _echo(trial)
    if trial.model == "gevent":
        _patch()
    if trial.model.startswith("processes"):
        return _in_processes(trial)
    if trial.parameters["cpus"] == "one":
        with pinning.pinned(_cpus(trial, 1)):
            taken = countdown.measure(trial)
        taken.wanted_cores = BOTH
        return taken
    return countdown.measure(trial)


def _cpus(trial: ProgramTrial, count: int) -> tuple[int, ...]:
    """Return one CPU of each of `count` separate cores.

    Raises:
        NoValueError: this system cannot pin, or there are too few cores.
    """
    if reason := pinning.unavailable():
        trial.stop(reason)
    found = pinning.separate()
    if len(found) < count:
        trial.stop(f"it needs {count} cores; this process may use {len(found)}")
    return found[:count]


def _patch() -> None:
    from gevent import monkey

    monkey.patch_all()


def _in_processes(trial: ProgramTrial) -> ProgramValue:
    from gilscope.runners import catalog

    total, workers = trial.count("count"), trial.workers
    shares = [total // workers + (number < total % workers) for number in range(workers)]
    with catalog.find(trial.model).pool(workers) as pool:
        pool.map(countdown.countdown, [1] * workers)  # so that every worker has imported the module
        with trial.measuring() as clock:
            pool.map(countdown.countdown, shares)
    return ProgramValue(seconds=clock.wall, cpu=clock.cpu, wanted_cores=workers)


def _echo(trial: ProgramTrial) -> ProgramValue:
    place = trial.parameters["client"]
    cpus = () if place == "free" else _cpus(trial, 2 if place == "other" else 1)
    with (
        echo.serving() as port,
        trial.helper(CLIENT) as client,
        burning("threads", trial.workers) as beside,
    ):
        client.ask(limit=ANSWER_SECONDS, do="connect", port=port, connections=1)
        with _placed(trial, client, cpus):
            beside.go()
            answer = client.ask(
                limit=trial.number("bound") + ANSWER_SECONDS, do="closed", seconds=trial.number("seconds"),
                least=trial.count("least"), bound=trial.number("bound"),
            )
            beside.stop()
    if not answer["requests"]:
        trial.stop(f"no request was answered within {trial.number('bound'):g} s", "hang")
    metrics = {name: answer[name] for name in ("requests", "p50", "p90", "p99", "max")}
    return ProgramValue(seconds=1 / answer["rate"], metrics=metrics, wanted_cores=BOTH)


@contextlib.contextmanager
def _placed(trial: ProgramTrial, client: HelperProcess, cpus: tuple[int, ...]) -> Iterator[None]:
    """Pin this process to the first of `cpus` and the client to the last, and measure the block.

    All threads must run already, and none burn yet: beside CPU threads reading procfs would cost a switch interval.
    """
    with contextlib.ExitStack() as stack:
        if cpus:
            stack.enter_context(pinning.pinned(cpus[-1:], pid=client.pid))
            # Other load is counted on the CPUs that this process may use when measuring begins and ends.
            stack.enter_context(pinning.pinned(cpus))
        stack.enter_context(trial.measuring())
        if cpus:
            stack.enter_context(pinning.pinned(cpus[:1]))
        yield
