"""`affinity`: where its threads and its client really run, on every build; what it says of made-up runs."""

import os
import sys
from textwrap import dedent

import pytest

from gilscope.toolkit.experiments.affinity.experiment import (
    APART,
    FREE,
    PATCHED,
    PINNED,
    SEQUENTIAL,
    AffinityExperiment,
    countdown_cell,
)
from gilscope.toolkit.experiments.base import EffortLevel
from gilscope.toolkit.experiments.report import document
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.terminal import render
from tests.conformance.builds import run_child
from tests.fakes import RunMaker

CPUS = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
needs_two = pytest.mark.skipif(len(CPUS) < 2, reason="one CPU: nothing to pin away from")
every_build = pytest.mark.builds("gil", "free")

TRIAL = dedent("""
    import os, sys, tempfile, threading
    from gilscope.toolkit.experiments.affinity import program as affinity
    from gilscope.toolkit.experiments.countdown import program as countdown
    from gilscope.toolkit.experiments.affinity import pinning
    from gilscope.toolkit.measure.child.program import ProgramSpec, ProgramTrial
    from gilscope.toolkit.processes.helper_process import HelperProcess

    def trial(model, workers, **parameters):
        return ProgramTrial(ProgramSpec(
            name="t", progress_timeout=60.0, folder=tempfile.gettempdir(), program="affinity", build="b", model=model,
            workers=workers, gil=None, parameters=parameters, host=sys.argv[1],
            scales={"count": 100_001, "seconds": 0.02, "least": 2, "bound": 20.0}))

    off = hasattr(sys, "_is_gil_enabled") and not sys._is_gil_enabled()
    model = "free-threaded" if off else "threads"
    usual = os.sched_getaffinity(0)
    seen, counts, real = [], [], countdown.countdown

    def watched(count):
        real(count)
        counts.append(count)
        number = threading.get_native_id()
        with open(f"/proc/self/task/{number}/stat") as file:
            ran = int(file.read().rpartition(")")[2].split()[36])   # field 39 of proc_pid_stat(5): its CPU
        seen.append((number, frozenset(os.sched_getaffinity(number)), ran))

    countdown.countdown = watched
""")

PINNED_COUNTDOWN = dedent("""
    taken = affinity.measure(trial(model, 2, work="countdown", cpus="one"))
    assert sorted(counts) == [50_000, 50_001], counts
    (allowed,) = {allowed for _, allowed, _ in seen}
    assert len(allowed) == 1 and {ran for _, _, ran in seen} == allowed, seen
    assert len({number for number, _, _ in seen}) == 2, seen
    assert os.sched_getaffinity(0) == usual
    assert taken.seconds > 0 and taken.cpu > 0 and taken.wanted_cores == 2
    seen.clear()
    affinity.measure(trial(model, 2, work="countdown", cpus="all"))
    assert {allowed for _, allowed, _ in seen} == {frozenset(usual)}
    seen.clear()
    affinity.measure(trial("serial", 1, work="countdown", cpus="all"))
    assert [number for number, _, _ in seen] == [os.getpid()]
""")

PLACES = dedent("""
    asked, ask = {}, HelperProcess.ask

    def watched_ask(self, **fields):
        if fields["do"] == "closed":
            mine = [int(each) for each in os.listdir("/proc/self/task")]
            others = [int(each) for each in os.listdir(f"/proc/{self.pid}/task")]
            asked.update(server=[os.sched_getaffinity(each) for each in mine],
                         client=[os.sched_getaffinity(each) for each in others])
        return ask(self, **fields)

    HelperProcess.ask = watched_ask
    # Only the free one: two separate cores may not be had on every machine.
    places = ["same", "free"] + (["other"] if len(pinning.separate()) > 1 else [])
    for place in places:
        for burners in (0, 1):
            taken = affinity.measure(trial(model, burners, work="echo", client=place))
            assert taken.metrics["requests"] >= 2, taken
            assert 0 < taken.metrics["p50"] <= taken.metrics["max"], taken
            if place == "free":
                assert asked["server"] == [usual] * len(asked["server"]), asked
                assert asked["client"] == [usual] * len(asked["client"]), asked
                continue
            assert len(asked["server"]) >= 3 + burners, asked   # main, accept, serve
            server, client = ({tuple(each) for each in asked[side]} for side in ("server", "client"))
            assert len(server) == len(client) == 1 and len(next(iter(server))) == 1, asked
            assert (server == client) is (place == "same"), asked
            assert os.sched_getaffinity(0) == usual
""")

GEVENT = dedent("""
    affinity.measure(trial("gevent", 2, work="countdown", cpus="all"))
    assert {number for number, _, _ in seen} == {os.getpid()}, seen   # greenlets of the one thread
    assert sorted(counts) == [50_000, 50_001], counts
""")

ONE_CORE = dedent("""
    from gilscope.toolkit.measure.child.base import NoValueError
    with pinning.pinned(sorted(usual)[:1]):
        try:
            affinity.measure(trial(model, 1, work="echo", client="other"))
        except NoValueError as stopped:
            assert stopped.answer["kind"] == "unavailable", stopped.answer
            assert stopped.answer["reason"] == "it needs 2 cores; this process may use 1", stopped.answer
        else:
            raise AssertionError("measured")
    sys.platform = "darwin"
    try:
        affinity.measure(trial(model, 2, work="countdown", cpus="one"))
    except NoValueError as stopped:
        assert stopped.answer["reason"] == "macOS has no way to pin a process to a CPU", stopped.answer
    else:
        raise AssertionError("measured")
""")


def passes(python, code):
    done = run_child(python, "-c", TRIAL + code, sys.executable)
    assert done.returncode == 0, done.stderr


@needs_two
@every_build
def test_pinned_threads_count_on_one_cpu_and_the_others_where_they_like(python):
    passes(python, PINNED_COUNTDOWN)


@needs_two
@every_build
def test_server_and_client_run_where_the_cell_says(python):
    passes(python, PLACES)


@needs_two
@every_build
def test_what_cannot_be_pinned_is_skipped_with_the_reason(python):
    passes(python, ONE_CORE)


@every_build
def test_gevents_threads_are_one(python):
    if run_child(python, "-c", "import gevent").returncode != 0:
        pytest.skip("gevent is not installed in this build")
    passes(python, GEVENT)


def test_every_cell_has_a_value_or_a_reason(run_smoke):
    smoke = run_smoke("affinity")
    assert not smoke.results.run.failures
    for cell in smoke.results.cells():
        absent = smoke.results.absence(cell)
        if absent is None:
            assert smoke.results.value(cell).center > 0
        else:
            assert absent.word == "starved" or absent.reason
    models = {cell.runner for cell in smoke.results.cells(build=smoke.gil)}
    assert models == {"serial", "threads", "gevent", "processes-spawn"}


def test_gevent_is_no_model_without_a_gil(run_smoke):
    smoke = run_smoke("affinity")
    (cell,) = smoke.results.cells(build=smoke.free, runner="gevent")
    assert "builds with a GIL" in smoke.results.reason(cell)


WAY_SECONDS = {SEQUENTIAL: 1.0, FREE: 1.0, PINNED: 1.0, PATCHED: 1.0, APART: 0.52}


def made_up(build="3.14", rounds=8, rates=None, noise=1e-6, requests=200, **ways):
    """Return a run with the seconds of some ways, and the requests/s beside one CPU thread by place of the client.

    A list of `rates` has one for each round; `requests` were timed by each process.
    """
    maker = RunMaker(rounds=rounds, noise=noise)
    label = build
    (build,) = maker.run((label,)).builds
    named = {"free": FREE, "pinned": PINNED, "apart": APART}
    seconds = WAY_SECONDS | {named[key]: value for key, value in ways.items()}
    for way, each in seconds.items():
        maker.measure(countdown_cell(build, way), each)
    maker.twin(countdown_cell(build, SEQUENTIAL), 1.0)
    for place, rate in (rates or {}).items():
        model = "free-threaded" if build.free_threaded else "threads"
        maker.measure(Cell(workload="affinity", runner=model, workers=1, build=label,
                           parameters=(("work", "echo"), ("client", place))),
                      [1 / each for each in rate] if isinstance(rate, list) else 1 / rate, p50=0.0051, p99=0.0102,
                      requests=requests)
    return maker.run((label,), options={"experiment": "affinity", "effort": EffortLevel.QUICK})


@pytest.mark.parametrize(("build", "ways", "words"), [
    ("3.14", {}, "a loss as large as in 2012 (0.79x) is excluded"),
    ("3.14", {"free": 1.5}, "the claim of 2012 holds"),
    ("3.14", {"free": 1.5, "pinned": 1.5}, "pinning is not shown to end that"),
    ("3.14", {"free": 0.8}, "the threads are faster here"),
    ("3.14t", {"free": 0.52}, "pinning takes away the second core."),
    ("3.14t", {"free": 0.52, "pinned": 0.52}, "takes away the second core is not shown"),
    ("3.14t", {"free": 0.87}, "without a GIL they run at the same time"),   # 1.15x: a gain, as the table has it
    ("3.14t", {"free": 1.2}, "they are slower even without a GIL"),
    ("3.14t", {}, "neither a gain nor a loss is shown beyond the noise"),
])
def test_sentence_on_the_countdown_follows_the_numbers(build, ways, words):
    sentence, processes = AffinityExperiment().findings(Results(made_up(build, **ways)))
    assert words in sentence
    assert processes == f"{build}: two processes do it 1.92x [1.92, 1.92] as fast."


def test_sentence_is_no_surer_than_the_table():
    # With noise this large, a table marks every speed-up with "?".
    sentence, processes = AffinityExperiment().findings(Results(made_up(noise=0.25, free=1.05, apart=0.9)))
    assert "the wider interval of verdicts leaves open whether they still cost as much as in 2012" in sentence
    assert processes.endswith("as fast; the wider interval of verdicts includes no difference.")


@pytest.mark.parametrize(("build", "rates", "words"), [
    ("3.14", {"same": 12_000, "other": 230, "free": 230}, "A client on another core leaves this one to the CPU thread"),
    ("3.14", {"same": 250, "other": 230}, "No benefit of the client on the same core is shown"),
    ("3.14t", {"same": 12_000, "other": 11_000}, "Without a GIL"),
])
def test_sentence_on_the_server_follows_the_numbers(build, rates, words):
    *_, sentence = AffinityExperiment().findings(Results(made_up(build, rates=rates)))
    assert words in sentence
    assert ("nothing pinned" in sentence) is ("free" in rates)


@pytest.mark.parametrize(("same", "other", "free", "words"), [
    # As measured: 123 to 322 requests/s with nothing pinned are no other than 185.
    ([15_700] * 5, [185] * 5, [178, 156, 123, 322, 159], "; no difference from nothing pinned is shown."),
    ([15_700] * 5, [100] * 5, [400, 410, 390, 400, 400],
     "; that is about 0.25 times (0.24 to 0.26 in 5 rounds) as many requests as with nothing pinned."),
    ([15_700] * 4 + [300], [185] * 5, [185] * 5, "The rounds do not agree whether a client on the same core gains."),
])
def test_gain_of_pinning_is_one_of_every_round(same, other, free, words):
    run = made_up(rounds=5, rates={"same": same, "other": other, "free": free})
    *_, sentence = AffinityExperiment().findings(Results(run))
    assert sentence.endswith(words)
    assert ("A gain is shown only with the client on the same core, about" in sentence) is (min(same) > 1000)
    assert f"with nothing pinned it is {sorted(free)[2]} ({min(free)}" in sentence


@pytest.mark.parametrize(("requests", "shown"), [(99, "5.10 ms / -"), (100, "5.10 ms / 10.2 ms")])
def test_few_requests_have_no_99th_percentile(requests, shown):
    rates = {"same": 12_000, "other": 196}
    text = render(document(AffinityExperiment(), made_up(rates=rates, requests=requests), None), width=120)
    assert shown in text
    assert ("99 requests a process: too few for a 99th percentile" in text) is (requests < 100)


def test_too_few_rounds_give_no_sentence():
    assert AffinityExperiment().findings(Results(made_up(rounds=2, rates={"same": 9000, "other": 200}))) == ()


def test_tables_have_the_old_numbers_beside():
    text = render(document(AffinityExperiment(), made_up(rates={"same": 12_000, "other": 196}), None), width=120)
    rows = {line.split("  ")[0].strip(): line for line in text.splitlines()}
    assert "10.45 s" in text
    assert rows["2 threads"].rstrip().endswith("0.79x")
    assert "12,000/s" in text
    assert "5.10 ms / 10.2 ms" in text
