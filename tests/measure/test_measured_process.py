"""Whatever a measured process does is an answer, and nothing of it is left."""

import errno
import itertools
import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

from gilscope.toolkit.measure import measured_process as process
from gilscope.toolkit.measure.preparation import child_environment
from tests.measure.children import (
    MARK,
    THREADS,
    USERCODE,
    gil_on,
    make_spec,
    measure,
    measure_hang,
    still_alive,
    target,
)
from tests.patience import wait_until


def run(function, folder, *, payload="0", runner="serial", workers=1, python=sys.executable, check=None, **changes):
    user = target(f"misbehaving:{function}", payload=payload, tasks=workers, check=check)
    return measure(make_spec(folder, user, runner=runner, workers=workers, **changes), python)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """What ends by itself has ended, however late the machine lets it."""
    monkeypatch.setattr(process, "TEARDOWN_SECONDS", 300.0)


@pytest.mark.builds("gil", "free")
def test_good_function_is_measured(tmp_path, python):
    answer = run("double", tmp_path, python=python, values=3, warmups=1, loops=0, min_seconds=0.05)
    assert (answer.kind, answer.reason, answer.note) == ("measured", "", None)
    assert len(answer.fields["cpu"]) == 3
    loops = answer.fields["loops"]
    assert loops > 1  # doubling a number takes far less, also where the process loses its core meanwhile
    assert loops & (loops - 1) == 0
    (benchmark,) = json.loads((tmp_path / "values.json").read_text())["benchmarks"]
    (run_,) = benchmark["runs"]
    assert len(run_["values"]) == 3
    assert [warmup[0] for warmup in run_["warmups"]] == [loops]
    # One byte when the pool is up, one for the checked pass, one for each of pyperf's.
    assert (tmp_path / "progress").read_text() == "." * (1 + 1 + 1 + 3)


@pytest.mark.parametrize(("function", "kind", "reason"), [
    ("segfault", "crash", "crashed with SIGSEGV"),
    ("abort", "crash", "crashed with SIGABRT"),
    ("kill_itself", "killed", "killed by SIGKILL, not by gilscope"),
    ("complain", "exception", "ValueError: first line"),
    ("complain_without_words", "exception", "ValueError"),
    ("pretend_ctrl_c", "exception", "KeyboardInterrupt"),
    ("eat_memory", "exception", "out of memory (MemoryError)"),
])
def test_failure_has_its_kind_and_reason(function, kind, reason, tmp_path):
    answer = run(function, tmp_path)
    assert answer.kind == kind
    if kind == "killed":   # the rest depends on the counters of this machine, see test_out_of_memory.py
        assert answer.reason.startswith(reason)
    else:
        assert answer.reason == reason
    assert not (tmp_path / "values.json").exists()


@pytest.mark.parametrize(("code", "shown"), [("0", "sys.exit(0)"), ("3", "sys.exit(3)"), ("'bye'", "sys.exit('bye')")])
@pytest.mark.parametrize(("runner", "workers"), [("serial", 1), (THREADS, 2), ("processes-spawn", 2)])
def test_sys_exit_is_named(runner, workers, code, shown, tmp_path):
    answer = run("leave", tmp_path, payload=code, runner=runner, workers=workers)
    assert (answer.kind, answer.reason) == ("exit", f"the task called {shown}")


@pytest.mark.parametrize("code", [0, 7])
def test_os_exit_is_no_success_whatever_its_code(code, tmp_path):
    answer = run("leave_at_once", tmp_path, payload=str(code))
    assert (answer.kind, answer.reason) == ("exit", f"ended with exit code {code} before it delivered a value")


def test_exception_leaves_its_traceback(tmp_path):
    output = run("complain", tmp_path).output
    assert "misbehaving.py" in output
    assert "in complain" in output
    assert output.endswith("ValueError: first line\nsecond line")


@pytest.mark.parametrize(("runner", "workers"), [
    (THREADS, 2), ("processes-forkserver", 2), ("asyncio", 1), ("subinterpreters", 2),
])
def test_exception_in_a_worker_keeps_its_traceback(runner, workers, tmp_path):
    answer = run("complain", tmp_path, runner=runner, workers=workers)
    assert (answer.kind, answer.reason) == ("exception", "ValueError: first line")
    assert "in complain" in answer.output
    ((place, source),) = answer.fields["frames"]   # the user's alone: neither ours nor those of a pool
    assert place.endswith("misbehaving.py:77 in complain")
    assert source == r'raise ValueError("first line\nsecond line")'


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
def test_system_that_refuses_process_descriptors_measures_all_the_same(error, tmp_path, monkeypatch):
    def refuse(pid):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    assert run("double", tmp_path / "good").kind == "measured"
    assert run("segfault", tmp_path / "bad").reason == "crashed with SIGSEGV"


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("function", ["wait_forever", pytest.param("spin_forever", marks=pytest.mark.slow)])
def test_hang_is_killed_and_shows_where(function, tmp_path, python):
    user = target(f"misbehaving:{function}")
    answer, limit = measure_hang(function, lambda limit: make_spec(tmp_path, user, progress_timeout=limit), python)
    assert answer.kind == "hang"
    assert answer.reason == (
        f"it hung, or takes more than {limit:g} s for one pass over its payloads, so it was killed; raise "
        f"--timeout (to {3 * limit:g}s, say) if the work takes that long")
    assert f"in {function}" in answer.output


def test_time_in_which_this_process_was_stopped_is_no_hang(tmp_path, monkeypatch):
    looks = []   # one every quarter of a second, but for Ctrl-Z after the third
    clock = itertools.chain([0.0, 0.25, 0.5], (1000 + number / 4 for number in itertools.count()))
    monkeypatch.setattr(process, "time", SimpleNamespace(
        monotonic=lambda: looks.append(next(clock)) or looks[-1], time=time.time))
    monkeypatch.setattr(process.MeasuredProcess, "_wait", lambda *_: None)
    answer = measure(make_spec(tmp_path, target("misbehaving:double"), progress_timeout=2.0), "/bin/false")
    assert answer.kind == "hang"
    assert 1002 < looks[-1] < 1004   # 2 s, and one in which the process shows where it hangs


@pytest.mark.parametrize("doing", ["main", pytest.param("describe", marks=pytest.mark.slow)])
def test_hang_before_the_first_pass_shows_where(doing, tmp_path):
    user = target("misbehaving:double", payloads="misbehaving:hang_while_making")
    answer, _ = measure_hang("hang_while_making", lambda limit: make_spec(tmp_path, user, progress_timeout=limit),
                             function=doing)
    assert answer.kind == "hang"
    assert "in hang_while_making" in answer.output


@pytest.mark.parametrize("runner", [
    "processes-forkserver", *(pytest.param(runner, marks=pytest.mark.slow)
                              for runner in (THREADS, "processes-spawn", "processes-fork"))])
def test_hang_of_a_worker_is_killed(runner, tmp_path):
    assert run("wait_forever", tmp_path, runner=runner, workers=2, progress_timeout=2.0).kind == "hang"


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_killed_worker_fails_the_cell(method, tmp_path):
    answer = run("kill_worker", tmp_path, runner=f"processes-{method}", workers=2)
    assert answer.kind == "exception"
    assert answer.reason.startswith("BrokenProcessPool: ")


@pytest.mark.parametrize(("check", "reason"), [
    ("misbehaving:must_be_one", "the check refused the results: AssertionError: not one"),
    ("misbehaving:fail_to_check", "the check refused the results: LookupError: no reference"),
])
def test_refused_result_is_a_wrong_result(check, reason, tmp_path):
    answer = run("double", tmp_path, check=check)
    assert (answer.kind, answer.reason) == ("wrong-result", reason)
    assert f"in {check.partition(':')[2]}" in answer.output
    assert not (tmp_path / "values.json").exists()


def test_wrong_result_of_the_catalog_is_named(tmp_path):
    # No workload of ours returns a wrong result, so one is told to: its task is replaced where the child imports it.
    (tmp_path / "sitecustomize.py").write_text("import gilscope.workloads.cpu as cpu\ncpu.countdown = lambda n: -1\n")
    spec = make_spec(tmp_path, None, workload="countdown")
    answer = measure(spec, paths=[tmp_path])
    assert answer.kind == "wrong-result"
    assert "-1" in answer.reason


def test_printing_workload_is_measured(tmp_path):
    answer = run("talk", tmp_path, payload="1000")
    assert answer.kind == "measured"
    assert "x" * 1000 in answer.output


def test_output_that_is_not_text_is_kept_readable(tmp_path):
    answer = run("talk_binary", tmp_path)
    assert answer.kind == "measured"
    assert "not text" in answer.output


def test_flood_of_output_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "MAX_OUTPUT_BYTES", 2**20)
    answer = run("print_forever", tmp_path)
    assert (answer.kind, answer.reason) == ("killed", "it printed more than 1 MiB, so it was killed")
    assert len(answer.output) <= 8192


def test_changed_folder_does_no_harm(tmp_path):
    assert run("change_folder", tmp_path).kind == "measured"


@pytest.mark.parametrize("function", [
    "leave_process_behind", "leave_deaf_process_behind", "leave_daemon_thread_behind",
])
@pytest.mark.parametrize(("runner", "workers"), [("serial", 1), ("processes-spawn", 2)])
def test_what_a_workload_leaves_behind_is_ended(function, runner, workers, tmp_path):
    answer = run(function, tmp_path, runner=runner, workers=workers)
    assert (answer.kind, answer.note) == ("measured", None)


def test_thread_that_does_not_end_costs_no_value(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "TEARDOWN_SECONDS", 1.0)
    answer = run("leave_thread_behind", tmp_path)
    assert (answer.kind, answer.note) == ("measured", "did not end within 1 s after its values were taken")
    assert (tmp_path / "values.json").exists()


def test_processes_that_do_not_end_wait_together(tmp_path, monkeypatch):
    user = target("misbehaving:leave_thread_behind", payload="0", tasks=1)
    folders = [tmp_path / name for name in "abcd"]
    for folder in folders:
        folder.mkdir()
    children = [process.MeasuredProcess(sys.executable, make_spec(folder, user), child_environment([USERCODE]))
                for folder in folders]
    looks = []
    usual = process.MeasuredProcess._wait

    def look(self, *how):
        assert self not in looks   # whoever begins to wait only when it is asked for its answer looks again
        looks.append(self)
        return usual(self, *how)

    monkeypatch.setattr(process.MeasuredProcess, "_wait", look)
    try:
        for child in children:
            assert wait_until(child.spec.answer_path.exists)
            os.utime(child.spec.answer_path, (0, 0))   # all of them have had more than their time
        answers = [child.answer() for child in children]
    finally:
        process.end_all(children)
    assert looks == children
    assert all(answer.ended_late for answer in answers)
    assert all("Thread-1 (wait)" in answer.fields["threads_left"] for answer in answers)


def test_pool_that_does_not_close_costs_no_value(tmp_path):
    answer = run("fail_in_teardown", tmp_path, runner=THREADS)
    assert (answer.kind, answer.note) == (
        "measured", "failed while ending, with exit code 1, after its values were taken")
    assert "TeardownError: a worker did not end" in answer.output


def test_crash_while_ending_costs_no_value(tmp_path):
    answer = run("die_at_exit", tmp_path)
    assert (answer.kind, answer.note) == (
        "measured", "crashed with SIGABRT while ending, after its values were taken")


@pytest.mark.parametrize(("runner", "workers"), [
    ("serial", 1), ("processes-spawn", 2), ("processes-forkserver", 2), ("processes-fork", 2),
])
@pytest.mark.builds("gil", "free")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="takes Linux's F_SETSIG")
def test_nothing_outlives_a_killed_scheduler(runner, workers, tmp_path, sockets, python):
    folder = tmp_path / (process.MAX_TEMPORARY * "x")   # too long for the names of sockets
    folder.mkdir()
    spec = make_spec(folder, target("misbehaving:say_and_wait", tasks=workers), runner=runner, workers=workers)
    mark = uuid.uuid4().hex
    code = f"""
import os
from gilscope.toolkit.measure.measured_process import run_child
from gilscope.toolkit.measure.child.spec import CellSpec
run_child({python!r}, CellSpec.from_json({spec.to_json()!r}), os.environ)
"""
    scheduler = subprocess.Popen([sys.executable, "-c", code], env={**child_environment([USERCODE]), MARK: mark})
    try:
        assert wait_until(lambda: spec_output(spec).count("waiting") >= workers, scheduler)
    finally:
        scheduler.kill()
        scheduler.wait()
    assert not still_alive(mark)
    # Nobody was left to remove the folder of the fork server's socket, which would be in everybody's temporary folder.
    assert [each.name.partition("-")[0] for each in Path(sockets).iterdir()] == ["pymp"] * runner.endswith("forkserver")


def spec_output(spec):
    return spec.output_path.read_text() if spec.output_path.exists() else ""


def test_measured_process_reads_an_empty_input(tmp_path):
    answer = run("read_input", tmp_path)
    assert (answer.kind, answer.output) == ("measured", "''\n''")   # in the checked pass and in the timed one


def test_python_that_is_not_there_is_said(tmp_path):
    answer = run("double", tmp_path, python=str(tmp_path / "python"))
    assert (answer.kind, answer.reason) == (
        "starting", f"cannot start {tmp_path / 'python'}: No such file or directory")


def test_folder_that_was_cleared_away_is_made_again(tmp_path):
    place = tmp_path / "cleared"
    answer = run("double", place)
    assert answer.kind == "measured"
    assert place.stat().st_mode & 0o077 == 0   # as the temporary folder that it was


def test_folder_that_cannot_be_made_again_is_said(tmp_path):
    place = tmp_path / "file"
    place.write_text("")
    answer = run("double", place / "cleared")
    assert answer.kind == "starting"
    assert answer.reason.startswith("cannot start ")
    assert str(place) in answer.reason


def test_program_that_is_no_python_is_said(tmp_path):
    answer = run("double", tmp_path, python="/bin/false")
    assert (answer.kind, answer.reason) == ("exit", "ended with exit code 1 before it delivered a value")


def test_earlier_answer_is_not_taken_for_the_new_one(tmp_path):
    assert run("double", tmp_path).kind == "measured"
    assert run("leave_at_once", tmp_path).kind == "exit"


def test_runner_that_cannot_run_is_unavailable(tmp_path):
    answer = run("double", tmp_path, runner="free-threaded" if gil_on() else "threads")
    assert answer.kind == "unavailable"
    assert "GIL" in answer.reason
