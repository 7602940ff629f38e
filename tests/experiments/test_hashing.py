"""`hashing`: what is certain of a tiny run, its program's refusals, and its tables and sentences from made-up runs."""

import contextlib
import sys

import pytest

from gilscope.toolkit.experiments.base import EffortLevel, PlanningContext
from gilscope.toolkit.experiments.hashing import program
from gilscope.toolkit.experiments.hashing.experiment import HashingExperiment, size_text
from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.measure.abilities import Abilities
from gilscope.toolkit.measure.child.base import NoValueError, gil_enabled
from gilscope.toolkit.measure.child.program import BlockTime
from gilscope.toolkit.model import Cell
from gilscope.toolkit.report.document import Banner
from tests.experiments.golden import check_golden
from tests.fakes import RunMaker, make_build

KIB, MIB = 1024, 1024 * 1024


class TinyTrial:
    """A trial without a measured process around it."""

    def __init__(self, model, workers, **parameters):
        self.model, self.workers, self.parameters = model, workers, parameters
        self.scales = {"work": 0.001}

    def count(self, name):
        return int(self.parameters[name])

    def progress(self):
        pass

    def stop(self, reason, kind="unavailable"):
        raise NoValueError(kind, reason)

    @contextlib.contextmanager
    def measuring(self):
        yield BlockTime(wall=0.5, cpu=0.25)


def test_every_cell_has_a_value(run_smoke):
    smoke = run_smoke("hashing")
    assert not smoke.results.run.failures
    for cell in smoke.results.cells():
        assert smoke.results.value(cell) or smoke.results.absence(cell).word == "starved", cell


def test_gil_build_lets_go_of_the_gil_from_2048_bytes_on_but_not_below(run_smoke):
    smoke = run_smoke("hashing")
    cell = smoke.results.find(build=smoke.gil, runner="serial", workers=1, bytes="2048")
    sizes = [dict(each.observations[0].metrics)["gil_let_go_from"] for each in smoke.results.run.measurements
             if each.cell == cell]
    # It is seen when the system lets another thread run meanwhile: at the first attempt, unless it is very busy.
    sizes += [program.smallest_releasing_size(program.PROBED) for _ in range(0 if sizes[0] else 20)]
    assert {2048, 2049} & set(sizes)   # 3.15 has the latter
    assert 2047 not in sizes


def test_build_without_the_gil_has_none_to_let_go_of(run_smoke):
    smoke = run_smoke("hashing")
    cell = smoke.results.find(build=smoke.free, runner="serial", workers=1, bytes="2048")
    assert smoke.results.metrics(cell, "gil_let_go_from") == {}


@pytest.mark.skipif(gil_enabled() is False, reason="this Python has no GIL to keep")
def test_probe_knows_what_keeps_the_gil():
    interval = sys.getswitchinterval()
    assert program.smallest_releasing_size((64, 1 * MIB)) == 1 * MIB
    assert program.smallest_releasing_size((64, 2047)) == 0
    assert sys.getswitchinterval() == interval


@pytest.mark.parametrize(("size", "work", "expected"), [
    (128 * MIB, 0.001, 1),                                      # one message takes longer than all the work
    (2000, 1.0, round(0.125 / (0.25e-6 + 2000 / 1.5e9))),       # an eighth of the work for each of eight messages
])
def test_passes_depend_on_size_and_work_alone(size, work, expected):
    assert program.passes(size, work) == expected


@pytest.mark.parametrize(("model", "workers", "parameters"), [
    ("serial", 1, {}), ("threads", 8, {"object": "shared"}), ("threads", 4, {"object": "copy"}),
])
def test_value_is_for_the_eight_messages_once(model, workers, parameters):
    taken = program.measure(TinyTrial(model, workers, bytes="100", **parameters))
    times = program.passes(100, 0.001)
    assert times > 1
    assert (taken.seconds, taken.cpu, taken.metrics["passes"]) == (0.5 / times, 0.25 / times, times)


@pytest.mark.parametrize(("size", "model", "cores"), [
    ("2047", "threads", 1), ("2048", "threads", 4), ("64", "free-threaded", 4),
])
def test_cores_are_wanted_where_threads_can_use_them(size, model, cores):
    assert program.measure(TinyTrial(model, 4, bytes=size, object="shared")).wanted_cores == cores


@pytest.mark.parametrize("wrong", [b"another digest", None])
def test_digest_that_differs_from_the_serial_one_is_a_wrong_result(monkeypatch, wrong):
    monkeypatch.setattr(program, "hash_times", lambda message, times: wrong)
    with pytest.raises(NoValueError) as stopped:
        program.measure(TinyTrial("threads", 2, bytes="64", object="shared"))
    assert stopped.value.answer == {
        "kind": "wrong-result", "reason": "8 of 8 digests differ from the serial one, of 8 messages"}


def test_thread_that_dies_before_it_hashes_ends_the_trial(monkeypatch):
    def fail(message, times):
        raise MemoryError

    monkeypatch.setattr(program, "hash_times", fail)
    monkeypatch.setattr("threading.excepthook", lambda args: None)
    with pytest.raises(NoValueError, match="a thread ended before it hashed"):
        program.measure(TinyTrial("threads", 2, bytes="64", object="shared"))


def test_missing_memory_skips_the_cell_with_the_numbers(monkeypatch):
    monkeypatch.setattr(program, "available_memory", lambda: 1000 * MIB)
    with pytest.raises(NoValueError) as stopped:
        program.measure(TinyTrial("threads", 8, bytes=str(128 * MIB), object="copy"))
    assert stopped.value.answer == {
        "kind": "unavailable", "reason": "needs 1152 MiB of memory, 1000 MiB are available"}


def planning_context(effort, *labels):
    yes = dict.fromkeys(("serial", "threads", "free-threaded"))
    return PlanningContext(
        builds=tuple(map(make_build, labels)), effort=effort, cores=2, scales=HashingExperiment.levels[effort].scales,
        abilities={label: Abilities(runners=yes, modules={}, isolated={}) for label in labels})


def test_full_plan_is_the_issues_grid():
    plan = HashingExperiment().plan(planning_context(EffortLevel.FULL, "3.14"))
    cells = [cell for cell in plan.cells if not cell.twin]
    sizes = {64, 2047, 2048, 2049, 64 * KIB, 4 * MIB, 128 * MIB}
    assert {int(dict(cell.parameters)["bytes"]) for cell in cells} == sizes
    assert {(cell.workers, dict(cell.parameters)["object"]) for cell in cells if cell.runner == "threads"} == {
        (1, "shared"), (2, "shared"), (4, "shared"), (8, "shared"), (2, "copy"), (4, "copy"), (8, "copy")}
    assert len(cells) == len(sizes) * 8   # and the serial one


def test_control_is_in_the_full_plan_alone():
    for effort, models in ((EffortLevel.FULL, {"serial", "free-threaded", "threads"}),
                           (EffortLevel.QUICK, {"serial", "free-threaded"})):
        assert {cell.runner for cell in HashingExperiment().plan(planning_context(effort, "3.14t")).cells} == models


def test_quick_plan_leaves_the_large_messages_out():
    cells = HashingExperiment().plan(planning_context(EffortLevel.QUICK, "3.14")).cells
    assert max(int(dict(cell.parameters)["bytes"]) for cell in cells) == 64 * KIB


def cell(build, model, workers, **parameters):
    return Cell(workload="hashing", runner=model, workers=workers, build=build, parameters=tuple(parameters.items()))


def made_up(build="3.14", *, gains, rounds=8, gone=0, passes=1e6, let_go_from=None, one_thread=False):
    """Return results in which one message after the other takes 1 µs for 64 bytes, as long as 64 KiB do.

    `gains` are the speed-ups of two threads, by (size, object).
    """
    maker, model = RunMaker(rounds=rounds), "free-threaded" if build.endswith("t") else "threads"
    for size in dict.fromkeys(size for size, _ in gains):
        serial = cell(build, "serial", 1, bytes=str(size))
        metrics = {} if let_go_from is None or size != 2048 else {"gil_let_go_from": let_go_from}
        maker.measure(serial, 1e-6, passes=passes, **metrics)
        maker.twin(serial, 1e-6)
    for (size, how), gain in gains.items():
        two = cell(build, model, 2, bytes=str(size), object=how)
        if gain is None:
            maker.fail(two, "wrong-result", "a digest differs")
        else:
            maker.measure(two, 1e-6 / gain, passes=passes, starved=gone)
    return Results(maker.run((build,), options={"experiment": "hashing", "effort": EffortLevel.QUICK}))


@pytest.mark.parametrize(("size", "build", "words"), [
    (2048, "3.14", "3.14: hashlib releases the GIL for messages of 2048 bytes or more."),
    (2049, "3.15", "its source now has `> 2048` instead of `>= 2048`."),
    (2049, "3.14", "for messages of 2049 bytes or more."),   # seen, but not what its source says: no cause is given
])
def test_threshold_is_what_was_seen(size, build, words):
    (sentence,) = HashingExperiment().findings(made_up(build, gains={(2048, "shared"): 1.0}, let_go_from=size))
    assert sentence.endswith(words)


def test_nothing_seen_is_nothing_said():
    assert HashingExperiment().findings(made_up(gains={(2048, "shared"): 1.0}, let_go_from=0)) == ()


@pytest.mark.parametrize(("gain", "words"), [
    (1.96, "without threads: at least nearly as large a gain as claimed for 128 MiB (1.96x, not measured here)."),
    (1.9, "without threads: nearly as large a gain as claimed for 128 MiB (1.96x, not measured here)."),
    (1.805, "the gain claimed for 128 MiB (1.96x, not measured here) is excluded, and one nearly as large is not."),
    (1.0, "the gain of 2021 is not reproduced here."),
    (1.4, "they gain, but less than in 2021 (1.96x)."),
    (0.5, "the gain of 2021 is not reproduced here."),
])
def test_sentence_on_large_messages_follows_the_numbers(gain, words):
    (sentence,) = HashingExperiment().findings(made_up(gains={(64 * KIB, "shared"): gain}))
    assert sentence.startswith("Two threads hash messages of 64 KiB ")
    assert sentence.endswith(words)


def test_gain_that_noise_does_not_exclude_is_not_called_equal():
    maker = RunMaker(rounds=6, noise=0.05)
    maker.measure(cell("3.14", "serial", 1, bytes=str(64 * KIB)), 1e-6)
    for how in ("shared", "copy"):
        maker.measure(cell("3.14", "threads", 2, bytes=str(64 * KIB), object=how), 1e-6 / 1.9)
    (sentence,) = HashingExperiment().findings(HashingExperiment().results(maker.run(("3.14",))))
    assert sentence.endswith(": the gain claimed for 128 MiB (1.96x, not measured here) is not excluded.")


def test_gil_build_names_what_keeps_the_gil():
    gains = {(64 * KIB, "shared"): 1.9, (2047, "shared"): 0.95}
    _, sentence = HashingExperiment().findings(made_up(gains=gains))
    assert sentence.startswith("With messages of 2047 B, for which hashlib keeps the GIL, they are 0.951x [")


def test_build_without_the_gil_keeps_none():
    gains = {(64 * KIB, "shared"): 1.9, (2047, "shared"): 1.9}
    (sentence,) = HashingExperiment().findings(made_up("3.14t", gains=gains))
    assert "2047" not in sentence


@pytest.mark.parametrize(("shared", "own", "words"), [
    (0.9, 1.8, "contend for its reference count"), (1.8, 1.8, "no gain of the copies is shown"),
    (1.8, 0.9, "no gain of the copies is shown"),
])
def test_sentence_on_the_shared_object_follows_the_numbers(shared, own, words):
    (sentence,) = HashingExperiment().findings(made_up("3.14t", gains={(64, "shared"): shared, (64, "copy"): own}))
    assert words in sentence


@pytest.mark.parametrize("changes", [{"rounds": 2}, {"gone": 5}])
def test_too_few_rounds_give_no_sentence(changes):
    gains = {(64, "shared"): 0.9, (64, "copy"): 1.8, (64 * KIB, "shared"): 1.9}
    assert HashingExperiment().findings(made_up("3.14t", gains=gains, **changes)) == ()


def test_sizes_have_their_own_noise():
    maker = RunMaker(rounds=3)
    for size, noise in ((64, 0.3), (64 * KIB, 0.01)):
        maker.noise = noise
        for build, model in (("3.14", "threads"), ("3.14t", "free-threaded")):
            maker.measure(cell(build, "serial", 1, bytes=str(size)), 1e-6)
            maker.measure(cell(build, model, 2, bytes=str(size), object="shared"), 1e-6 / 1.5)
            maker.measure(cell(build, model, 2, bytes=str(size), object="copy"), 1e-6 / 1.5)
    results = HashingExperiment().results(maker.run(("3.14", "3.14t")))
    short, long = (results.compare(cell("3.14", "serial", 1, bytes=str(size)),
                                   cell("3.14", "threads", 2, bytes=str(size), object="shared"))
                   for size in (64, 64 * KIB))
    assert long.hi / long.lo < 1.1, "1 % of noise in three rounds, with that of the other cells of this size"
    assert short.hi / short.lo > 1.5
    smallest, largest = results.floors()["wall"].range
    assert smallest < 0.05
    assert largest > 0.3


def texts(table):
    return [[entry.value if isinstance(entry.value, str) else getattr(entry.value, "unit", "ratio") for entry in row]
            for row in table.rows]


def test_sizes_of_the_source_stand_in_the_tables_even_when_they_were_not_measured():
    seconds, gains = HashingExperiment().sections(made_up(gains={(64, "shared"): 1.0, (64, "copy"): 1.0}))
    assert texts(seconds) == [
        ["64 B", "", "serial", "seconds", ""],
        ["64 B", "one object", "2", "seconds", ""], ["64 B", "a copy each", "2", "seconds", ""],
        ["128 MiB", "one object", "1", "-", "3.30 s"], ["128 MiB", "one object", "2", "-", "1.68 s"],
        ["128 MiB", "one object", "4", "-", "1.50 s"], ["128 MiB", "one object", "8", "-", "1.60 s"],
    ]
    assert texts(gains)[2:] == [
        ["128 MiB", "one object", "2", "-", "1.96x"], ["128 MiB", "one object", "4", "-", "2.20x"],
        ["128 MiB", "one object", "8", "-", "2.06x"],
    ]
    assert seconds.footnotes == ("the published size, which only the full experiment measures",)


def test_source_stands_beside_its_own_size():
    seconds, gains = HashingExperiment().sections(made_up(gains={(128 * MIB, "shared"): 1.9, (128 * MIB, "copy"): 1.9}))
    assert [row[-1] for row in texts(seconds)] == ["", "1.68 s", ""]
    assert [row[-1] for row in texts(gains)] == ["1.96x", ""]


@pytest.mark.parametrize(("libraries", "words"), [
    (("OpenSSL 3.0.20", "OpenSSL 3.5.1", "OpenSSL 3.5.1"), "times: 3.13: OpenSSL 3.0.20; 3.14, 3.14t: OpenSSL 3.5.1"),
    (("_sha2", "_sha2", "_sha2"), None),
])
def test_builds_that_hash_with_other_code_are_named(libraries, words):
    maker, builds = RunMaker(), ("3.13", "3.14", "3.14t")
    for build, library in zip(builds, libraries, strict=True):
        maker.measure(cell(build, "serial", 1, bytes="64"), 1e-6, passes=1e6, library=library)
    sections = HashingExperiment().sections(Results(maker.run(builds)))
    banners = [each.text for each in sections if isinstance(each, Banner)]
    assert [text.endswith(words) for text in banners] == ([] if words is None else [True])


def test_short_tasks_are_marked():
    # 20 ms for each of two threads: 1 µs a pass, 40,000 passes.
    _, gains = HashingExperiment().sections(made_up(gains={(64, "shared"): 1.0}, passes=40_000))
    assert gains.footnotes[0].startswith("less than 25.0 ms of work per thread")
    _, gains = HashingExperiment().sections(made_up(gains={(64, "shared"): 1.0}, passes=60_000))
    assert not any("per thread" in note for note in gains.footnotes)


def test_failed_cell_has_its_reason_and_a_cross():
    results = made_up(gains={(64, "shared"): None, (64, "copy"): 1.0})
    _, gains = HashingExperiment().sections(results)
    assert texts(gains)[0][3] == "failed"
    assert "round 1: wrong-result: a digest differs" in gains.footnotes
    (figure,) = HashingExperiment().figures(results)
    assert [str(value) for series in figure.panels[0].series[:1] for value in series.y] == ["nan"]


def test_figure_has_the_source_where_its_size_is():
    (figure,) = HashingExperiment().figures(made_up(gains={(64, "shared"): 1.0, (64, "copy"): 1.0}))
    history = figure.panels[0].series[-1]
    assert (history.x, history.y) == ((1.0,), (3.30 / 1.68,))
    assert [text for _, text in figure.x.ticks] == ["64", "128 Mi"]


def test_control_is_compared_with_its_own_single_thread():
    maker = RunMaker()
    for model, workers, seconds in (("serial", 1, 4e-6), ("free-threaded", 2, 2e-6), ("threads", 1, 3e-6),
                                    ("threads", 2, 1e-6)):
        parameters = {"bytes": "64"} | ({} if model == "serial" else {"object": "shared"})
        maker.measure(cell("3.14t", model, workers, **parameters), seconds, passes=1e6)
    _, gains = HashingExperiment().sections(Results(maker.run(("3.14t",))))
    two = next(row for row in gains.rows if row[2].value == "2")
    assert [round(entry.value.comparison.ratio, 1) for entry in two[3:5]] == [2.0, 3.0]


@pytest.mark.parametrize(("size", "text"), [(2047, "2047 B"), (64 * KIB, "64 KiB"), (128 * MIB, "128 MiB")])
def test_sizes_at_the_threshold_are_not_rounded(size, text):
    assert size_text(size) == text




@pytest.mark.parametrize("effort", [EffortLevel.QUICK, EffortLevel.FULL])
def test_report_of_a_run(effort):
    """Two cores at 1.5 GB/s; 3.14t's threads wait for each other at one small object, and 3.15 lets go a byte later."""
    builds, maker = ("3.14", "3.14t", "3.15"), RunMaker()
    for each in HashingExperiment().plan(planning_context(effort, *builds)).cells:
        size, how = int(dict(each.parameters)["bytes"]), dict(each.parameters).get("object")
        together = each.runner == "free-threaded" or size >= (2049 if each.build == "3.15" else 2048)
        gain = min(2, each.workers) * 0.95 if together and each.workers > 1 else 1.0
        if each.runner == "free-threaded" and (size, how) == (64, "shared") and each.workers > 1:
            gain = 0.9
        metrics = {"passes": 1e6 if size < 100_000 else 1, "library": "OpenSSL 3.5.1"}
        if size == 2048 and each.runner != "free-threaded" and not (each.runner == "serial" and each.build == "3.14t"):
            metrics["gil_let_go_from"] = 2049 if each.build == "3.15" else 2048
        if how == "copy" and each.workers == 8 and size > 100 * MIB:
            maker.skip(each, "needs 1152 MiB of memory, 1000 MiB are available")
        else:
            maker.measure(each, 8 * (0.25e-6 + size / 1.5e9) / gain, **metrics)
    check_golden(f"hashing-{effort}.txt", HashingExperiment(), Results(maker.run(builds, options={"effort": effort})))
