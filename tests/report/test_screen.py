"""One screen: every workload and model at once."""

from dataclasses import replace

from gilscope.toolkit.model import Cell, Phase, SkipKind
from gilscope.toolkit.report import terminal
from gilscope.toolkit.report.as_json import run_values
from gilscope.toolkit.report.document import Lines, Table
from gilscope.toolkit.report.run_document import run_document
from gilscope.toolkit.report.wording import entry_text
from tests.fakes import RunMaker

BUILDS = ("3.14", "3.14t")
MODELS = ("threads", "subinterpreters", "processes-forkserver")


def cell(runner="serial", workers=1, build="3.14", workload="w", **changes):
    return Cell(workload=workload, runner=runner, workers=workers, build=build, **changes)


def look(workloads=("w",), *, noise=0.002, counts=(2,), **changes):
    """Return a maker: threads gain nothing, the others are as fast as they have workers."""
    maker = RunMaker(noise=noise)
    for workload in workloads:
        for build in BUILDS:
            maker.measure(cell(build=build, workload=workload, **changes), 1.0)
            for runner in MODELS:
                for workers in counts:
                    gain = 1 if runner == "threads" else workers
                    maker.measure(cell(runner, workers, build, workload, **changes), 1.0 / gain)
        maker.twin(cell(workload=workload, **changes), 1.0)
    return maker


def table_of(run):
    found = [each for each in run_document(run).sections if isinstance(each, Table)]
    return found[0] if found else None


def rows_of(table):
    return {entry_text(row[0]): [entry_text(entry) for entry in row[1:]] for row in table.rows}


def test_models_are_set_against_workloads_with_builds_side_by_side():
    table = table_of(look(("v", "w")).run(BUILDS))
    assert table.title == "Speed-up over serial of the same build, 2 workers"
    assert [(each.group, each.title) for each in table.columns[1:]] == [
        ("v", "3.14"), ("v", "3.14t"), ("w", "3.14"), ("w", "3.14t")]
    rows = rows_of(table)
    assert list(rows) == list(MODELS)
    assert set(rows["threads"]) == {"none"}
    assert {each[:3] for each in rows["subinterpreters"]} <= {"2.0", "1.9"}


def test_what_nothing_is_shown_to_beat_is_marked_as_a_set():
    made = look()
    made.measure(cell("asyncio", 2), 1.0 / 1.5)
    rows = rows_of(table_of(made.run(BUILDS)))
    assert rows["subinterpreters"][0].endswith("*")
    assert rows["processes-forkserver"][0].endswith("*")
    assert rows["asyncio"] == ["1.50x", "-"]


def test_nothing_is_marked_where_nothing_is_faster():
    made = RunMaker(noise=0.002)
    for runner, workers in (("serial", 1), ("threads", 2), ("processes-fork", 2)):
        made.measure(cell(runner, workers), 1.0)
    assert rows_of(table_of(made.run(("3.14",)))) == {"threads": ["none"], "processes-fork": ["none"]}
    made.noise = 0.2
    made.measure(cell("asyncio", 2), 1.0)
    (sign,) = rows_of(table_of(made.run(("3.14",))))["asyncio"]
    assert sign.endswith("x?")


def test_model_stands_at_its_best_number_of_workers_and_says_which():
    made = look(counts=(2, 4))
    made.measurements = [each for each in made.measurements
                         if (each.cell.runner, each.cell.workers) != ("subinterpreters", 4)]
    made.measure(cell("subinterpreters", 4), 1.0)
    rows = rows_of(table_of(made.run(BUILDS)))
    assert rows["subinterpreters"][0].endswith("x N=2")
    assert rows["processes-forkserver"][0].endswith("x*")


def test_starved_failed_and_left_out_cells_have_their_sign():
    made = look()
    made.measure(cell("processes-fork", 2), 0.8, starved=8)
    made.fail(cell("processes-fork", 2, "3.14t"), "crash", "killed by SIGSEGV")
    made.skip(cell("free-threaded", 2), "the GIL is enabled in this build")
    made.measure(cell("free-threaded", 2, "3.14t"), 0.5)
    rows = rows_of(table_of(made.run(BUILDS)))
    assert rows["processes-fork"] == ["starved", "failed"]
    assert rows["free-threaded"][0] == "-"


def test_table_is_there_when_all_that_was_to_gain_is_starved():
    maker = RunMaker(rounds=8, noise=0.002)
    maker.measure(cell(), 1.0)
    maker.twin(cell(), 1.0)
    for runner in ("threads", "processes-fork"):
        maker.measure(cell(runner, 2), 0.8, starved=8)
    table = table_of(maker.run(("3.14",)))
    assert table.title == "Speed-up over serial of the same build, 2 workers"
    assert [[str(entry.value) for entry in row] for row in table.rows] == [
        ["threads", "starved"], ["processes-fork", "starved"]]


def test_models_of_which_something_counts_come_before_those_that_starved():
    maker = RunMaker(rounds=8, noise=0.002)
    maker.measure(cell(), 1.0)
    maker.measure(cell("threads", 2), 0.6, starved=8)
    maker.measure(cell("subinterpreters", 2), 0.5)
    maker.twin(cell(), 1.0)
    assert list(rows_of(table_of(maker.run(("3.14",))))) == ["subinterpreters", "threads"]


def test_what_failed_processes_printed_last_is_in_the_report():
    made = look()
    made.fail(cell("processes-fork", 2), "exception", "LookupError: gone")
    printed = "Traceback ...\n  File 'x.py'\nLookupError: gone\nand why\n"
    made.failures[-1:] = [replace(made.failures[-1], output=printed)]
    made.failures.append(replace(made.failures[-1], round=1))
    made.fail(cell("processes-fork", 2, "3.14t"), "killed", "SIGKILL")
    made.failures[-1:] = [replace(made.failures[-1], output="")]
    run = made.run(BUILDS)
    text = terminal.render(run_document(run))
    assert text.count("Last output of w, processes-fork, on 3.14 in round 1") == text.count("and why") == 1
    assert "    File 'x.py'" in text
    assert "on 3.14t in round" not in text


def test_all_that_failed_is_said_with_its_reason():
    made = look()
    for number in range(5):
        made.fail(cell("processes-fork", 2 + number), "crash", f"killed by signal {number}")
        made.fail(cell("processes-fork", 2 + number, "3.14t"), "crash", f"killed by signal {number}")
    text = terminal.render(run_document(made.run(BUILDS)), width=200)
    assert "processes-fork of w on 3.14 and processes-fork of w on 3.14t: round 1: crash: killed by signal 0" in text
    assert text.count("  failed: ") == 5


def test_model_that_was_measured_nowhere_has_no_row():
    made = look()
    for build in BUILDS:
        made.skip(cell("interpreter-pool", 2, build), "new in 3.14")
    assert "interpreter-pool" not in rows_of(table_of(made.run(BUILDS)))


def test_signs_are_explained_where_they_are_used():
    text = terminal.render(run_document(look().run(BUILDS)))
    assert "*: no other is known to be faster; none: gains at most 3 %" in text
    assert "starved" not in text
    made = look()
    made.measure(cell("processes-fork", 2), 0.8, starved=8)
    text = " ".join(terminal.render(run_document(made.run(BUILDS))).split())
    assert "starved: other programs used the cores that it needed" in text


def test_member_of_the_set_that_is_not_shown_to_gain_is_no_model_to_use():
    made = RunMaker(rounds=5, noise=0.26, seed=1)
    for runner, workers, seconds in (
            ("serial", 1, 1.0), ("subinterpreters", 2, 0.4), ("processes-fork", 2, 0.55), ("threads", 2, 1.0)):
        made.measure(cell(runner, workers), seconds)
    run = made.run(("3.14",))
    rows = rows_of(table_of(run))
    assert rows["subinterpreters"][0].startswith("2.")
    assert rows["processes-fork"][0].endswith("?")
    assert [each["model"] for each in run_values(run)["best"][0]["models"]] == ["subinterpreters"]


def none_in_the_legend(seconds, noise=0.002):
    made = RunMaker(noise=noise)
    for runner, workers, each in (("serial", 1, 1.0), ("threads", 2, seconds), ("processes-fork", 2, 0.5)):
        made.measure(cell(runner, workers), each)
    run = made.run(("3.14",))
    assert "none" in rows_of(table_of(run))["threads"]
    text = " ".join(terminal.render(run_document(run)).split())
    return text[text.index("none: "):].partition(";")[0].partition(".")[0]


def test_none_promises_no_more_than_the_tables_say():
    assert none_in_the_legend(1.0) == "none: gains at most 3 %"   # every difference is excluded
    # The interval has 1 and a larger loss in it: the table below shows it.
    assert none_in_the_legend(1.03, noise=0.03) == "none: gains at most 3 %, or loses"


def test_sign_of_no_gain_is_not_explained_where_all_that_does_not_gain_has_a_ratio():
    made = RunMaker(noise=0.002)
    for runner, workers, seconds in (("serial", 1, 1.0), ("threads", 2, 1.5), ("processes-fork", 2, 0.5)):
        made.measure(cell(runner, workers), seconds)
    run = made.run(("3.14",))
    assert rows_of(table_of(run))["threads"] == ["0.67x"]
    assert "none:" not in terminal.render(run_document(run))


def test_lengths_of_a_task_are_columns():
    made = look(task_seconds=0.001)
    made.measurements += look(task_seconds=0.01).measurements
    assert [each.group for each in table_of(made.run(BUILDS)).columns[1:]] == [
        "w, tasks of 1.00 ms", "w, tasks of 1.00 ms", "w, tasks of 10.0 ms", "w, tasks of 10.0 ms"]


def test_start_up_has_a_table_of_its_own():
    made = look(phase=Phase.STARTUP)
    made.measurements += look().measurements
    tables = [each for each in run_document(made.run(BUILDS)).sections
              if isinstance(each, Table) and each.title.startswith("Speed-up over")]
    assert [{column.group for column in each.columns[1:]} for each in tables] == [{"w"}, {"w, startup"}]


def test_function_that_can_only_be_awaited_is_set_against_one_task_in_flight():
    made = RunMaker(noise=0.002)
    made.measure(cell("asyncio"), 1.0, 0.01)
    made.measure(cell("asyncio", 8), 0.125, 0.01)
    made.skip(cell(), "it is a coroutine function: only asyncio awaits it")
    table = table_of(made.run(("3.14",), baseline="asyncio"))
    assert table.title == "Speed-up over asyncio of the same build, 8 tasks in flight"


def test_many_workloads_are_dealt_out_over_the_width():
    text = terminal.render(run_document(look(tuple(f"workload_{i}" for i in range(7))).run(BUILDS)), width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"workload_{i} " in text for i in range(7))
    assert text.count("model ") > 1


def test_round_that_the_budget_cut_is_no_complete_one():
    made = look()
    made.skip(cell("processes-fork", 2), "no time", SkipKind.OUT_OF_BUDGET)
    text = terminal.render(run_document(made.run(BUILDS, rounds_planned=9, rounds_done=1, stopped="budget")))
    assert "1 of 9 rounds (incomplete: 1 of" in text
    whole = terminal.render(run_document(look().run(BUILDS)))
    assert "incomplete" not in whole


def test_run_without_any_number_says_why():
    made = RunMaker()
    made.fail(cell(), "crash", "killed by SIGSEGV")
    run = replace(made.run(("3.14",)), cells=(cell(), cell("threads", 2)))
    assert "killed by SIGSEGV" in " ".join(terminal.render(run_document(run)).split())


def far_below(share, *, user=True, interval=0.002):
    """Return the sentences of a run whose free threads reach `share` of the processes' throughput."""
    made = RunMaker(noise=interval)
    made.measure(cell(build="3.14t"), 1.0)
    made.twin(cell(build="3.14t"), 1.0)
    made.measure(cell("processes-forkserver", 2, "3.14t"), 0.5)
    made.measure(cell("free-threaded", 2, "3.14t"), 0.5 / share)
    options = {"selection": {"user": {"function": "mine:convert", "payloads": None, "payload": "{'a b': 1}"}}}
    run = made.run(("3.14t",), options=options if user else {"selection": {"user": None}})
    return "\n".join(sentence for each in run_document(run).sections if isinstance(each, Lines)
                     for sentence in each.items), run_values(run)["best"][0]["below_ceiling"]


def test_own_function_below_half_of_what_processes_do_is_sent_to_gilscope_scale():
    said, below = far_below(0.3)
    assert "2 free threads reach 0.30 on 3.14t of the throughput of as many processes" in said
    assert "`gilscope scale mine:convert --payload '{'\"'\"'a b'\"'\"': 1}' --builds 3.14t`" in said
    assert (below["model"], below["workers"], below["ceiling"]) == ("free-threaded", 2, "processes-forkserver")
    assert 0.28 < below["ratio"]["ratio"] < 0.32


def test_function_that_may_reach_half_is_not():
    for share, interval in ((0.55, 0.002), (0.45, 0.08)):      # below half; an interval that includes it
        said, below = far_below(share, interval=interval)
        assert below is None
        assert "gilscope scale" not in said


def test_own_workloads_of_gilscope_are_not():
    said, below = far_below(0.3, user=False)
    assert below is not None
    assert "gilscope scale" not in said
