"""Helpers: one line of JSON answers one, and what is no answer is an error that says what came."""

import os
import signal
import subprocess
import sys

import pytest

from gilscope.toolkit.processes.helper_process import HelperFailedError, HelperProcess
from tests.patience import PATIENCE, wait_until

ECHO = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    print(json.dumps({"heard": json.loads(line)}), flush=True)
"""


def helper(code):
    return HelperProcess([sys.executable, "-c", code])


def test_each_request_is_answered():
    with helper(ECHO).wait_until_ready(PATIENCE) as echo:
        assert echo.ready == {"ready": True}
        assert echo.ask(limit=PATIENCE, text="é\n", number=1.5) == {"heard": {"text": "é\n", "number": 1.5}}
        echo.send([1, None])
        assert echo.receive() == {"heard": [1, None]}


def test_lines_that_come_at_once_are_answers_of_their_own():
    with helper("import sys; sys.stdout.write('1\\n2\\n[3, \\n'); sys.stdout.flush(); input()") as other:
        assert (other.receive(PATIENCE), other.receive(PATIENCE)) == (1, 2)
        with pytest.raises(HelperFailedError, match=r"said '\[3,'"):
            other.receive(PATIENCE)


@pytest.mark.parametrize(("code", "said"), [
    ("", "ended"),
    ("print('hello')", "said 'hello'"),
    ("print('{\"error\": \"no room\"}')", "failed: no room"),
])
def test_what_is_no_answer_is_an_error(code, said):
    with helper(code) as other, pytest.raises(HelperFailedError, match=said):
        other.receive(PATIENCE)


def test_answer_is_not_waited_for_without_end():
    with helper("import time; time.sleep(600)") as silent, pytest.raises(HelperFailedError, match="within 0 s"):
        silent.receive(0)


def test_request_to_a_helper_that_is_gone_is_an_error():
    with helper("") as gone:
        gone.end(PATIENCE)
        with pytest.raises((HelperFailedError, ValueError)):
            gone.ask(text="x" * 2**20)


def test_end_gives_the_helper_time_for_its_own_exit_code():
    assert helper("raise SystemExit(5)").end(PATIENCE) == 5
    assert helper("import time; time.sleep(600)").end() == -signal.SIGKILL


def test_helper_ends_with_us(tmp_path):
    code = (f"import os\nfrom gilscope.toolkit.processes.helper_process import HelperProcess\n"
            f"helper = HelperProcess([{sys.executable!r}, '-c', {ECHO!r}]).wait_until_ready({PATIENCE})\n"
            "print(helper.pid, flush=True)\nos.kill(os.getpid(), 9)\n")
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert wait_until(lambda: not lives(int(done.stdout)))


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
