"""`aggregator`: each service for real on every build, under load and left behind, and what is said of made-up runs."""

import dataclasses
import json
import sys

import pytest

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.builds.environment import build_environment
from gilscope.toolkit.experiments.aggregator import program
from gilscope.toolkit.experiments.aggregator.experiment import (
    HEAVY,
    LIGHT,
    POOL,
    THEN,
    AggregatorExperiment,
    _times_of_twins,
)
from gilscope.toolkit.experiments.base import SLOW_PARSER, EffortLevel, PlanningContext
from gilscope.toolkit.experiments.helpers.http_programs import allow_open_files
from gilscope.toolkit.experiments.load.backend_answers import merged
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.experiments.round_texts import times_text
from gilscope.toolkit.measure.abilities import Abilities
from gilscope.toolkit.measure.child.base import NoValueError
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.document import Document
from gilscope.toolkit.report.terminal import render
from gilscope.toolkit.report.wording import value_text
from tests.conformance.builds import run_child
from tests.experiments.golden import check_golden
from tests.experiments.trials import make_trial
from tests.fakes import RunMaker, make_build
from tests.matplotlib_missing import matplotlib_missing

# What a service is asked in a process of its own: gevent patches the one it is in, for good.
SERVICE = """
import asyncio, json, os, socket, sys, threading
from gilscope.toolkit.experiments.load.backends import BackendServer, ServerCounts
from gilscope.toolkit.experiments.load.backend_answers import BACKENDS
from gilscope.toolkit.experiments.aggregator.program import SERVICES, service
from gilscope.toolkit.experiments.helpers.http_programs import in_thread

model, workers, broken = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
try:
    serve = service(model)
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    raise SystemExit

async def back_ends(ready):
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    counts = ServerCounts()
    servers = {name: await loop.create_server(lambda name=name: BackendServer(name, 0.01, counts), "127.0.0.1", 0)
               for name in BACKENDS}
    for name, server in servers.items():
        addresses[name] = "127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        if name in broken:
            server.close()
    ready(1, lambda: loop.call_soon_threadsafe(stopped.set))
    await stopped.wait()
    for server in servers.values():
        server.close()

def ask(port, target):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(b"GET %s HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n" % target)
        received = b""
        while more := connection.recv(65536):
            received += more
    head, _, body = received.partition(b"\\r\\n\\r\\n")
    return int(head.split()[1]), body.decode()

def at_once(port, numbers):
    answers = {}
    threads = [threading.Thread(target=lambda n=n: answers.update({n: ask(port, b"/merged/%d" % n)})) for n in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answers[n] for n in numbers]

addresses, told = {}, {}
with in_thread(lambda ready: asyncio.run(back_ends(ready))):
    with serve(addresses, workers) as port:
        told["answers"] = at_once(port, range(6))
        told["unknown"] = ask(port, b"/else")[0]
    try:
        told["after"] = ask(port, b"/merged/1")
    except TimeoutError:
        told["after"] = "open, but nobody is there"
    except OSError:
        told["after"] = "gone"
told["left"] = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
import sysconfig
told["gil"] = getattr(sys, "_is_gil_enabled", lambda: True)()
told["free-threaded"] = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
print(json.dumps(told))
"""
MODELS = {"sync": 1, "threads": 3, "gevent": 1, "tornado": 1, "asyncio": 1}


def ask_service(python, model, *broken):
    done = run_child(python, "-c", SERVICE, model, str(MODELS[model]), *broken)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    if missing := told.get("missing"):
        pytest.skip(missing)
    return told, done.stderr


@pytest.mark.parametrize("model", MODELS)
def test_service_answers_right_at_once_and_leaves_nothing(model):
    check_service(sys.executable, model)


@pytest.mark.slow
@pytest.mark.network   # for the libraries
@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("model", MODELS)
def test_service_answers_right_on_every_build(build, model):
    requirements = [package.requirement for package in AggregatorExperiment.packages]
    check_service(str(build_environment(build, (), requirements).python), model)


def check_service(python, model):
    told, errors = ask_service(python, model)
    assert [(status, json.loads(body)) for status, body in told["answers"]] == [(200, merged(n)) for n in range(6)]
    assert told["unknown"] == 404
    assert told["after"] == "gone"
    assert [name for name in told["left"] if "Dummy" not in name] == []
    assert errors == ""
    assert told["gil"] is not told["free-threaded"]


@pytest.mark.parametrize("model", MODELS)
def test_back_end_that_is_gone_is_a_failed_answer_and_the_service_lives(model):
    told, _ = ask_service(sys.executable, model, "price")
    assert [status for status, _ in told["answers"]] == [500] * 6
    assert told["unknown"] == 404


def test_every_cell_has_a_number_or_a_reason(run_smoke):
    smoke = run_smoke("aggregator")
    assert not smoke.results.run.failures
    models = {cell.runner for cell in smoke.results.cells()}
    assert models >= {"sync", "threads", "gevent", "tornado", "asyncio"}
    for cell in smoke.results.cells():
        if smoke.results.reason(cell) is None:
            scheduled, success = (smoke.results.metric(cell, name).center for name in ("scheduled", "success"))
            assert scheduled == 5   # 5 users x 2/s for half a second
            assert smoke.results.metric(cell, "requests").center == pytest.approx(success * scheduled)
            # The slowest back end takes a tenth of 0.1 s, and the service waits for it.
            assert smoke.results.value(cell).center >= 0.01
        else:
            assert smoke.results.absence(cell).word in {"skipped", "starved"}


def test_greenlets_take_no_part_without_a_gil(run_smoke):
    smoke = run_smoke("aggregator")
    (cell,) = smoke.results.cells(build=smoke.free, runner="gevent")
    assert "no wheels for free-threaded builds" in smoke.results.reason(cell)


def test_report_and_figures_are_there(run_smoke):
    smoke = run_smoke("aggregator")
    for words in ("Answered right within 1 s", "Latency on", "CPU per answer", "nearly all"):
        assert words in smoke.out
    # On a busy machine every cell may be starved; then there is no figure.
    measured = any(smoke.results.value(cell) for cell in smoke.results.cells())
    if measured and not matplotlib_missing(smoke.err):
        drawn = {path.name for path in smoke.folder.glob("*.png")}
        assert drawn == {"aggregator.png", "aggregator-latency.png"}, smoke.err


def test_service_that_is_wrong_ends_the_trial(tmp_path, monkeypatch):
    pytest.importorskip("requests")
    scales = {"latency": 0.0, "seconds": 0.1, "limit": 60.0}
    trial = make_trial(tmp_path, workers=1, scales=scales, users="1", rate="10")
    trial.model = "sync"
    blocking = sys.modules.get("gilscope.toolkit.experiments.aggregator.blocking") or _blocking()
    monkeypatch.setattr(blocking, "merge",
                        lambda number, parts: {"product": number, "parts": len(parts)})
    with pytest.raises(NoValueError, match="wrong body"):
        program.measure(trial)


def _blocking():
    from gilscope.toolkit.experiments.aggregator import blocking as aggregator_blocking

    return aggregator_blocking


def made_up(pool, loop, *, build="3.14", cost=0.004, rounds=8, starved=0, sync=0.0, twin=None, **metrics):
    """Return a run in which a pool of threads and asyncio answer these shares of the requests of the heavy load."""
    maker = RunMaker(rounds=rounds)
    name = "free-threaded" if build.endswith("t") else "threads"
    load = (("users", HEAVY.users), ("rate", HEAVY.rate))
    cells = {model: Cell(workload="aggregator", runner=model, workers=workers, build=build, parameters=load)
             for model, workers in ((name, POOL), ("asyncio", 1), ("sync", 1), ("gevent", 1))}
    for model, success in ((name, pool), ("asyncio", loop), ("sync", sync)):
        answered = {"cpu_per_answer": cost} if success else {}
        usual = {"p50": 0.2, "p90": 0.3, "p99": 0.4, "max": 0.5, "growth": 1.0, "cores": 0.5, "threads": 3,
                 "helper_cores": 0.2, "success": success, **answered}
        maker.measure(cells[model], 0.2, starved=starved, **usual | (metrics if model == name else {}))
    maker.twin(cells[name], 0.2)
    if twin is not None:
        maker.measure(dataclasses.replace(cells["asyncio"], twin=True), 0.2, cpu_per_answer=twin)
    maker.skip(cells["gevent"], "gevent cannot be installed: no wheel for this build")
    return Results(maker.run((build,), options={"experiment": "aggregator", "effort": EffortLevel.QUICK}))


@pytest.mark.parametrize(("pool", "loop", "words"), [
    (1.0, 1.0, "threads answer none is not reproduced here"),
    (0.0, 0.99, "none of the requests in time, asyncio 99.0 % of the requests; as published"),
    (0.5, 1.0, "not as badly as published"),
    (0.5, 0.5, "neither keeps up"),
    (0.0, 0.0, "neither keeps up"),
    (0.95, 0.95, "threads answer none is not reproduced here"), (0.94, 0.94, "neither keeps up"),
    (0.05, 0.95, "as published"), (0.06, 0.95, "not as badly as published"),
])
def test_sentence_follows_the_numbers(pool, loop, words):
    said = " ".join(AggregatorExperiment().findings(made_up(pool, loop)))
    assert words in said
    assert "asks one back end after the other answers none of the requests: it can serve 2.7 requests/s" in said


@pytest.mark.parametrize(("shares", "words"), [
    ([1.0, 1.0], "32 threads answer all 480 requests (2 rounds) in time"),
    ([1.0, 0.975], "32 threads answer 474 of 480 requests (2 rounds) in time"),
    ([0.0, 0.0], "32 threads answer none of 480 requests (2 rounds) in time"),
])
def test_requests_answered_are_counted(shares, words):
    said = " ".join(AggregatorExperiment().findings(made_up(shares, 1.0, rounds=2, scheduled=240)))
    assert words in said


@pytest.mark.parametrize("shares", [[1.0, 0.5], [0.5, 0.01]])
def test_rounds_that_do_not_agree_are_told(shares):
    said = " ".join(AggregatorExperiment().findings(made_up(shares, 1.0, rounds=2)))
    assert "the rounds do not agree on who keeps up." in said


def test_cost_is_compared_by_the_round():
    # By round 1 and 4 times asyncio's 4 ms; the quotient of the medians is 2.5 as well, but tells no range.
    _, cost, _ = AggregatorExperiment().findings(made_up(1.0, 1.0, rounds=2, cpu_per_answer=[0.004, 0.016]))
    assert "so the threads about 2.5 times (1.0 to 4.0 in 2 rounds) as much" in cost


def test_range_of_the_cost_includes_what_the_twin_of_asyncio_makes_of_it():
    results = made_up(1.0, 1.0, rounds=2, cpu_per_answer=[0.008, 0.012], twin=[0.005, 0.005])
    _, cost, _ = AggregatorExperiment().findings(results)
    assert "so the threads 1.6 to 3.0 times (2 rounds; asyncio, measured twice, differed by 25 %) as much" in cost


def test_twin_that_shares_no_round_with_asyncio_changes_no_range():
    assert _times_of_twins([2.0, 3.0], [1.6], []) == times_text([2.0, 3.0])


def test_cores_that_the_load_takes_are_those_of_the_table():
    _, cost, _ = AggregatorExperiment().findings(made_up(1.0, 1.0, cores=0.77))
    assert "under this load they used 0.77 and 0.50 cores" in cost
    assert "the threads are near that" in cost
    _, cost, _ = AggregatorExperiment().findings(made_up(1.0, 1.0, cores=0.67))
    assert "both stay below that" in cost
    _, cost, _ = AggregatorExperiment().findings(made_up(1.0, 1.0, rounds=2, cores=[0.67, 0.77]))
    assert "the rounds do not agree whether the threads are near that" in cost
    _, free, _ = AggregatorExperiment().findings(made_up(1.0, 1.0, build="3.14t"))
    assert "may use several cores" in free


@pytest.mark.parametrize(("pool", "growth", "falls"), [(0.06, 2.1, 1), (0.05, 2.1, 0), (0.06, 2.0, 0)])
def test_latency_that_grows_is_said_where_something_is_answered(pool, growth, falls):
    results = made_up(pool, 1.0, growth=growth)
    assert " ".join(AggregatorExperiment().findings(results)).count("Their latency grew meanwhile") == falls
    assert shown(results).count(f"latency grew {growth}x") == falls


def test_slow_parser_is_a_doubt():
    assert SLOW_PARSER[:40] in shown(made_up(1.0, 1.0, parser="Python"))
    assert SLOW_PARSER[:40] not in shown(made_up(1.0, 1.0, parser="C"))


def test_nothing_is_said_of_what_has_no_number():
    assert list(AggregatorExperiment().findings(made_up(1.0, 1.0, starved=8))) == []
    # A service that answers no request has no cost per answer.
    said = " ".join(AggregatorExperiment().findings(made_up(1.0, 0.0, sync=0.06)))
    assert "an answer takes" not in said
    assert "one back end after the other" not in said


def test_missing_library_is_skipped_with_a_way_to_get_it():
    builds_there = (make_build("3.14"), make_build("3.14t"))
    reasons = {"requests": None, "aiohttp": None, "gevent": None, "tornado": "tornado cannot be installed: no wheel"}
    able = Abilities(runners={runner.name: None for runner in RUNNERS}, modules=reasons, isolated={}, versions={})
    plan = AggregatorExperiment().plan(PlanningContext(
        builds=builds_there, abilities={each.label: able for each in builds_there}, cores=2, effort=EffortLevel.QUICK,
        scales=AggregatorExperiment.levels[EffortLevel.QUICK].scales))
    found = {(skip.cell.build, skip.cell.runner): skip.reason for skip in plan.skips}
    assert set(found) == {("3.14", "tornado"), ("3.14t", "tornado"), ("3.14t", "gevent")}
    assert "install 'tornado>=6.5' into the environment" in found["3.14", "tornado"]
    (twin,) = (cell for cell in plan.cells if cell.twin)
    assert (twin.runner, twin.build) == ("asyncio", "3.14")


def test_limit_of_open_files_suffices_and_is_never_lowered(monkeypatch):
    resource = pytest.importorskip("resource")
    kept = []
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limits: kept.append(limits))
    for now in ((1024, 2048), (1024, 100_000), (8192, 100_000), (resource.RLIM_INFINITY,) * 2):
        monkeypatch.setattr(resource, "getrlimit", lambda _which, now=now: now)
        allow_open_files()
    assert kept == [(2048, 2048), (4096, 100_000)]


def shown(results):
    return render(Document(AggregatorExperiment().sections(results)), ascii_only=True)


def latencies_of_threads(**metrics):
    """Return the texts of the row of threads in the table of latencies, by column, and the footnotes, of two rounds."""
    _, _, table, _ = AggregatorExperiment().sections(made_up(1.0, 1.0, rounds=2, **metrics))
    row = next(row for row in table.rows if row[0].value.startswith("threads"))
    return {column.title: value_text(entry.value)
            for column, entry in zip(table.columns, row, strict=True)}, table.footnotes


def test_longest_latency_is_that_of_all_rounds():
    found, _ = latencies_of_threads(max=[0.142, 0.165], p99=[0.136, 0.138])
    assert (found["max"], found["p99"]) == ("165 ms", "137 ms ±<1 %")
    _, curves = AggregatorExperiment().figures(made_up(1.0, 1.0, rounds=2, max=[0.142, 0.165]))
    line = curves.panels[0].series[0]
    assert line.y[-1] == 0.165
    assert line.hi[-1] != line.hi[-1]


@pytest.mark.parametrize(("scheduled", "shown"), [([99, 240], "-"), ([100, 240], "400 ms ±0 %")])
def test_few_requests_have_no_99th_percentile(scheduled, shown):
    found, footnotes = latencies_of_threads(scheduled=scheduled)
    assert found["p99"] == shown
    assert ("99 to 240 requests a process: too few for a 99th percentile" in footnotes) is (shown == "-")


def test_limit_has_no_spread():
    found, _ = latencies_of_threads(p50=[1.0, 1.0], p90=[0.8, 1.0])
    assert (found["p50"], found["p90"]) == ("1.00 s", "900 ms")   # one round of p90 was cut off: its range is not known


def test_doubts_stand_below_the_table():
    text = shown(made_up(0.9, 1.0, failures="3 x no answer within 1.00 s", growth=3.0,
                         saturated="the load generator itself was up to 30 ms late")).replace("\n    ", " ")
    assert "failed, in the last round with failures: 3 x no answer" in text
    assert "was up to 30 ms late" in text
    assert "latency grew 3.0x" in text
    assert "no wheel for this build" in text


def test_claims_stand_beside_the_numbers():
    lines = shown(made_up(1.0, 1.0)).splitlines()
    for model, then in THEN.items():
        assert any(line.startswith(model) and line.endswith(then) for line in lines), lines


def test_latency_of_a_cell_that_failed_is_not_drawn_and_its_bar_is_a_cross():
    bars, curves = AggregatorExperiment().figures(made_up(1.0, 1.0))
    (heavy,) = bars.panels[0].series
    assert [value == value for value in heavy.y] == [True, True, True, False]   # noqa: PLR0124 - NaN
    assert [series.name for series in curves.panels[0].series] == ["threads, 32 at a time", "asyncio", "sync"]


def test_tables_and_sentences_of_a_whole_run():
    # Services that need 0.4, 1.1, 0.8 and 0.9 cores for the heavy load, and one that never keeps up.
    maker = RunMaker(rounds=6)
    costs = {"asyncio": 2.0, "threads": 5.8, "free-threaded": 6.5, "tornado": 4.2, "gevent": 4.7, "sync": 20.0}   # ms
    for build, pool in (("3.14", "threads"), ("3.14t", "free-threaded")):
        for load, wanted in ((LIGHT, 10), (HEAVY, 192)):
            for model in ("asyncio", pool, "gevent", "tornado", "sync"):
                cell = Cell(workload="aggregator", runner=model, workers=POOL if model == pool else 1, build=build,
                            parameters=(("users", load.users), ("rate", load.rate)))
                if (build, model) == ("3.14t", "gevent"):
                    maker.skip(cell, "gevent runs only on builds with a GIL")
                    continue
                needed = wanted * costs[model] / 1000
                success = 2.7 / wanted if model == "sync" else 1.0 if needed < 1 or build == "3.14t" else 0.6
                late = 0.108 + needed / 10 if success == 1 else 1.0
                maker.measure(
                    cell, late, success=success, p50=late, p90=min(1.0, late * 1.2), p99=min(1.0, late * 1.4),
                    max=min(1.0, late * 1.5), growth=3.0 if success == 0.6 else 1.0, cores=needed, helper_cores=0.2,
                    threads=168 if model == pool else 2, scheduled=wanted, cpu_per_answer=costs[model] / 1000,
                    starved=6 if (build, model, wanted) == ("3.14t", "tornado", 192) else 0,
                    failures="" if success == 1 else f"{round(wanted * (1 - success))} x no answer within 1.00 s")
                if (build, wanted, model) == ("3.14", 192, "asyncio"):
                    maker.twin(cell, late)
    results = Results(maker.run(("3.14", "3.14t"), options={"experiment": "aggregator", "effort": EffortLevel.QUICK}))
    check_golden("aggregator.txt", AggregatorExperiment(), results)
