"""No test judges by the clock: it waits for an event as long as `PATIENCE`, or stands in a list here with its reason.

Programs in string literals are not read.
"""

import ast
from pathlib import Path

import pytest

from tests.patience import PATIENCE

pytestmark = pytest.mark.newest

TESTS = Path(__file__).parent
NOT_TESTS = ("corpus", "benchmarks", "golden")
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "time",
          "time_ns", "thread_time", "thread_time_ns"}
WAITS = {"wait", "join", "result"}   # whose one argument is a limit

REASONS = {   # why: the places, each a file and a function
    "An option's value: what runs is a fake or a virtual clock, and nothing waits for it.": (
        "commands/test_compare_again.py::module",
        "commands/test_dry_run.py::module",
        "commands/test_run.py::module",
        "commands/test_run_sessions.py::module",
        "experiments/test_http_load.py::test_requests_of_all_users_are_spread_evenly",
        "experiments/test_http_load.py::test_stall_shows_in_every_latency_that_it_caused",
        "experiments/test_results.py::test_request_survives_json",
        "experiments/test_scaling.py::module",
        "measure/bursts.py::simulate",
        "measure/test_disturbance.py::test_retake_has_an_order_of_its_own",
        "measure/test_scheduler.py::test_rounds_have_different_orders_that_the_seed_gives_again",
        "measure/test_scheduler.py::test_run_goes_on_as_it_would_have",
        "measure/test_scheduler.py::test_spec_says_all_of_its_cell",
        "measure/test_settings.py::module",
        "measure/test_trial.py::module",
    ),
    "It looks again in a moment until something is there or gone that no event tells, for long.": (
        "patience.py::wait_until",
        "measure/usercode/gated.py::wait_for_go",
        "measure/usercode/hoarding.py::hold",
        "race/whole/test_command_runs.py::is_gone",
    ),
    "A task that lasts until it is ended, or long enough to be measured.": (
        "conformance/tasks.py::mark_and_sleep",
        "conformance/tasks.py::mark_and_sleep_async",
        "executor/tasks.py::nap_after",
        "measure/usercode/gated.py::wait_at_once",
        "measure/usercode/gated.py::work",
        "measure/usercode/turning.py::nap",
        "measure/usercode/waiting.py::print_and_sleep",
        "measure/usercode/waiting.py::sleep",
    ),
    "Processor time that is used up, by the clock that counts it.": (
        "measure/usercode/hoarding.py::burn",
        "measure/usercode/turning.py::burn",
        "measure/usercode/waiting.py::compute",
        "test_cores.py::test_scheduled_counts_what_the_thread_ran",
    ),
    "A program that is disturbed for as long as its caller says.": (
        "race/core/cases/same.py::interrupted",
        "race/core/transient_keys.py::churn",
        "race/core/transient_keys.py::replace",
    ),
    "A limit that must run out: the test is about what follows.": (
        "executor/cases.py::case_futures",
        "executor/cases.py::case_map",
        "experiments/test_http_load.py::test_server_that_never_answers_does_not_hold_the_generator",
        "measure/test_turns.py::test_nothing_is_late_while_others_have_their_turn",
        "processes/test_supervised.py::test_a_limit_ends_it_with_all_that_it_started",
        "race/core/cases/lock_fidelity.py::case_reentrant_lock_of_a_condition_comes_back_as_deep",
        "race/core/cases/locks.py::case_reacquired_lock_is_not_held_on",
        "race/sync/test_futures.py::test_result_that_does_not_come_in_time_orders_nothing",
        "race/sync/test_primitives.py::test_barrier_that_times_out_is_broken_as_before",
        "race/sync/test_primitives.py::test_condition_wait_that_times_out_is_not_notified",
        "race/sync/test_primitives.py::test_semaphore_that_was_not_acquired_orders_nothing",
        "race/sync/test_queues.py::test_empty_queue_orders_nothing",
        "race/sync/test_queues.py::test_full_queue_orders_nothing",
        "race/sync/test_threads.py::test_join_that_gave_up_orders_nothing",
    ),
    "The form with a limit is what is tested; what it waits for is there already or comes at once.": (
        "race/core/c_core_child.py::pieces_of_locks",
        "race/core/cases/lock_fidelity.py::case_condition_over_locks",
        "race/core/cases/locks.py::case_acquire_and_release_by_hand",
        "race/sync/test_queues.py::test_keyword_arguments_order_likewise",
    ),
    "The order of moments or a least duration, which holds on a machine of any speed.": (
        "experiments/test_http_load.py::test_pages_come_after_their_latency_and_are_counted",
        "measure/test_trial.py::test_one_long_call_is_enough",
        "measure/test_turns.py::test_process_tells_how_long_each_stage_before_its_first_turn_took",
    ),
    "A moment that chance chooses, in tests that explore.": (
        "faults/test_resume.py::test_finished_rounds_outlive_kills_at_random_moments",
        "faults/test_signals.py::test_command_that_is_stopped_at_a_random_moment_leaves_nothing",
    ),
    "The age of a file, in days.": (
        "conftest.py::_caches",
    ),
}
ALLOWED = {place: reason for reason, named in REASONS.items() for place in named}


def name_of(node):
    """Return the last part of a dotted name."""
    return getattr(node, "attr", getattr(node, "id", ""))


def reads_clock(node, taken):
    """Return True if an expression calls a clock, or has a name that was assigned a reading."""
    return any((isinstance(each, ast.Call) and is_clock(each.func)) or (isinstance(each, ast.Name) and each.id in taken)
               for each in ast.walk(node))


def is_clock(function):
    if isinstance(function, ast.Attribute):   # and not `values.time()`
        return function.attr in CLOCKS and name_of(function.value) == "time"
    return name_of(function) in CLOCKS - {"time"}


def readings(function):
    """Return the names that are assigned something with a reading of a clock in it."""
    taken, before = set(), None
    while before != taken:
        before = set(taken)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.NamedExpr) and reads_clock(node.value, taken):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                taken |= {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return taken


def is_short(node):
    return isinstance(node, ast.Constant) and type(node.value) in {int, float} and 0 < node.value < PATIENCE


def found_in(function):
    """Yield (line, what) of each short limit, sleep and comparison with a clock."""
    taken = readings(function)
    for node in own_nodes(function):
        if isinstance(node, ast.Call):
            called = name_of(node.func)
            limits = [each.value for each in node.keywords if each.arg == "timeout"]
            if called in WAITS and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
                limits += node.args
            if any(map(is_short, limits)):
                yield node.lineno, "a limit below PATIENCE"
            if called == "sleep" and ast.unparse(node.args[0]) != "0":   # which lets others run
                yield node.lineno, "sleep"
        elif isinstance(node, ast.Compare) and reads_clock(node, taken):
            yield node.lineno, "a comparison with a clock"


def own_nodes(function):
    """Yield what is in a function or module, but not in its functions that have an entry of their own."""
    queue = [*ast.iter_child_nodes(function)]
    while queue:
        node = queue.pop()
        yield node
        if not (isinstance(function, ast.Module | ast.ClassDef) and isinstance(node, SCOPES)):
            queue += ast.iter_child_nodes(node)


def places(tree, prefix=""):
    """Yield (name, line, what); a function within a function belongs to the outer one."""
    yield from ((prefix or "module", *each) for each in found_in(tree))
    for node in own_nodes(tree) if isinstance(tree, ast.Module | ast.ClassDef) else ():
        if isinstance(node, SCOPES):
            yield from places(node, f"{prefix}.{node.name}".lstrip("."))


def all_places():
    found = {}
    for path in sorted(TESTS.rglob("*.py")):
        name = path.relative_to(TESTS).as_posix()
        if not name.startswith(tuple(f"{each}/" for each in NOT_TESTS)):
            for function, line, what in places(ast.parse(path.read_text(encoding="utf-8"))):
                found.setdefault(f"{name}::{function}", []).append(f"line {line}: {what}")
    return found


def test_no_test_judges_by_the_clock():
    found = all_places()
    assert {place: each for place, each in found.items() if place not in ALLOWED} == {}
    assert set(ALLOWED) - set(found) == set(), "nothing is there any more: remove the entry"
