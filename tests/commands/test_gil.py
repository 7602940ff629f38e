"""`gilscope gil`: the program is run as it is, its code is passed on, and what its threads waited for is told."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.commands.gil.report import answer_document, document
from gilscope.toolkit.commands.options.programs import cut_program
from gilscope.toolkit.gil import preload
from gilscope.toolkit.gil.diagnosis import diagnose
from gilscope.toolkit.gil.holders import Stopper
from gilscope.toolkit.gil.recorder import Recording
from gilscope.toolkit.gil.records import CodeLine
from gilscope.toolkit.measure.machine_lock import WAITING, MachineLock
from gilscope.toolkit.report.terminal import render
from tests.conformance.builds import ROOT
from tests.gil.recorded import make_process, make_thread
from tests.gil.traces import checked
from tests.measure.children import gil_on
from tests.patience import PATIENCE, told

needs_shim = pytest.mark.usefixtures("shim")
SPIN = """
import sys, threading, time

def spin(number):
    global last, turns
    while turns < 20 or time.monotonic() < end:
        if last != number:
            last, turns = number, turns + 1

print(sys.argv[1:], __name__, sys.stdin.read())
last, turns, end = None, 0, time.monotonic() + 0.2
threads = [threading.Thread(target=spin, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(7)
"""


def run(folder, *words, **variables):
    # Nobody else's turn is waited for: that would be said on standard error.
    own = {"PYTHONPATH": str(ROOT), "GILSCOPE_MACHINE": str(folder.parent)}
    return subprocess.run(
        [sys.executable, "-P", "-m", "gilscope", "gil", *words], cwd=folder, capture_output=True, text=True,
        check=False, timeout=PATIENCE, input="typed", env={**os.environ, **own, **variables})


@pytest.fixture(scope="session")
def shim():
    if reason := preload.unavailable():
        pytest.skip(reason)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "spin.py").write_text(SPIN)
    return tmp_path


@needs_shim
@pytest.mark.builds("gil", "free")
def test_program_runs_as_it_is_and_its_waits_are_told(folder, build, python):
    done = run(folder, "--build", f"{build.label}={python}", "--full", "spin.py", "a", "--json")
    assert (done.returncode, done.stdout) == (7, "['a', '--json'] __main__ typed\n"), done.stderr
    assert "Measuring took" in done.stderr
    assert "3 threads" in done.stderr
    if not build.free_threaded:
        assert "Thread-1 (spin)" in done.stderr
        assert re.search(r"Thread-\d \(spin\) +\d+ +the GIL +spin.py:\d+ spin", done.stderr)
        assert "It changed hands" in done.stderr


@needs_shim
def test_module_is_run_and_everything_written(folder):
    done = run(folder, "--json", "out.json", "--trace", "trace.json", "-m", "spin", "b")
    assert (done.returncode, done.stdout) == (7, "['b'] __main__ typed\n"), done.stderr
    said = done.stderr.splitlines()
    assert len(said) <= 12
    assert "all of it: gilscope gil --full" in said[-1]
    found = json.loads((folder / "out.json").read_text())
    assert (found["exit"], found["program"], found["processes"]) == (7, ["-m", "spin", "b"], 1)
    shares = (found["share"], found["wanted_share"])
    assert 0 < shares[0] < shares[1] < 1 if gil_on() else shares == (0, 0)
    assert len(found["threads"]) == 3
    assert said[0].split() == found["answer"][0].split()[:len(said[0].split())]
    events = checked(json.loads((folder / "trace.json").read_text()))
    names = {event["name"] for event in events}
    assert names >= {"waits for the GIL", "holds the GIL"} if gil_on() else "holds the GIL" not in names


# One C call keeps the GIL; the threads that want it meanwhile are so many that their waits are longer than what any of
# the threads can wait for a core.
CLASH = """
import threading, time

def ask():
    while not ended.is_set():
        time.sleep(0)           # gives the GIL away for a moment
        asking.set()

asking, ended = threading.Event(), threading.Event()
askers = [threading.Thread(target=ask) for _ in range(8)]
for asker in askers:
    asker.start()
asking.wait()
sum(range(10_000_000))
ended.set()
for asker in askers:
    asker.join()
print("done")
"""


@needs_shim
@pytest.mark.quiet   # beside enough other programs, a core is what it waits for
@pytest.mark.skipif(not gil_on(), reason="this Python has no GIL")
@pytest.mark.parametrize("option", [(), ("--once",)])
def test_program_that_the_gil_limits_is_run_once_more_where_there_is_none(folder, option):
    (folder / "clash.py").write_text(CLASH)
    done = run(folder, "--build", f"this={sys.executable}", *option, "--json", "out.json", "clash.py")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr    # what the second run prints is thrown away
    found = json.loads((folder / "out.json").read_text())
    holder = found["holders"][0]
    assert (holder["thread"], holder["file"], holder["function"]) == ("main", str(folder / "clash.py"), "<module>")
    assert (found["limit"]["what"], found["limit"]["thread"]) == ("gil", "main")
    if option or found["elsewhere"] is None:     # there may be no such build at hand
        assert "running it again" not in done.stderr
        assert found["elsewhere"] is None
    else:
        assert f"gilscope: running it again on {found['elsewhere']['build']}" in done.stderr
        assert (found["elsewhere"]["ratio"] is None) == (found["elsewhere"]["refused"] is not None)
    jsonschema = pytest.importorskip("jsonschema")
    from tests.report.test_as_json import closed

    schema = json.loads((ROOT / "toolkit" / "report" / "schemas" / "gil.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, closed(schema))


@needs_shim
def test_signal_that_ends_the_program_is_told_as_shells_do(folder):
    (folder / "dies.py").write_text("import os; os.kill(os.getpid(), 9)")
    done = run(folder, "--full", "dies.py")
    assert done.returncode == 137
    assert "1 of 1 processes left no end" in done.stderr
    # What is not known of it is neither a share of something nor a machine's fault.
    assert "at least " in done.stderr.splitlines()[0]
    assert "of the program's" not in done.stderr
    assert "machine was busy" not in done.stderr
    assert "What limits it is not known, as 1 process left no end: its work is missing.\n" in done.stderr
    assert "hen it was ended" not in done.stderr      # that it had the GIL says nothing


# Leaving the `with` kills the workers.
POOL = """
import multiprocessing

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(sum, [range(100_000)] * 4)
"""
CHILD = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import os; os._exit(0)"], check=True)
"""


@needs_shim
@pytest.mark.parametrize(("program", "killed"), [(POOL, 0), (CHILD, 1)])
def test_nothing_is_said_of_what_limits_a_program_whose_processes_left_no_cpu_time(folder, program, killed):
    (folder / "parent.py").write_text(program)
    done = run(folder, "--once", "--json", "out.json", "parent.py")
    found = json.loads((folder / "out.json").read_text())
    assert (done.returncode, found["killed"]) == (0, killed), done.stderr
    assert (found["limit"]["what"] == "unknown") is bool(killed)
    assert ("let its processes end by themselves" in done.stderr) is bool(killed)


@needs_shim
def test_program_that_crashed_or_could_not_be_compiled_is_said_to_have_failed(folder):
    (folder / "crash.py").write_text("import ctypes; ctypes.string_at(0)")
    crashed = run(folder, "crash.py")
    assert (crashed.returncode, crashed.stderr.splitlines()[0]) == (
        139, "  It crashed (SIGSEGV): waits count up to the last that is known.")
    (folder / "wrong.py").write_text("def f(:")
    wrong = run(folder, "wrong.py")
    assert wrong.returncode == 1
    *_, ending, last = wrong.stderr.splitlines()
    assert (ending, "1 process, 1 thread" in last) == ("  It ended with exit code 1, its own.", True)


# Each of two threads has a lock when it asks for the other's.
CROSSED = """
import threading

def take(one, other):
    with one:
        both.wait()
        other.acquire(timeout=TIMEOUT)
        both.wait()

both, first, second = threading.Barrier(2), threading.Lock(), threading.Lock()
threads = [threading.Thread(target=take, args=locks) for locks in ((first, second), (second, first))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@needs_shim
@pytest.mark.builds("gil", "free")
def test_order_of_locks_is_advised_where_two_are_taken_crosswise(folder, build, python):
    for timeout in ("2", "20"):      # until starting threads took less than that
        (folder / "crossed.py").write_text(CROSSED.replace("TIMEOUT", timeout))
        done = run(folder, "--build", f"{build.label}={python}", "--once", "crossed.py")
        if "  A lock limits it: " in done.stderr:
            break
    assert "  do: take locks in one order everywhere, and none twice" in done.stderr


@needs_shim
@pytest.mark.slow
def test_who_measures_on_this_machine_is_waited_for(folder, tmp_path_factory):
    machine = str(tmp_path_factory.mktemp("machine"))
    (folder / "began.py").write_text("open('began', 'w').close()")
    command = [sys.executable, "-P", "-m", "gilscope", "gil", "--once", "began.py"]
    with MachineLock(alone=True, waiting=lambda: None, folder=machine).hold():
        program = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": str(ROOT), "GILSCOPE_MACHINE": machine})
        assert program.stderr.readline() == f"gilscope: {WAITING}\n"
        assert not (folder / "began").exists()
    said = program.communicate(timeout=PATIENCE)[1]
    assert (program.returncode, (folder / "began").exists()) == (0, True)
    assert WAITING not in said


HUNG = """
import ctypes, threading, time

def ask():
    while True:
        time.sleep(0)           # gives the GIL away for a moment
        asking.set()

asking = threading.Event()
threading.Thread(target=ask, name="asker", daemon=True).start()
asking.wait()
ctypes.PyDLL(None).system(b"sleep SECONDS; kill -9 $PPID")     # keeps the GIL until it is killed
"""


@needs_shim
@pytest.mark.skipif(not gil_on(), reason="this Python has no GIL")
def test_program_that_hangs_is_told_by_what_its_threads_were_doing(folder):
    for seconds in ("0.2", "2", "20", "200"):   # until the other thread had a core before the end
        (folder / "hung.py").write_text(HUNG.replace("SECONDS", seconds))
        done = run(folder, "hung.py")
        assert done.returncode == 137
        if "asker waited" in done.stderr:
            break
    ended = r"when it was ended: {}, for [\d.]+ m?s or longer, at hung.py:{}"
    assert re.search(ended.format("main had the GIL", "12 <module>"), done.stderr)
    assert re.search(ended.format("asker waited for the GIL", "6 ask"), done.stderr)
    assert re.search(r"\n  The GIL limits it: .*\n  held by: main at hung.py:12 <module>: ", done.stderr)
    assert done.stderr.startswith("  SIGKILL ended it: ")
    assert "  do: make the call at hung.py:12 shorter" in done.stderr


@needs_shim
def test_interpreter_that_does_not_load_the_shim_is_said(folder):
    done = run(folder, "--build", "odd=/bin/true", "spin.py")
    assert done.returncode == 3
    assert "nothing was recorded" in done.stderr


@pytest.mark.parametrize(("words", "said"), [
    ([], "no program to run"), (["missing.py"], "no script 'missing.py'"), (["--trace", "t.json"], "no program to run"),
])
def test_request_without_a_program_is_refused(folder, words, said):
    done = run(folder, *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_without_a_compiler_nothing_is_run(folder):
    done = run(folder, "spin.py", GILSCOPE_CACHE=str(folder / "cache"), PATH="", CC="")
    assert done.returncode == 3
    assert done.stdout == ""
    assert "there is no C compiler" in done.stderr or "measured on Linux" in done.stderr


@pytest.mark.skipif(preload._unsupported() is not None, reason="GIL waits are not measured here")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_before_the_program_begins_is_not_said_of_the_program(number, folder):
    compiler, begun = folder / "compiler", folder / "begun"
    compiler.write_text(f"#!/bin/sh\necho yes > '{begun}'\nexec sleep 1000\n")
    compiler.chmod(0o755)
    os.mkfifo(begun)
    reading = os.open(begun, os.O_RDWR | os.O_NONBLOCK)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "gilscope", "gil", "spin.py"], cwd=folder, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT), "CC": str(compiler), "GILSCOPE_CACHE": str(folder / "cache")})
    try:
        assert told(reading, process) == b"yes\n"
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()
        os.close(reading)
    assert (output, errors, process.returncode) == ("", "gilscope: interrupted\n", 128 + number)


@pytest.mark.parametrize(("words", "own", "program"), [
    (["s.py", "--json"], [], ["s.py", "--json"]),
    (["--json", "f", "s.py"], ["--json=f"], ["s.py"]),
    (["--json", "s.py"], ["--json"], ["s.py"]),
    (["--markdown", "f.md", "s.py"], ["--markdown=f.md"], ["s.py"]),
    (["--full", "-m", "mod", "-x"], ["--full"], ["-m", "mod", "-x"]),
    (["--build=3.14t", "--places", "3", "s.py"], ["--build=3.14t", "--places", "3"], ["s.py"]),
])
def test_words_after_the_program_are_its_own(words, own, program):
    actions = cli.make_parser(("gil",))._subparsers._group_actions[0].choices["gil"]._option_string_actions
    assert cut_program(actions, words) == (own, program)


def made_up(*, ended=0, wall=1.0, cpu=1.9, **changes):
    return Recording(ended=ended, wall=wall, cpu=cpu, processes=(make_process(**changes),))


def quiet(*, gil=False, **changes):
    threads = tuple(make_thread(number, [], main=number == 0, run_queue=0.001, **changes) for number in range(3))
    return {"free_threaded": True, "gil_used": gil, "threads": threads}


def test_report_reads_as_it_should():
    found = diagnose(["program.py"], made_up())
    documents = (answer_document(found), document(found, places=5))
    text = "\n\n".join(render(each, ascii_only=True) for each in documents)
    golden = ROOT / "tests" / "golden" / "gil.txt"
    assert f"{text}\n" == golden.read_text()


def test_help_and_page_tell_the_same_needs(capsys):
    needs = "Linux with glibc, and gilscope's wheel or a C compiler"
    with pytest.raises(SystemExit):
        cli.main(["gil", "--help"])
    assert needs in " ".join(capsys.readouterr().out.split())
    assert needs in (ROOT / "docs" / "waits.md").read_text()


@pytest.mark.parametrize("changes", [{}, {"free_threaded": True, "gil_used": False}])
def test_legend_of_threads_does_not_claim_that_columns_add_up(changes):
    text = " ".join(render(document(diagnose(["program.py"], made_up(**changes)), places=5)).split())
    assert "Columns may overlap: a thread that waits may also lack a core. Not listed: sleeping" in text
    assert "The rest:" not in text


def test_waits_in_which_nobody_had_the_gil_are_told():
    process = make_process()
    recording = made_up(sites=tuple(site and replace(site, caused=site.caused / 2) for site in process.sites))
    text = render(document(diagnose(["program.py"], recording), places=5))
    assert "For 50 % of that nobody had it: the next thread had no core." in text
    whole = made_up()
    assert "nobody had it" not in render(document(diagnose(["program.py"], whole), places=5))


def test_report_fits_a_narrow_terminal_in_one_table_each():
    threads = (make_thread(number, [], main=number == 0, called=f"ThreadPoolExecutor-0_1{number}")
               for number in range(3))
    recording = made_up(threads=tuple(threads))
    text = render(document(diagnose(["program.py"], recording), places=5), width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("ThreadPoo...utor-0_12") == 2      # a row in each table
    assert " 500 ms  ThreadPoo...utor-0_12      5  the GIL  program.py:5 spin" in text


@pytest.mark.parametrize("width", [80, 120])
def test_long_names_of_threads_and_functions_leave_each_table_in_one_piece(width):
    process = make_process()
    sites = tuple(site and replace(site, file="/home/me/longer_module_name.py", function="LongClassName.some_method")
                  for site in process.sites)
    threads = tuple(replace(thread, called=f"ThreadPoolExecutor-0_1{thread.number}") for thread in process.threads)
    recording = made_up(sites=(*sites[:4], None, *sites[5:]), threads=threads)
    text = render(document(diagnose(["program.py"], recording), places=5), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("ThreadPoo...utor-0_12") == 3      # a row in each table
    assert re.search(r" 50 %  ThreadPoo...utor-0_12  500 ms   100 ms  longer_module_name.py:6\n", text)


def test_places_beyond_those_asked_for_are_counted():
    recording = made_up()
    text = render(document(diagnose(["program.py"], recording), places=1))
    assert "2 more waited less; --places shows more of them" in text


def test_report_without_a_gil_says_so():
    recording = made_up(**quiet())
    text = render(document(diagnose(["program.py"], recording), places=5), ascii_only=True)
    assert "For the GIL: none, it is off." in text
    headings = text.partition("Where each")[2].splitlines()[1].split()
    assert headings == ["thread", "life", "CPU", "no", "core", "locks", "objects", "idle"]


def test_who_stopped_all_threads_is_said_among_the_waits():
    stopper = Stopper(thread="work", place=CodeLine("/home/me/program.py", 8, "collect"), seconds=0.5, longest=0.2)
    found = replace(diagnose(["program.py"], made_up(**quiet())), stoppers=(stopper,))
    text = render(document(found, places=5))
    assert "work stopped all others at program.py:8 collect: for 500 ms in all, and up to 200 ms at a time." in text
