"""`gilscope race` from outside: exit codes, the two streams, signals, reports in all forms, on every build at hand."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE, told

GILSCOPE = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from gilscope.toolkit.cli import main; sys.exit(main())"
RACY = """
    import sys, threading
    class Account:
        def __init__(self):
            self.balance = 0
        def deposit(self):
            self.balance += 1
    def main():
        import os
        account = Account()
        reading, writing = os.pipe()    # one comes after the other, but not by what is looked at: no update is lost
        first = lambda: (account.deposit(), open(writing, "wb", 0).write(b"."))
        second = lambda: (open(reading, "rb", 0).read(1), account.deposit())
        threads = [threading.Thread(target=target) for target in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(account.balance)
    main()
    """
CLEAN = "print('fine')\n"
PATIENT = """
    import os, signal, sys, time
    def handler(number, frame):
        os.write(1, f"got {number}\\n".encode())   # not print: the signal may come while it prints "ready"
        sys.exit(9)
    signal.signal(signal.SIGUSR1, handler)
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
    """


def words(*rest, python=sys.executable):
    return [sys.executable, "-c", GILSCOPE, "race", "--build", f"it={python}", *rest]


def race(folder, source, *options, program=("script.py",), python=sys.executable, **settings):
    (folder / "script.py").write_text(textwrap.dedent(source).lstrip("\n"))
    command = words(*options, *program, python=python)
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env=environment(**settings.pop("env", {})), **settings)


def environment(**extra):
    return {**{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}, **extra}


@pytest.mark.builds("gil", "free")
def test_race_is_told_after_the_program_and_ends_with_66(python, tmp_path):
    done = race(tmp_path, RACY, python=python)
    assert (done.stdout, done.returncode) == ("2\n", 66)
    assert "DATA RACE on Account.balance" in done.stderr
    assert "script.py:6 in Account.deposit" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.builds("gil", "free")
def test_clean_program_leaves_no_trace(python, tmp_path):
    done = race(tmp_path, CLEAN, "-q", python=python)
    assert (done.stdout, done.stderr, done.returncode) == ("fine\n", "", 0)
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


OWN_LOCKS = """
    import logging, queue, threading
    from concurrent.futures import ThreadPoolExecutor
    q, gate = queue.Queue(maxsize=2), threading.Semaphore(1)
    def put():
        for number in range(20):
            q.put(number)
            logging.getLogger(f"logger {number % 3}").debug("put")
    def take():
        for _ in range(20):
            with gate:
                q.get()
            q.task_done()
    threads = [threading.Thread(target=target) for target in (put, take, put, take)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(pow, 2, number) for number in range(20)]:
            future.add_done_callback(str)
    """


@pytest.mark.builds("gil", "free")
def test_included_module_of_the_library_relies_on_its_own_locks(python, tmp_path):
    modules = ("queue", "threading", "logging", "concurrent.futures._base")
    done = race(tmp_path, OWN_LOCKS, *(word for name in modules for word in ("--include", name)), python=python)
    assert done.returncode == 0, done.stderr


POLLED = """
    import threading
    class Job:
        done = False
    job = Job()
    def work():
        job.done = True
    thread = threading.Thread(target=work)
    thread.start()
    while not job.done:
        pass
    thread.join()
    """


def test_notes_alone_are_told_when_asked_for(tmp_path):
    done = race(tmp_path, POLLED, "-q")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    done = race(tmp_path, POLLED, "--notes")
    assert (done.stdout, done.returncode) == ("", 0)
    assert "Job.done" in done.stderr


@pytest.mark.builds("gil", "free")
def test_race_in_a_forked_child_is_told(python, tmp_path):
    forks = textwrap.dedent(RACY).replace("\nmain()", textwrap.dedent("""
        import os
        pid = os.fork()
        if pid == 0:
            main()
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(pid, 0)
        """))
    done = race(tmp_path, forks, python=python)
    assert (done.stdout, done.returncode) == ("2\n", 66)
    assert "Account.balance" in done.stderr


@pytest.mark.builds("gil", "free")
def test_race_before_a_crash_is_told_with_the_signal(python, tmp_path):
    done = race(tmp_path, textwrap.dedent(RACY) + "\nimport os, signal\nsys.stdout.flush()\n"
                "os.kill(os.getpid(), signal.SIGKILL)\n", python=python)
    assert done.stdout == "2\n"
    assert "ended by SIGKILL" in done.stderr
    assert "Account.balance" in done.stderr
    assert done.returncode == 66


def test_death_by_a_signal_is_told(tmp_path):
    done = race(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGABRT)\n")
    assert done.returncode == 128 + signal.SIGABRT
    assert "the program was ended by SIGABRT" in done.stderr


def test_race_before_os_exit_is_told(tmp_path):
    done = race(tmp_path, textwrap.dedent(RACY) + "\nimport os\nsys.stdout.flush()\nos._exit(3)\n")
    assert (done.stdout, done.returncode) == ("2\n", 66)


def test_folder_of_the_run_is_removed(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "work").mkdir()
    race(tmp_path / "work", RACY, env={"TMPDIR": str(tmp_path / "tmp")})
    assert list((tmp_path / "tmp").iterdir()) == []


def test_folder_that_cannot_be_made_is_told(tmp_path):
    done = race(tmp_path, CLEAN, env={"TMPDIR": str(tmp_path / "none")})
    assert done.returncode == 2
    assert "set TMPDIR to a writable folder" in done.stderr


def test_json_takes_the_place_of_the_text(tmp_path):
    done = race(tmp_path, RACY, "--json")
    assert json.loads(done.stderr)["races"]
    assert done.stdout == "2\n"


def test_reports_go_to_files(tmp_path):
    done = race(tmp_path, RACY, "--json=out.json", "--sarif", "out.sarif")
    assert json.loads((tmp_path / "out.json").read_text())["races"]
    assert json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
    assert "DATA RACE" in done.stderr


def test_reports_are_written_for_clean_programs_too(tmp_path):
    done = race(tmp_path, CLEAN, "--json=out.json", "--sarif", "out.sarif")
    assert done.returncode == 0
    assert json.loads((tmp_path / "out.json").read_text())["races"] == []
    assert json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"] == []


def test_report_that_cannot_be_written_is_told(tmp_path):
    done = race(tmp_path, RACY, "--sarif", "no/such/folder.sarif")
    assert done.returncode == 2
    assert "cannot write 'no/such/folder.sarif': there is no folder 'no/such'" in done.stderr


def test_json_says_what_was_checked_also_when_nothing_was_found(tmp_path):
    done = race(tmp_path, CLEAN, "--json=report.json")
    assert (done.returncode, done.stdout) == (0, "fine\n")
    found = json.loads((tmp_path / "report.json").read_text())
    assert (found["processes"], found["races"]) == (1, [])
    assert found["target"].endswith("script.py")
    assert found["core"] == "C"
    assert found["root"] == str(tmp_path)


def test_suppressed_race_is_none(tmp_path):
    done = race(tmp_path, RACY.replace("self.balance += 1", "self.balance += 1  # race: ok counted again at night"))
    assert done.returncode == 0
    assert "DATA RACE" not in done.stderr


def test_settings_of_the_project_count(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.gilscope.race]\nsuppress = [{ variable = "Account.balance", why = "known" }]\n')
    assert race(tmp_path, RACY).returncode == 0


def test_learned_races_are_suppressed(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]   # ours\n")
    done = race(tmp_path, RACY, "--learn")
    assert (done.returncode, "DATA RACE on Account.balance" in done.stderr) == (0, True)
    assert "pyproject.toml: 1 new entry in suppress of [tool.gilscope.race], unreviewed" in done.stderr
    assert (tmp_path / "pyproject.toml").read_text().startswith("[tool.ruff]   # ours\n")
    done = race(tmp_path, RACY)
    assert (done.returncode, "suppressed but unreviewed: Account.balance" in done.stderr) == (0, True)


def test_learning_needs_a_file(tmp_path):
    done = race(tmp_path, RACY, "--learn")
    assert (done.returncode, "pyproject.toml, and" in done.stderr) == (2, True)


def test_unused_suppression_of_a_clean_program_is_told(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[tool.gilscope.race]\nsuppress = [{ variable = "Account.balance", why = "known" }]\n')
    done = race(tmp_path, CLEAN)
    assert done.returncode == 0
    assert "Account.balance" in done.stderr


@pytest.mark.builds("gil", "free")
def test_module_is_run(python, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(textwrap.dedent(RACY) + "print(sys.argv, __package__)\n")
    done = race(tmp_path, "", program=("-m", "package", "x"), python=python)
    assert done.returncode == 66
    assert done.stdout == f"2\n[{str(tmp_path / 'package' / '__main__.py')!r}, 'x'] package\n"
    assert "__main__.py:7 in Account.deposit" in done.stderr


def test_console_command_is_run_under_its_interpreter(tmp_path):
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "tool"
    tool.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.executable, sys.argv)\n")
    tool.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", GILSCOPE, "race", "--", "tool", "-x"], cwd=tmp_path, capture_output=True,
        text=True, timeout=PATIENCE, check=False,
        env=environment(PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"))
    assert (done.stdout, done.returncode) == (f"{sys.executable} [{str(tool)!r}, '-x']\n", 0)


@pytest.mark.builds("gil", "free")
def test_program_from_standard_input_is_checked(python, tmp_path):
    done = race(tmp_path, "", program=("-", "x"), python=python, input=textwrap.dedent(RACY))
    assert (done.stdout, done.returncode) == ("2\n", 66)
    assert "<stdin>:7" in done.stderr


def test_flags_of_the_interpreter_reach_it(tmp_path):
    done = race(tmp_path, "import sys\nprint(sys.flags.optimize, sys.warnoptions, __debug__)\n",
                "--python-args=-O -W error")
    assert done.stdout == "1 ['error'] False\n"


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("name", ["toolkit", "race"])
def test_program_with_a_package_like_a_folder_of_ours_gets_its_own(python, name, tmp_path):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("mine = True\n")
    done = race(tmp_path, f"import {name}\nassert {name}.mine\n" + textwrap.dedent(RACY), python=python)
    assert (done.stdout, done.returncode) == ("2\n", 66)
    assert "Account.balance" in done.stderr


def test_module_begins_with_its_own_line(tmp_path):
    done = race(tmp_path, RACY, "--stacks", "--json=report.json", program=("-m", "script"))
    assert done.returncode == 66
    assert "in <module>" in done.stderr
    assert not re.search("runpy|<string>|in _run", done.stderr)


@pytest.mark.parametrize("closed", [False, True])
def test_program_from_an_empty_or_closed_standard_input_is_refused(closed, tmp_path):
    done = race(tmp_path, "", program=("-",), **{"preexec_fn": lambda: os.close(0)} if closed else {"input": ""})
    assert done.returncode == 2
    assert done.stderr == "gilscope: standard input is empty: there is no program in it to check\n"


@contextlib.contextmanager
def started(folder, source, **extra):
    """Start a program under the checker; whatever happens, nothing of it stays."""
    (folder / "script.py").write_text(source)
    process = subprocess.Popen(words("script.py"), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=environment(**extra), start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_signal_reaches_the_program(tmp_path):
    with started(tmp_path, textwrap.dedent(PATIENT)) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGUSR1)
        assert process.communicate(timeout=PATIENCE)[0] == f"got {signal.SIGUSR1.value}\n"
        assert process.returncode == 9


def test_termination_reaches_the_program_and_the_report_follows(tmp_path):
    with started(tmp_path, textwrap.dedent(RACY) + textwrap.dedent(PATIENT)) as process:
        assert [process.stdout.readline() for _ in range(2)] == ["2\n", "ready\n"]
        process.terminate()
        errors = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 66
    assert "the program was ended by SIGTERM" in errors
    assert "Account.balance" in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_before_the_program_begins_is_not_said_of_the_program(number, tmp_path):
    compiler, begun = tmp_path / "compiler", tmp_path / "begun"
    compiler.write_text(f"#!/bin/sh\necho yes > '{begun}'\nexec sleep 1000\n")
    compiler.chmod(0o755)
    os.mkfifo(begun)
    reading = os.open(begun, os.O_RDWR | os.O_NONBLOCK)
    with started(tmp_path, CLEAN, CC=str(compiler), GILSCOPE_CACHE=str(tmp_path / "cache")) as process:
        assert told(reading, process) == b"yes\n"
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE)
    assert (output, process.returncode) == ("", 128 + number)
    assert errors == f"gilscope: stopped by {number.name} before the program began: nothing was checked\n"
    os.close(reading)
    assert not [*tmp_path.glob("cache/race-core/*/*.so")]


def test_end_is_noticed_where_children_are_ignored(tmp_path):
    done = race(tmp_path, CLEAN, "-q", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert (done.stdout, done.stderr, done.returncode) == ("fine\n", "", 0)


def test_program_does_not_outlive_gilscope(tmp_path):
    source = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"
    with started(tmp_path, source, TMPDIR=str(tmp_path)) as process:   # a kill -9 leaves what is there
        program = int(process.stdout.readline())
        process.kill()
        # The other end of the pipes closes when the program is gone.
        assert process.communicate(timeout=PATIENCE) == ("", "")
    assert is_gone(program)


def is_gone(pid):
    for _ in range(6000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        state = Path(f"/proc/{pid}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True   # nobody here is its parent
        time.sleep(0.01)
    return False


def on_a_terminal(folder, source, say):
    """Run a program on a terminal, write `say` to it once it is ready; return what it shows, and its code."""
    (folder / "script.py").write_text(source)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        command = words("script.py")
        os.execv(command[0], command)
    shown = ""
    try:
        while "ready" not in shown:
            shown += os.read(terminal, 4096).decode()
        os.write(terminal, say)
        while True:
            shown += os.read(terminal, 4096).decode()
    except OSError:
        pass   # Linux's way to say that nobody holds the terminal any more
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    return shown, code


def test_ctrl_c_on_a_terminal_is_the_programs(tmp_path):
    shown, code = on_a_terminal(tmp_path, textwrap.dedent(RACY) + textwrap.dedent("""
        import time
        print(sys.stdin.isatty(), sys.stdout.isatty(), "ready", flush=True)
        time.sleep(600)
        """), b"\x03")
    assert code == 66
    assert "True True ready" in shown
    assert shown.index("KeyboardInterrupt") < shown.index("DATA RACE")
    assert "\x1b[" in shown


def test_ctrl_c_comes_once(tmp_path):
    shown, code = on_a_terminal(tmp_path, textwrap.dedent("""
        import signal, time
        got = []
        signal.signal(signal.SIGINT, lambda *_: got.append(1))
        print("ready", flush=True)
        while not got:
            time.sleep(0.01)
        time.sleep(0.3)   # a second one would have been sent at once
        print("got", len(got))
        """), b"\x03")
    assert (code, "got 1" in shown) == (0, True)


def test_too_old_python_is_refused(tmp_path):
    fake = tmp_path / "old-python"
    fake.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import sys\nsys.version_info = (3, 9)\n"
                    "exec(open(sys.argv[-4]).read())' \"$@\"\n")
    fake.chmod(0o755)
    done = race(tmp_path, CLEAN, "--json", python=fake)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "the race checker needs CPython 3.12 or newer" in done.stderr


@pytest.mark.builds("gil", "free")
def test_command_that_the_build_lacks_is_told(python, tmp_path):
    done = race(tmp_path, CLEAN, "--json=out.json", program=("--", "no_such_tool", "-q"), python=python)
    assert done.returncode == 2
    assert not (tmp_path / "out.json").exists()   # there was no run
    assert "no command 'no_such_tool' for this Python" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.builds("gil", "free")
def test_own_module_that_the_build_lacks_is_found(python, tmp_path):
    (tmp_path / "src" / "mine").mkdir(parents=True)
    (tmp_path / "src" / "mine" / "__init__.py").touch()
    done = race(tmp_path, CLEAN, program=("-m", "mine"), python=python)
    assert done.returncode == 1
    assert "No module named mine" in done.stderr
    assert "mine is yours, in src: set PYTHONPATH=src" in done.stderr
    done = race(tmp_path, CLEAN, program=("-m", "no_such_module"), python=python)
    assert done.returncode == 1
    assert "is yours" not in done.stderr


@pytest.mark.parametrize("words", [("race", "script.py"), ("race", "--json", "script.py")], ids=["plain", "options"])
def test_core_that_cannot_be_had_is_told(words, tmp_path):
    (tmp_path / "script.py").write_text(CLEAN)
    done = subprocess.run([sys.executable, "-c", GILSCOPE, *words], cwd=tmp_path,
                          capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env=environment(GILSCOPE_CACHE=str(tmp_path / "cache"), PATH=str(tmp_path), CC=""))
    assert (done.stdout, done.returncode) == ("", 3)
    assert done.stderr.startswith("gilscope: the race checker has no core for this Python: there is no C compiler")
    assert "install a C compiler and this Python's headers" in done.stderr


ENVIRON = """
    import os, threading
    lock = threading.Lock()
    os.environ["LEFT"] = "9"
    def work():
        with lock:
            os.environ["LEFT"] = str(int(os.environ["LEFT"]) - 1)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads: each.start()
    for each in threads: each.join()
    """


def test_items_of_the_environment_are_watched(tmp_path):
    done = race(tmp_path, ENVIRON)
    assert done.returncode == 0, done.stderr
    done = race(tmp_path, ENVIRON.replace("with lock", "if True"))
    assert done.returncode == 66, done.stderr
    assert "os.environ['LEFT']" in done.stderr


@pytest.mark.parametrize(("test", "repair"), [
    ("len(found) < 5", "Hold one lock over script.py:6-7."),
    ("number not in found", "Use `dict.setdefault` in place of check and store, or hold one lock over script.py:6-7."),
])
def test_setdefault_repairs_a_test_for_the_key_alone(test, repair, tmp_path):
    done = race(tmp_path, f"""
        import threading
        found = {{}}
        gate = threading.Barrier(2)
        def add(number):
            gate.wait()
            if {test}:
                found[number] = 1
        threads = [threading.Thread(target=add, args=(1,)) for _ in range(2)]
        for each in threads: each.start()
        for each in threads: each.join()
    """)
    assert f"Repair: {repair}" in " ".join((done.stdout + done.stderr).split())


def test_two_locks_of_one_name_are_repaired_by_one(tmp_path):
    done = race(tmp_path, """
        import threading
        class Counter:
            total = 0
            def __init__(self): self.lock = threading.Lock()
            def add(self):
                with self.lock:
                    Counter.total += 1
        threads = [threading.Thread(target=Counter().add) for _ in range(2)]
        for each in threads: each.start()
        for each in threads: each.join()
    """)
    assert "Repair: Hold one lock over script.py:7." in done.stdout + done.stderr
