"""Load a service that asks five back ends for every request and merges their answers.

The service runs in this process, on the measured build; back ends and load generator are helper processes, started and
warm before any load.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.experiments.helpers.http_programs import (
    BACKENDS_MODULE,
    REQUEST_SECONDS,
    aiohttp_parser,
    allow_open_files,
    gil_on,
    refuse_gil_turned_on,
    thread_count,
    wanted_cores,
)
from gilscope.toolkit.measure.child.process_tree import memory
from gilscope.toolkit.measure.child.program import ProgramValue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from gilscope.toolkit.measure.child.program import BlockTime, ProgramTrial

    Service = Callable[[Mapping[str, str], int], AbstractContextManager[int]]

# By model: module, function, and the libraries to import before any load.
SERVICES = {
    "sync": ("blocking", "sync", ("requests",)),
    "threads": ("blocking", "threads", ("requests",)),
    "free-threaded": ("blocking", "threads", ("requests",)),
    "gevent": ("blocking", "greenlets", ("gevent",)),  # must be imported before requests
    "tornado": ("loops", "tornado", ("tornado.web", "tornado.httpclient")),
    "asyncio": ("loops", "aiohttp", ("aiohttp.web",)),
}
WARM_REQUESTS = 2
GROWN = 1.5   # times the latency at the start, from which on the service did not keep up
COPIED = ("p50", "p90", "p99", "max", "lag_p99", "success", "failures", "scheduled", "requests", "in_flight",
          "growth", "histogram", "saturated")


def measure(trial: ProgramTrial) -> ProgramValue:
    """Return the median seconds until an answer under `users` x `rate` requests/s; failures count as `limit`."""
    allow_open_files()
    was_on, others = gil_on(), thread_count() - 1
    serve = service(trial.model)
    backends = trial.helper(BACKENDS_MODULE, "backends", str(trial.number("latency")))
    with backends as back, trial.helper("gilscope.toolkit.experiments.load.http_generator") as load:
        with serve(back.ready["addresses"], trial.workers) as port:
            address = f"127.0.0.1:{port}"
            load.ask(limit=2 * REQUEST_SECONDS, do="warm", address=address, requests=WARM_REQUESTS,
                     each=REQUEST_SECONDS)
            back.ask(limit=REQUEST_SECONDS, do="reset")
            trial.progress()
            seconds, limit = trial.number("seconds"), trial.number("limit")
            with trial.measuring() as clock:
                report = load.ask(
                    limit=seconds + limit + REQUEST_SECONDS, do="load", address=address,
                    users=trial.count("users"), rate=trial.number("rate"), seconds=seconds, timeout=limit)
            threads, (resident, proportional) = thread_count() - others, memory([os.getpid()])
        served = back.ask(limit=REQUEST_SECONDS, do="report")
    refuse_gil_turned_on(trial, was_on=was_on)
    metrics = _metrics(report, served, clock) | {"threads": threads}
    if resident is not None and proportional is not None:
        metrics |= {"rss": resident, "pss": proportional}
    if trial.model == "asyncio":
        metrics["parser"] = aiohttp_parser()
    # A service of one request at a time sleeps most of the time, however many cores it has.
    short = trial.model != "sync" and (report["success"] < 1 or report["growth"] > GROWN)
    wanted = wanted_cores(clock, trial.cores if trial.model == "free-threaded" else 1,
                          float(metrics["helper_cores"]), short=short)
    return ProgramValue(seconds=report["p50"], cpu=clock.cpu, metrics=metrics, wanted_cores=wanted)


def service(model: str) -> Service:
    """Return the service of `model`, with its libraries imported."""
    module, function, libraries = SERVICES[model]
    for library in libraries:
        importlib.import_module(library)
    found: Service = getattr(importlib.import_module(f"gilscope.toolkit.experiments.aggregator.{module}"), function)
    return found


def _metrics(report: Mapping[str, Any], served: Mapping[str, Any], clock: BlockTime) -> dict[str, float | str]:
    # Results cannot store empty texts.
    metrics: dict[str, float | str] = {name: report[name] for name in COPIED if report[name] != ""}
    metrics |= {"cores": clock.cpu / clock.wall, "helper_cores": (report["cpu"] + served["cpu"]) / clock.wall,
                "backend_late": served["late"]}
    if report["requests"]:
        metrics["cpu_per_answer"] = clock.cpu / report["requests"]
    return metrics
