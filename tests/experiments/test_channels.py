"""`channels`: what is certain of a tiny run, what its program refuses and cleans up, and its tables and sentences."""

import contextlib
import os
import queue
import re
import sys
import threading
from pathlib import Path

import pytest

from gilscope.toolkit.experiments.base import EffortLevel, PlanningContext
from gilscope.toolkit.experiments.channels import program, start_workers, worker_roles
from gilscope.toolkit.experiments.channels.experiment import (
    CONTROLS,
    CROSSING,
    FAN_IN,
    PING_PONG,
    PIPE,
    PROCESS_QUEUE,
    SIMPLE,
    VIEW,
    ChannelsExperiment,
    Topology,
    find,
    parameters_of,
    runner_of,
)
from gilscope.toolkit.experiments.report import figures_of
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.measure.abilities import Abilities
from gilscope.toolkit.measure.child.base import NoValueError
from gilscope.toolkit.measure.child.program import BlockTime
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.figures.figure import CategoryFigure, LineFigure
from gilscope.toolkit.report.wording import value_text
from tests.experiments.golden import check_golden
from tests.fakes import RunMaker, make_build

MODELS = ("threads", "free-threaded", "subinterpreters", "processes-forkserver")


class TinyTrial:
    """A trial without a measured process around it."""

    def __init__(self, pattern, workers, *, model="threads", channel="SimpleQueue", size=64, form="bytes"):
        self.model, self.workers = model, workers
        self.parameters = {"pattern": pattern, "channel": channel, "bytes": str(size), "form": form}
        self.scales = {"seconds": 0.002}

    def count(self, name):
        return int(self.parameters[name])

    def progress(self):
        pass

    def stop(self, reason, kind="unavailable"):
        raise NoValueError(kind, reason)

    @contextlib.contextmanager
    def measuring(self):
        yield BlockTime(wall=1.0, cpu=0.5)


@contextlib.contextmanager
def nothing_left():
    threads, descriptors = held()
    yield
    now, open_now = held()
    assert now <= threads   # one of an earlier test may end meanwhile
    assert open_now <= descriptors


def held():
    """Return the threads and descriptors of this process; the number of the latter, as listing needs one."""
    folder = Path("/proc/self/fd")
    return set(threading.enumerate()), len(list(folder.iterdir())) if folder.exists() else 0


# What a tiny run shows.


def test_every_cell_has_a_value_or_a_named_reason(run_smoke):
    smoke = run_smoke("channels")
    assert not smoke.results.run.failures
    for cell in smoke.results.cells():
        absent = smoke.results.absence(cell)
        assert absent is None or absent.word in {"starved", "skipped"}, cell


def test_queue_between_interpreters_looks_every_ten_milliseconds(run_smoke):
    smoke = run_smoke("channels")
    for build in smoke.results.builds:
        polled = find(smoke.results, build, PING_PONG, 8, CROSSING)
        if smoke.results.absence(polled) is None:
            (sleep,) = smoke.results.metrics(polled, "poll").values()
            (longest,) = smoke.results.metrics(polled, "lap_max").values()
            assert sleep == 0.01
            # Both ends look at once only if they began to sleep in the same moment, and not lap after lap.
            assert longest >= sleep


def test_memoryview_needs_the_standard_librarys_queue(run_smoke):
    smoke = run_smoke("channels")
    for build in smoke.results.builds:
        absent = smoke.results.absence(find(smoke.results, build, Topology("ring", 3), 8, VIEW))
        old = build.version.startswith(("3.12", "3.13"))
        assert (absent is not None and "pickles" in absent.reason) if old else absent is None


# Its program.


@pytest.mark.parametrize(("pattern", "members"), [("ping-pong", 2), ("ring", 5), ("fan-in", 3)])
@pytest.mark.parametrize("channel", ["SimpleQueue", "queue.Queue", "os.pipe"])
@pytest.mark.parametrize("size", [8, 100_000])
def test_messages_arrive_whole_and_in_order_and_nothing_is_left(pattern, members, channel, size):
    with nothing_left():
        taken = program.measure(TinyTrial(pattern, members, channel=channel, size=size))
    assert taken.seconds == 1.0 / taken.metrics["messages"]
    assert taken.cpu == 0.5 / taken.metrics["messages"]
    assert taken.metrics["messages"] % members == 0


def test_ring_counts_every_hop():
    taken = program.measure(TinyTrial("ring", 5))
    assert taken.metrics["messages"] >= 5 * program.LEAST_LAPS
    assert 0 < taken.metrics["lap_p50"] <= taken.metrics["lap_p99"] <= taken.metrics["lap_max"]


def test_large_messages_are_not_all_on_their_way_at_once(monkeypatch):
    ordered, taken, ahead = [], [], []
    order, take = start_workers.WorkerCrew.order, program.Inbox._take

    def note_order(crew, number):
        ordered.append(number)
        ahead.append(sum(ordered) - sum(taken))
        order(crew, number)

    def note_take(inbox, number, counts):
        take(inbox, number, counts)
        taken.append(number // 2)   # of each of the two senders

    monkeypatch.setattr(start_workers.WorkerCrew, "order", note_order)
    monkeypatch.setattr(program.Inbox, "_take", note_take)
    monkeypatch.setattr(program, "MOST_BYTES", 8 * 2 * 1000)
    program.measure(TinyTrial("fan-in", 2, size=1000))
    assert max(ordered) == 4
    assert max(ahead[:-2]) == 8      # the last two: what is checked, and the end


@pytest.mark.parametrize(("broken", "kind", "reason"), [
    (lambda message: message[:-1] + b"!", "wrong-result", "a message came back changed"),
    (lambda message: message[:-1], "wrong-result", "lap 0: another message than the one sent came back"),
    (lambda message: message[:2] + b"\x07" + message[3:], "wrong-result", "lap 0: another message"),
    (lambda message: 1 / 0, "exception", "ZeroDivisionError"),
])
@pytest.mark.parametrize("members", [2, 4])
def test_ring_that_is_not_right_has_no_value(monkeypatch, broken, kind, reason, members):
    def forward(receive, send, place):
        while (received := receive())[0] != worker_roles.STOP:
            send(received + bytes((place,)) if received[0] == worker_roles.TRACE else broken(received))
        return 0

    monkeypatch.setattr(worker_roles, "forward", forward)
    with nothing_left(), pytest.raises(NoValueError) as stopped:
        program.measure(TinyTrial("ring", members))
    assert stopped.value.answer["kind"] == kind
    assert reason in stopped.value.answer["reason"]


def test_ring_in_another_order_has_no_value(monkeypatch):
    forward = worker_roles.forward
    monkeypatch.setattr(worker_roles, "forward", lambda receive, send, place: forward(receive, send, 4 - place))
    with nothing_left(), pytest.raises(NoValueError, match=r"the token passed \[3, 2, 1\], not 1 to 3"):
        program.measure(TinyTrial("ring", 4))


def test_messages_that_are_not_forwarded_are_missed(monkeypatch):
    forward = worker_roles.forward
    monkeypatch.setattr(worker_roles, "forward", lambda receive, send, place: forward(receive, send, place) - 1)
    with nothing_left(), pytest.raises(NoValueError, match="the workers handled"):
        program.measure(TinyTrial("ring", 3))


@pytest.mark.parametrize(("order", "kind", "reason"), [
    ((1, 0, 2, 3), "wrong-result", "out of order"), ((0, 1, 1, 2), "wrong-result", "out of order"),
])
def test_sender_out_of_order_has_no_value(monkeypatch, order, kind, reason):
    produce = worker_roles.produce
    monkeypatch.setattr(worker_roles, "produce", lambda orders, send, messages: produce(
        orders, send, [messages[turn] for turn in order]))
    with nothing_left(), pytest.raises(NoValueError) as stopped:
        program.measure(TinyTrial("fan-in", 2))
    assert stopped.value.answer["kind"] == kind
    assert reason in stopped.value.answer["reason"]


def test_sender_that_fails_ends_the_trial_with_its_reason(monkeypatch):
    def produce(orders, send, messages):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(worker_roles, "produce", produce)
    with nothing_left(), pytest.raises(NoValueError) as stopped:
        program.measure(TinyTrial("fan-in", 2))
    assert stopped.value.answer == {"kind": "exception", "reason": "OSError: [Errno 28] No space left on device"}


def test_worker_that_does_not_start_is_named(monkeypatch):
    monkeypatch.setattr(start_workers, "START_SECONDS", 0.05)
    release = threading.Event()
    monkeypatch.setattr(worker_roles, "opened", lambda channel, address: release.wait() and address)
    leave = start_workers.WorkerCrew.leave
    monkeypatch.setattr(start_workers.WorkerCrew, "leave", lambda crew: (release.set(), leave(crew)))
    with nothing_left(), pytest.raises(NoValueError, match=r"1 workers did not start within 0.05 s"):
        program.measure(TinyTrial("ping-pong", 2))


def test_memoryview_that_a_channel_does_not_take_ends_everything():
    pytest.importorskip("backports.interpreters" if sys.version_info < (3, 14) else "concurrent.interpreters")
    if sys.version_info >= (3, 14):
        pytest.skip("this Python's queue takes them")
    trial = TinyTrial("ring", 3, model="subinterpreters", channel="interpreters.Queue", form="memoryview")
    with pytest.raises(TypeError, match="cannot pickle"):
        program.measure(trial)
    assert not [thread for thread in threading.enumerate() if thread.name in {"host", "listener"}]


@pytest.mark.parametrize(("place", "size"), [(0, 8), (1, 3), (200, 1000), (7, 65536)])
def test_message_names_its_sender_and_index(place, size):
    found = worker_roles.message(place, 6, size)
    assert (len(found), found[0], found[1], found[2]) == (size, worker_roles.DATA, place, 6 % worker_roles.VARIANTS)


def test_messages_of_different_senders_differ_in_their_pattern():
    assert worker_roles.message(1, 0, 64)[worker_roles.HEADER:] != worker_roles.message(2, 0, 64)[worker_roles.HEADER:]


def test_producer_follows_its_orders():
    reading, writing = os.pipe()
    try:
        for order in (b"3", b"2", b"0"):
            worker_roles.send_frame(writing, order)
        sent = queue.SimpleQueue()
        assert worker_roles.produce(reading, sent.put, list("abcd")) == 5
        assert [sent.get_nowait() for _ in range(5)] == ["a", "b", "c", "a", "b"]
    finally:
        os.close(reading)
        os.close(writing)


# Its plan, tables, sentences, figures.


def planning_context(effort, *labels, **reasons):
    runners = dict.fromkeys(MODELS) | reasons
    return PlanningContext(
        builds=tuple(map(make_build, labels)), effort=effort, cores=2, scales=ChannelsExperiment.levels[effort].scales,
        abilities={label: Abilities(runners=runners, modules={}, isolated={}) for label in labels})


def test_full_plan_has_every_pattern_size_and_channel():
    plan = ChannelsExperiment().plan(planning_context(EffortLevel.FULL, "3.14"))
    found = [cell for cell in plan.cells if not cell.twin]
    assert {dict(cell.parameters)["bytes"] for cell in found} == {"8", "1024", "65536", "1048576"}
    assert {(dict(cell.parameters)["pattern"], cell.workers) for cell in found} == {
        ("ping-pong", 2), ("ring", 4), ("ring", 8), ("fan-in", 2), ("fan-in", 4)}
    assert len(found) == 5 * 4 * 7


def test_free_threaded_build_has_the_control_in_the_full_plan():
    plan = ChannelsExperiment().plan(planning_context(EffortLevel.FULL, "3.14t"))
    assert {cell.runner for cell in plan.cells} == {*MODELS}
    quick = ChannelsExperiment().plan(planning_context(EffortLevel.QUICK, "3.14t"))
    assert "threads" not in {cell.runner for cell in quick.cells}


def test_before_3_14_memoryviews_are_skipped():
    plan = ChannelsExperiment().plan(planning_context(EffortLevel.QUICK, "3.13"))
    (skip,) = plan.skips
    assert dict(skip.cell.parameters)["form"] == "memoryview"
    assert skip.reason == (
        "before 3.14 the queue is that of backports-interpreters, which pickles: it takes no memoryview")


def test_build_without_interpreters_has_their_reason():
    context = planning_context(EffortLevel.QUICK, "3.13", subinterpreters="needs the package backports-interpreters")
    plan = ChannelsExperiment().plan(context)
    assert {skip.reason for skip in plan.skips} == {"needs the package backports-interpreters"}
    assert "subinterpreters" not in {cell.runner for cell in plan.cells}


def made_up(*known, build="3.14", rounds=8, starved=0, noise=0.004, **told):
    """Return results of (topology, size, route, seconds), None for one that crashed; the first cell has a twin."""
    maker = RunMaker(rounds=rounds, noise=noise)
    for number, (topology, size, route, seconds) in enumerate(known):
        cell = Cell(workload="channels", runner=runner_of(make_build(build), route), workers=topology.workers,
                    build=build, parameters=tuple(parameters_of(topology, size, route).items()))
        metrics = {"poll": 0.01} if route.channel == "interpreters.Queue" else {}
        if seconds is None:
            maker.fail(cell, "crash", "died of SIGSEGV")
            continue
        half = seconds[0] if isinstance(seconds, list) else seconds * 2
        maker.measure(cell, seconds, starved=starved, **{"lap_p50": half, **metrics, **told})
        if number == 0:
            maker.twin(cell, seconds)
    return Results(maker.run((build,), options={"experiment": "channels", "effort": EffortLevel.QUICK}))


@pytest.mark.parametrize(("queue_seconds", "pipe_seconds", "sentences"), [
    (0.005, 20e-6, ("polls every 10 ms.", "the polling is slow, not the interpreters.")),
    (0.005, 0.005, ("polls every 10 ms.",)),
    (20e-6, 20e-6, ("less than the 10 ms that its get() sleeps between two polls.",)),
    (20e-6, 10e-6, ("less than the 10 ms that its get() sleeps between two polls.",)),
])
def test_sentences_on_polling_follow_the_numbers(queue_seconds, pipe_seconds, sentences):
    results = made_up((PING_PONG, 8, CROSSING, queue_seconds), (PING_PONG, 8, PIPE, pipe_seconds))
    found = ChannelsExperiment().findings(results)
    assert len(found) == len(sentences)
    assert all(sentence.endswith(end) for sentence, end in zip(found, sentences, strict=True))


def test_gain_of_a_pipe_is_the_measured_one():
    _, sentence = ChannelsExperiment().findings(made_up((PING_PONG, 8, CROSSING, 0.005), (PING_PONG, 8, PIPE, 20e-6)))
    assert re.search(r"it is about 250 times \(2[45]0( to 260)? in \d rounds\) as fast on 3\.14: the polling", sentence)


def test_gain_of_a_pipe_is_that_of_the_rounds():
    # By round 163, 200 and 240; the quotient of the medians is 240.
    polled, pipe = [0.00489, 0.005, 0.0048], [30e-6, 25e-6, 20e-6]
    _, sentence = ChannelsExperiment().findings(made_up(
        (PING_PONG, 8, CROSSING, polled), (PING_PONG, 8, PIPE, pipe), rounds=3))
    assert "it is about 200 times (160 to 240 in 3 rounds) as fast on 3.14:" in sentence


@pytest.mark.parametrize(("messages", "late"), [([198, 2000, 2000], "-"), ([200, 2000, 2000], "2.00 ms")])
def test_longest_round_trip_is_that_of_all_rounds_and_few_have_no_99th_percentile(messages, late):
    results = made_up((PING_PONG, 8, SIMPLE, 0.005), rounds=3, lap_p50=0.001, lap_p99=0.002,
                      lap_max=[0.003, 0.001, 0.001], messages=messages)   # two messages are a round trip
    table = ChannelsExperiment().sections(results)[-1]
    (row,) = table.rows
    assert [value_text(entry.value).removesuffix(" ±0 %") for entry in row[-3:]] == ["1.00 ms", late, "3.00 ms"]
    assert table.footnotes == (
        () if late != "-" else ("99 to 1,000 round trips a process: too few for a 99th percentile",))


@pytest.mark.parametrize(("copied", "shared", "words"), [
    (0.005, 0.005, "not shown to arrive sooner or later than bytes, which are copied: both wait for the next poll"),
    (0.0005, 0.0005, "not shown to arrive sooner or later than bytes, which are copied."),
    (0.0005, 0.00025, "arrives about 2.0 times ("),
    (0.0005, 0.001, "arrives about 0.50 times ("),
])
def test_sentence_on_shared_memory_follows_the_numbers(copied, shared, words):
    results = made_up((PING_PONG, 1 << 20, CROSSING, copied), (PING_PONG, 1 << 20, VIEW, shared))
    (sentence,) = ChannelsExperiment().findings(results)
    assert words in sentence


def test_what_every_round_shows_without_a_verdict_is_said_so():
    results = made_up((PING_PONG, 1 << 20, CROSSING, 0.0006), (PING_PONG, 1 << 20, VIEW, 0.0005), rounds=3, noise=0.05)
    (sentence,) = ChannelsExperiment().findings(results)
    assert sentence.endswith("than bytes, which are copied, in every round (3 of 3), but not significantly.")


@pytest.mark.parametrize(("seconds", "finds"), [(1e-6, True), (0.005, False)])
def test_sentence_on_many_senders_names_who_has_a_number(seconds, finds):
    results = made_up((FAN_IN, 1024, CROSSING, seconds), (FAN_IN, 1024, SIMPLE, 1e-6),
                      (FAN_IN, 1024, PROCESS_QUEUE, None))
    (sentence,) = ChannelsExperiment().findings(results)
    assert sentence.startswith(
        "4 senders to one receiver deliver, in messages of 1024 bytes through queues: between threads ")
    assert "between processes" not in sentence
    assert sentence.endswith("; each poll of the interpreters' queue then finds a message.") is finds


@pytest.mark.parametrize("changes", [{"rounds": 2}, {"starved": 5}])
def test_too_few_rounds_give_no_sentence_that_compares(changes):
    results = made_up((PING_PONG, 8, CROSSING, 0.005), (PING_PONG, 8, PIPE, 2e-5),
                      (PING_PONG, 1 << 20, CROSSING, 0.005), (PING_PONG, 1 << 20, VIEW, 2e-5), **changes)
    assert not [sentence for sentence in ChannelsExperiment().findings(results) if "times as fast" in sentence]


def shown(table):
    return [tuple(entry.value if isinstance(entry.value, str) else entry.value.unit for entry in row)
            for row in table.rows]


def test_tables_have_seconds_for_rings_and_rates_for_many_senders():
    results = made_up((PING_PONG, 8, SIMPLE, 1e-5), (PING_PONG, 8, CROSSING, None),
                      (Topology("ring", 8), 8, PIPE, 1e-5),
                      (FAN_IN, 1 << 20, SIMPLE, 1e-3))
    seconds, rates, bulk, trips = ChannelsExperiment().sections(results)
    assert shown(seconds) == [
        ("ping-pong of 2", "8 B", "threads", "SimpleQueue", "seconds"),
        ("ping-pong of 2", "8 B", "subinterpreters", "interpreters.Queue", "failed"),
        ("ring of 8", "8 B", "subinterpreters", "os.pipe", "seconds"),
    ]
    assert seconds.footnotes == ("round 1: crash: died of SIGSEGV",)
    assert shown(rates) == [("4 to one", "1 MiB", "threads", "SimpleQueue", "/s")]
    assert bulk.rows[0][-1].value.unit == " MiB/s"
    assert bulk.rows[0][-1].value.value == pytest.approx(1000, rel=0.15)   # 1 MiB a ms; the made-up machine drifts
    assert shown(trips)[1][3:] == ("failed",) * 4


def test_control_has_rows_of_its_own():
    results = made_up((PING_PONG, 8, SIMPLE, 1e-5), (PING_PONG, 8, CONTROLS[0], 2e-5), build="3.14t")
    assert [row[2] for row in shown(ChannelsExperiment().sections(results)[0])] == ["threads", "threads, GIL on"]


def test_one_size_is_drawn_as_dots_and_several_as_lines():
    one = made_up((FAN_IN, 8, SIMPLE, 1e-6), (FAN_IN, 8, CROSSING, None))
    (dots,) = figures_of(ChannelsExperiment(), one.run, None)
    assert isinstance(dots, CategoryFigure)
    assert dots.panels[0].categories == ("SimpleQueue", "interpreters.Queue")
    assert [(each.name, each.x, str(each.y[0]) == "nan") for each in dots.panels[0].series] == [
        ("threads", (0.0,), False), ("subinterpreters", (1.0,), True)]
    several = made_up((FAN_IN, 8, SIMPLE, 1e-6), (FAN_IN, 1024, SIMPLE, 2e-6))
    (lines,) = figures_of(ChannelsExperiment(), several.run, None)
    assert isinstance(lines, LineFigure)
    assert lines.panels[0].series[0].x == (8.0, 1024.0)


def test_figure_has_a_rule_where_the_queue_looks_again():
    over_sizes, over_members = ChannelsExperiment().figures(made_up(
        (PING_PONG, 8, CROSSING, 0.005), (Topology("ring", 4), 8, CROSSING, 0.005)))
    assert [rule.value for rule in over_sizes.panels[0].rules] == [0.01]
    assert over_members.panels[0].series[0].x == (2.0, 4.0)


def test_report_of_a_quick_run():
    """Threads in 8 µs, pipes in 15 µs and 2 GB/s, the interpreters' queue at its next look; one cell crashed."""
    builds, maker = ("3.13", "3.14", "3.14t"), RunMaker()
    plan = ChannelsExperiment().plan(planning_context(EffortLevel.QUICK, *builds))
    for each in plan.cells:
        of = dict(each.parameters)
        seconds = 8e-6 if each.runner in {"threads", "free-threaded"} else 15e-6 + int(of["bytes"]) / 2e9
        metrics = {}
        if of["channel"] == "interpreters.Queue":
            seconds, metrics = 2e-6 if of["pattern"] == "fan-in" else 5.1e-3, {"poll": 0.01}
        if (each.build, of["form"]) == ("3.14t", "memoryview"):
            maker.fail(each, "crash", "died of SIGSEGV")
        else:
            maker.measure(each, seconds, lap_p50=2 * seconds, lap_p99=3 * seconds, lap_max=4 * seconds, **metrics)
    for skip in plan.skips:
        maker.skip(skip.cell, skip.reason)
    results = Results(maker.run(builds, options={"effort": EffortLevel.QUICK}))
    check_golden("channels.txt", ChannelsExperiment(), results)
