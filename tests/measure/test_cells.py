"""Every point of the matrix is a cell or a skip with its reason."""

import dataclasses
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gilscope.toolkit.errors import UnknownNameError
from gilscope.toolkit.measure.abilities import Abilities
from gilscope.toolkit.measure.cells import BASELINE, PlannedSubject, Selection, baseline_of, choose_runners, expand
from gilscope.toolkit.model import Phase
from gilscope.workloads.catalog import WORKLOADS
from tests.fakes import make_build


def runner(name, *, awaits=False, shares=()):
    family = "processes" if name.startswith("processes-") else ""
    return SimpleNamespace(name=name, awaits=awaits, shares=frozenset(shares), family=family,
                           isolated=name == "subinterpreters",
                           pickles=name == "subinterpreters" or bool(family))


RUNNERS = (runner("serial", shares=["counter"]), runner("threads", shares=["counter"]), runner("subinterpreters"),
           runner("processes-spawn"), runner("processes-fork"), runner("asyncio", awaits=True, shares=["counter"]))
NAMES = tuple(each.name for each in RUNNERS)


def abilities(no_runners=(), no_modules=(), no_isolated=()):
    return Abilities(runners={name: f"no {name} here" if name in no_runners else None for name in NAMES},
                     modules={"numpy": "no numpy here" if "numpy" in no_modules else None},
                     isolated={"numpy": "no numpy in an interpreter" if "numpy" in no_isolated else None})


def selection(**changes):
    fields = {"workloads": (), "user": None, "models": NAMES, "workers": (1, 2), "phases": (Phase.STEADY,),
              "size": "small"}
    return Selection(**fields | changes)


def plan(subject, *, builds=("3.14", "3.14t"), able=None, **changes):
    made = [make_build(label) for label in builds]
    return expand(selection(**changes), [subject], made, RUNNERS, able or {label: abilities() for label in builds})


PLAIN = PlannedSubject("plain", has_sync=True, has_async=False)


def names(cells):
    return [(each.build, each.runner, each.workers) for each in cells]


def test_every_runner_has_every_number_of_workers():
    found = names(cell for cell in plan(PLAIN, builds=["3.14"]).cells if not cell.twin)
    assert found == [("3.14", "serial", 1), ("3.14", "threads", 1), ("3.14", "threads", 2),
                     ("3.14", "subinterpreters", 1), ("3.14", "subinterpreters", 2),
                     ("3.14", "processes-spawn", 1), ("3.14", "processes-spawn", 2),
                     ("3.14", "processes-fork", 1), ("3.14", "processes-fork", 2),
                     ("3.14", "asyncio", 1)]   # nothing to await: more in flight is the same


def test_event_loop_without_anything_to_await_is_skipped_where_one_worker_is_not_asked_for():
    found = plan(PLAIN, builds=["3.14"], workers=(2, 4))
    assert "asyncio" not in {cell.runner for cell in found.cells}
    (skip,) = [each for each in found.skips if each.cell.runner == "asyncio"]
    assert skip.cell.workers == 4
    assert "one after another" in skip.reason


def test_control_can_be_left_out():
    found = plan(PLAIN, models=("threads", "processes-fork"), workers=(2,), controls=False)
    assert names(cell for cell in found.cells if not cell.twin) == [
        ("3.14", "serial", 1), ("3.14", "threads", 2), ("3.14", "processes-fork", 2),
        ("3.14t", "serial", 1), ("3.14t", "processes-fork", 2)]
    assert [(each.cell.build, each.cell.runner) for each in found.skips if "control" in each.reason] == [
        ("3.14t", "threads")]


def test_event_loop_with_something_to_await_has_every_number_in_flight():
    found = plan(dataclasses.replace(PLAIN, has_async=True), models=("asyncio",))
    assert [cell.workers for cell in found.cells if cell.runner == "asyncio" and cell.build == "3.14"] == [1, 2]


def test_twins_are_the_first_baseline_and_the_widest_parallel_cell():
    twins = [cell for cell in plan(PLAIN, models=("threads", "subinterpreters")).cells if cell.twin]
    assert names(twins) == [("3.14", "serial", 1), ("3.14t", "subinterpreters", 2)]


def test_twin_is_an_event_loop_only_where_nothing_else_is_wide():
    both = dataclasses.replace(PLAIN, has_async=True)
    for models, expected in ((("threads", "asyncio"), "threads"), (("asyncio",), "asyncio")):
        twins = [cell for cell in plan(both, models=models).cells if cell.twin]
        assert names(twins) == [("3.14", "serial", 1), ("3.14t", expected, 2)]


def test_baseline_is_there_though_nobody_asked():
    assert [cell.runner for cell in plan(PLAIN, models=("threads",)).cells if not cell.twin] == [
        "serial", "threads", "threads"] * 2


@pytest.mark.parametrize(("subject", "able", "runner_name", "reason"), [
    (PLAIN, abilities(no_runners=["threads"]), "threads", "no threads here"),
    (dataclasses.replace(PLAIN, shared="counter"), abilities(), "subinterpreters",
     "its workers cannot share a counter"),
    (dataclasses.replace(PLAIN, has_sync=False, has_async=True), abilities(), "threads",
     "it is a coroutine function: only asyncio awaits it"),
    (dataclasses.replace(PLAIN, requires=("numpy",)), abilities(no_modules=["numpy"]), "threads", "no numpy here"),
    (dataclasses.replace(PLAIN, requires=("numpy",)), abilities(no_isolated=["numpy"]), "subinterpreters",
     "no numpy in an interpreter"),
    (dataclasses.replace(PLAIN, has_async=True, async_requires=("numpy",)), abilities(no_modules=["numpy"]), "asyncio",
     "no numpy here"),
])
def test_skip_has_the_reason(subject, able, runner_name, reason):
    found = plan(subject, builds=["3.14"], able={"3.14": able})
    assert {skip.reason for skip in found.skips if skip.cell.runner == runner_name} == {reason}
    assert runner_name not in {cell.runner for cell in found.cells}


@pytest.mark.parametrize(("subject", "able"), [
    (dataclasses.replace(PLAIN, requires=("numpy",)), abilities(no_isolated=["numpy"])),   # main interpreter: loads
    (dataclasses.replace(PLAIN, has_async=True, async_requires=("numpy",)), abilities(no_modules=["numpy"])),
])
def test_need_of_another_model_skips_nothing_here(subject, able):
    assert "threads" in {cell.runner for cell in plan(subject, builds=["3.14"], able={"3.14": able}).cells}


def test_task_length_needs_adjustable_tasks():
    found = plan(PLAIN, task_seconds=(0.001, 0.01))
    assert not found.cells
    reasons = {skip.reason for skip in found.skips}
    assert reasons == {"its tasks have no adjustable length (gilscope list shows which have)"}


def test_task_lengths_and_phases_are_separate_matrices_with_twins_of_their_own():
    adjustable = dataclasses.replace(PLAIN, has_units=True)
    found = plan(adjustable, builds=["3.14"], models=("threads",), task_seconds=(0.001, 0.01), phases=tuple(Phase))
    groups = {(cell.phase, cell.task_seconds) for cell in found.cells}
    assert groups == {(phase, seconds) for phase in Phase for seconds in (0.001, 0.01)}
    for group in groups:
        members = [cell for cell in found.cells if (cell.phase, cell.task_seconds) == group]
        assert names(cell for cell in members if cell.twin) == [("3.14", "serial", 1), ("3.14", "threads", 2)]


subsets = st.sets(st.sampled_from(NAMES))


@given(data=st.data(), models=st.sets(st.sampled_from(NAMES), min_size=1),
       workers=st.sets(st.integers(1, 64), min_size=1),
       forms=st.sampled_from([(True, False), (False, True), (True, True)]), shared=st.sampled_from([None, "counter"]),
       builds=st.sampled_from([("3.14",), ("3.14", "3.14t"), ("3.12", "3.13", "3.15t")]))
def test_every_point_is_either_a_cell_or_a_skip(data, models, workers, forms, shared, builds):
    able = {label: abilities(data.draw(subsets), *data.draw(st.tuples(*[st.sets(st.just("numpy"))] * 2)))
            for label in builds}
    subject = PlannedSubject("made-up", has_sync=forms[0], has_async=forms[1], shared=shared, requires=("numpy",))
    found = plan(subject, builds=builds, able=able, models=tuple(models), workers=tuple(sorted(workers)))

    cells = [cell for cell in found.cells if not cell.twin]
    skipped = [skip.cell for skip in found.skips]
    assert len({*cells, *skipped}) == len(cells) + len(skipped)
    for label in builds:
        for each in RUNNERS:
            points = sorted(cell.workers for cell in (*cells, *skipped)
                            if (cell.build, cell.runner) == (label, each.name))
            if each.name == BASELINE:
                assert points == [1]
            elif each.awaits and not subject.has_async and each.name in models:
                assert points == ([1] if 1 in workers else [max(workers)])   # the latter is a skip
                assert all(cell.workers == 1 for cell in cells if cell.runner == each.name)
            else:
                asked = {1, *workers} if each.awaits and not subject.has_sync else workers
                assert points == (sorted(asked) if each.name in models else [])
    assert all(skip.reason for skip in found.skips)
    twins = [cell for cell in found.cells if cell.twin]
    assert all(dataclasses.replace(twin, twin=False) in cells for twin in twins)
    assert any(twin.runner == BASELINE for twin in twins) == any(cell.runner == BASELINE for cell in cells)
    assert any(twin.workers > 1 for twin in twins) == any(cell.workers > 1 for cell in cells)


def test_workload_of_the_catalog_becomes_a_subject():
    for workload in WORKLOADS:
        subject = PlannedSubject.of(workload)
        assert subject.has_sync
        assert subject.has_async == (workload.async_task is not None)
        assert subject.has_units == (workload.units is not None)


@pytest.mark.parametrize(("asked", "chosen"), [
    (["threads"], ("threads",)),
    (["processes"], ("processes-spawn", "processes-fork")),
    (["processes-fork", "processes"], ("processes-fork", "processes-spawn")),
    (["threads", "threads"], ("threads",)),
])
def test_models_are_chosen_by_name_or_family(asked, chosen):
    assert choose_runners(asked, RUNNERS) == chosen


@pytest.mark.parametrize(("name", "hint"), [
    ("subinterpeters", "did you mean 'subinterpreters'?"), ("thread", "did you mean 'threads'?"),
    ("xyz", "there are serial, "),
    ("process", "did you mean"),
])
def test_unknown_model_gets_a_hint(name, hint):
    with pytest.raises(UnknownNameError, match=f"unknown model '{name}'.*{hint.replace('?', '.')}"):
        choose_runners([name], RUNNERS)


def test_coroutine_function_is_compared_with_one_task_in_flight():
    awaited = dataclasses.replace(PLAIN, has_sync=False, has_async=True)
    assert (baseline_of([PLAIN]), baseline_of([awaited])) == (BASELINE, "asyncio")
    cells = [cell for cell in plan(awaited, workers=(4,)).cells if not cell.twin and cell.build == "3.14"]
    assert [(cell.runner, cell.workers) for cell in cells] == [("asyncio", 1), ("asyncio", 4)]
