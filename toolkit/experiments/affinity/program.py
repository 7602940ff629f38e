"""What being kept on one core does to threads: the countdown, and an echo server beside CPU threads."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.affinity import pinning
from gilscope.toolkit.experiments.countdown import program as countdown
from gilscope.toolkit.experiments.helpers import echo
from gilscope.toolkit.experiments.helpers.burners.burning import burning
from gilscope.toolkit.measure.program.interface import Taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.measure.program.interface import Helper, Trial

CLIENT = "gilscope.toolkit.experiments.load.echo_client"
ANSWER_SECONDS = 30.0  # what an echo client may take beyond its bound: beside 8 CPU threads everything is late
BOTH = 2.0  # cores: a server and its client; of a pinned process as much as its core has


def measure(trial: Trial) -> Taken:
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


def _cpus(trial: Trial, count: int) -> tuple[int, ...]:
    """Return CPUs of `count` separate cores.

    Raises:
        StoppedError: nothing can be pinned here, or there are fewer cores.
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


def _in_processes(trial: Trial) -> Taken:
    from gilscope.runners import catalog

    total, workers = trial.count("count"), trial.workers
    shares = [total // workers + (number < total % workers) for number in range(workers)]
    with catalog.find(trial.model).pool(workers) as pool:
        pool.map(countdown.countdown, [1] * workers)  # every worker has imported it
        with trial.measuring() as clock:
            pool.map(countdown.countdown, shares)
    return Taken(seconds=clock.wall, cpu=clock.cpu, wanted_cores=workers)


def _echo(trial: Trial) -> Taken:
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
    return Taken(seconds=1 / answer["rate"], metrics=metrics, wanted_cores=BOTH)


@contextlib.contextmanager
def _placed(trial: Trial, client: Helper, cpus: tuple[int, ...]) -> Iterator[None]:
    """Pin this process to the first of `cpus` and the client to the last, and measure the block.

    All threads run already and nothing burns yet: beside CPU threads a look into procfs would cost a switch interval.
    """
    with contextlib.ExitStack() as stack:
        if cpus:
            stack.enter_context(pinning.pinned(cpus[-1:], pid=client.pid))
            # What else runs is counted on the CPUs that we may use when measuring begins and ends: these.
            stack.enter_context(pinning.pinned(cpus))
        stack.enter_context(trial.measuring())
        if cpus:
            stack.enter_context(pinning.pinned(cpus[:1]))
        yield
