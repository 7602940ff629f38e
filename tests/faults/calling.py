"""Cases drawn by a seed; the command line called in this process for them, and what must hold of every call."""

import contextlib
import io
import os
import random
import re
import signal
from dataclasses import dataclass

from gilscope.toolkit import cli
from tests.patience import PATIENCE

# The same cases each time, unless a seed is given: `make nightly` does, and prints it.
CHOSEN = os.environ.get("GILSCOPE_SEED", "20261122")
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")   # what a terminal obeys, but line ends


def draw(*where):
    """Return a source of cases that depends on the seed and the place alone."""
    return random.Random("/".join(map(str, (CHOSEN, *where))))


class HangingError(Exception):
    """A call that does not return."""


@dataclass(frozen=True, slots=True)
class Called:
    """What a call came to."""

    code: int
    out: str
    errors: str


def call(*words):
    """Run `gilscope WORDS` and return what came of it; raises what no user may see."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors), limited():
        try:
            code = cli.main(list(words))
        except SystemExit as left:
            code = left.code
    return Called(code if isinstance(code, int) else int(bool(code)), out.getvalue(), errors.getvalue())


@contextlib.contextmanager
def limited():
    def ended(*_):
        raise HangingError

    earlier = signal.signal(signal.SIGALRM, ended)
    signal.alarm(int(PATIENCE))
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, earlier)


def faults_of(called):
    """Yield what is wrong with a call, whatever was asked for."""
    if "Traceback (most recent call last)" in called.out + called.errors:
        yield "a traceback"
    if "which is a bug" in called.errors:
        yield f"the last resort: {called.errors[-700:]}"
    if raw := RAW.search(called.out + called.errors):
        yield f"{raw[0]!r} reaches the terminal"
    if called.code not in {0, 2, 3}:
        yield f"exit code {called.code}"
    if called.code and not called.errors:
        yield f"exit code {called.code} without a word"


def everything_below(folder):
    """Return every path below `folder` with its size: what a call has left there."""
    return {str(path): path.lstat().st_size for path in folder.rglob("*")}
