"""`gilscope scale`: its errors, and an answer on a free-threaded build."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gilscope.toolkit import cli
from gilscope.toolkit.commands import scale as command
from gilscope.toolkit.errors import ToolkitError
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE, told

on_free_build = pytest.mark.builds("free")
PROGRAM = """
import threading

LEFT = threading.Event()
PAYLOADS = [[1.5, 2.5]]
EMPTY = []

def f():
    return sum(range(50))

def raises():
    raise LookupError("no such thing")

def raises_later():
    if threading.current_thread() is not threading.main_thread():
        raise LookupError("too late")

def leaves_a_thread():
    threading.Thread(target=LEFT.wait, daemon=True).start()

def slow():
    import time
    time.sleep(0.6)

def needs_one(rate):
    return rate

def needs_two(rate, amount):
    return rate * amount

def generator():
    yield 1

def forever():
    import os, pathlib
    pathlib.Path("pid").write_text(f"{os.getpid()}\\n")
    while True:
        pass
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "app.py").write_text(PROGRAM)
    (tmp_path / "lacks.py").write_text("import no_such_package\n\ndef f():\n    pass\n")
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-m", "gilscope", "scale", *words], cwd=folder, capture_output=True,
                          text=True, check=False, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.fixture
def scale(folder, build, python):
    """Give a function that runs `gilscope scale` on the free-threaded build."""
    return lambda *words: run(folder, *words, "--build", f"{build.label}={python}", "--builds", build.label)


@pytest.mark.parametrize(("words", "message"), [
    (["app"], r"'app' does not have the form package\.module:name"),
    (["app.py:f"], r"name the module, not the file: app:f"),
    (["app:f", "--payloads", "PAYLOADS"], r"'PAYLOADS' does not have the form"),
    (["app:f", "--payloads", "app:PAYLOADS", "--payload", "1"], r"use --payloads, or --payload"),
    (["app:f", "--payload", "one("], r"is not a Python literal"),
    ([], r"name one function, as MODULE:FUNCTION, or with --api a module"),
    (["app:f", "--api", "app"], r"name one function, as MODULE:FUNCTION, or with --api a module"),
    (["--api", "app:f"], r"--api app:f: name a module"),
    (["--api", "app", "--payload", "1"], r"--api takes arguments from tests"),
    (["--api", "app", "--tests", "nowhere"], r"--tests nowhere: there is no such file or folder"),
    (["app:f", "--budget", "5m"], r"--tests and --budget are for --api"),
    (["app:f", "--threads", "1"], r"--threads 1: from 2 to \d+"),
    (["app:f", "--threads", "10000"], r"--threads 10000: from 2 to \d+"),
    (["app:f", "--builds", "0.1t"], r"0\.1t"),
    (["app:f", "--build", f"mine={sys.executable}", "--builds", "mine"], r"mine has a GIL.*name free-threaded builds"),
])
def test_wrong_requests_say_what_is_wrong(folder, words, message):
    if "mine" in words and not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("this Python has no GIL")
    done = run(folder, *words)
    assert done.returncode == 2
    assert re.search(message, done.stderr), done.stderr


def test_without_a_free_threaded_build_it_says_how_to_get_one(monkeypatch):
    monkeypatch.setattr(command, "find_builds", lambda *_, **__: type("None_", (), {"builds": ()})())
    with pytest.raises(ToolkitError, match="gilscope builds install") as caught:
        command._builds(cli.make_parser(("scale",)).parse_args(["scale", "app:f"]))
    assert caught.value.exit_code == 3


@on_free_build
@pytest.mark.parametrize(("words", "message"), [
    (["app:rases"], r"gilscope: app has no 'rases'; did you mean 'raises'\?"),
    (["app:f", "--payloads", "app:PAYLOAD"], r"gilscope: app has no 'PAYLOAD'; did you mean 'PAYLOADS'\?"),
    (["nowhere:f"], r"gilscope: there is no module 'nowhere' \(looked for nowhere:f\); run from the folder"),
    (["app:needs_one"], r"app:needs_one needs rate; give it with --payload LITERAL"),
    (["app:needs_two"], r"app:needs_two needs rate, amount; .* name a function that calls it with all it needs"),
    (["app:needs_two", "--payload", "1"], r"app:needs_two needs rate, amount; a payload is one argument"),
])
def test_wrong_name_or_missing_argument_is_a_wrong_request(scale, words, message):
    done = scale(*words)
    assert done.returncode == 2
    assert re.search(message, " ".join(done.stderr.split())), done.stderr


@on_free_build
@pytest.mark.parametrize(("words", "message"), [
    (["app:f", "--payloads", "app:EMPTY"], r"app:EMPTY is empty"),
    (["app:raises"], r"LookupError: no such thing \(app\.py:12 in raises\)"),
    (["app:raises_later"], r"app:raises_later raised LookupError: too late \(app\.py:\d+ in raises_later\)"),
    (["lacks:f"], r"lacks imports 'no_such_package', which this build does not have; add it with --with"),
    (["app:leaves_a_thread"], r"has left \d+ thread\(s\) running.*cannot be\s+forked"),
    (["app:slow"], r"a call of app:slow takes .* s; name a part of the work"),
    (["app:generator"], r"app:generator is a generator"),
])
def test_function_that_cannot_be_measured_is_refused_with_the_reason(scale, words, message):
    done = scale(*words)
    assert done.returncode == 3
    assert re.search(message, " ".join(done.stdout.split())), done.stdout


STOPS = """
import os, signal, sys
from gilscope.toolkit import cli
from gilscope.toolkit.commands import scale as command
from gilscope.toolkit.scale import api
from gilscope.toolkit.scale.zygote_process import LostZygoteError

def investigate(process, loaded, threads, *, say):
    say("plateaus, 0.45 of the ceiling so far")
    if "{how}" == "lost":
        raise LostZygoteError("it did not return within 20 s")
    os.kill(os.getpid(), signal.SIGTERM)

def take_a_look(process, threads):
    os.kill(os.getpid(), signal.SIGTERM)

command.investigate, api.take_a_look = investigate, take_a_look
sys.exit(cli.main(sys.argv[1:]))
"""


@on_free_build
@pytest.mark.parametrize(("how", "words", "code", "said"), [
    ("signal", ["app:f"], 128 + signal.SIGTERM,
     "stopped before the end; known by then: plateaus, 0.45 of the ceiling so far"),
    ("lost", ["app:f"], 3, "it did not return within 20 s; known by then: plateaus, 0.45 of the ceiling so far"),
    ("signal", ["--api", "offers", "--full"], 128 + signal.SIGTERM,
     "halve: halve(8) (tests/test_offers.py:6): ArithmeticError"),
])
def test_whoever_ends_it_is_told_what_is_known(folder, build, python, how, words, code, said):
    (folder / "offers.py").write_text(OFFERS)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_offers.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-P", "-c", STOPS.replace("{how}", how), "scale", *words, "--build",
         f"{build.label}={python}", "--builds", build.label], cwd=folder, capture_output=True, text=True, check=False,
        timeout=PATIENCE, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == code, done.stderr
    assert said in " ".join(done.stdout.split())


@on_free_build
def test_measuring_process_ends_when_gilscope_is_killed(folder, build, python):
    os.mkfifo(folder / "pid")
    begun = os.open(folder / "pid", os.O_RDONLY | os.O_NONBLOCK)
    words = ["gilscope", "scale", "app:forever", "--build", f"{build.label}={python}", "--builds", build.label]
    with subprocess.Popen([sys.executable, "-P", "-m", *words], cwd=folder, stderr=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        try:
            measuring = os.pidfd_open(int(told(begun, process)))
            assert not select.select([measuring], [], [], 0)[0]     # it runs
        finally:
            process.kill()
    assert select.select([measuring], [], [], PATIENCE)[0]      # it has ended
    os.close(measuring)
    os.close(begun)


@on_free_build
def test_answer_fits_its_schema(folder, scale):
    done = scale("app:f", "--json", "scale.json", "--markdown", "scale.md")
    assert done.returncode in {0, 1}, done.stderr
    assert len(done.stdout.splitlines()) <= 12
    assert "Measured with" in (folder / "scale.md").read_text()
    found = json.loads((folder / "scale.json").read_text())
    assert (found["subject"], [each["problem"] for each in found["builds"]]) == ("app:f", [""])
    (called,) = found["builds"][0]["callables"]
    assert (called["name"], called["found"]["objects"]) == ("app:f", [])     # there is nothing to blame
    check_schema(found)


def check_schema(found):
    jsonschema = pytest.importorskip("jsonschema")
    from tests.report.test_as_json import closed

    schema = json.loads((ROOT / "toolkit" / "report" / "schemas" / "scale.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, closed(schema))


TESTS = """
from offers import double, halve, keep

def test_numbers():
    assert double([1, 2]) == [1, 2, 1, 2]
    assert halve(8) == 4
"""
OFFERS = """
def double(numbers):
    return numbers * 2

def halve(number):
    raise ArithmeticError("too small")

def keep(number):
    return number
"""


@on_free_build
def test_api_has_a_row_or_a_reason_for_each_function_and_its_answer_fits_the_schema(folder, scale):
    (folder / "offers.py").write_text(OFFERS)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_offers.py").write_text(TESTS)
    done = scale("--api", "offers", "--json", "api.json", "--full")
    assert done.returncode in {0, 1}, done.stderr
    said = " ".join(done.stdout.split())
    assert "halve: halve(8) (tests/test_offers.py:6): ArithmeticError: too small" in said
    assert "keep: no call in tests and doctests that can be repeated alone" in said
    found = json.loads((folder / "api.json").read_text())
    (build,) = found["builds"]
    assert (found["subject"], build["problem"], build["complete"]) == ("offers", "", True)
    assert {each["name"]: (each["call"], each["problem"]) for each in build["callables"]} == {
        "double": ("double([1, 2])", ""), "halve": ("halve(8)", "ArithmeticError: too small"), "keep": ("", "")}
    check_schema(found)


@on_free_build
def test_module_of_the_api_that_is_not_there_is_said(scale):
    done = scale("--api", "nowhere")
    assert done.returncode == 3
    assert "nowhere cannot be imported: ModuleNotFoundError: No module named 'nowhere'" in " ".join(done.stdout.split())
