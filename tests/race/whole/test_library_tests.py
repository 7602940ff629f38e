"""The standard library's own tests have the same outcomes under `gilscope race` as under Python."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

pytestmark = [pytest.mark.newest, pytest.mark.nightly]

# Quick ones that want neither a network nor their own folder.
LIBRARY = [
    "abc", "binop", "bisect", "bool", "colorsys", "compare", "complex", "contains", "copy", "copyreg",
    "decorators", "defaultdict", "deque", "dictcomps", "dictviews", "difflib", "dynamicclassattribute",
    "enumerate", "eof", "errno", "exception_hierarchy", "exception_variations", "extcall", "filter", "fnmatch",
    "fractions", "funcattrs", "functools", "generator_stop", "genericalias", "genexps", "getopt", "glob",
    "graphlib", "hash", "heapq", "html", "htmlparser", "index", "int_literal", "isinstance", "iter", "keyword",
    "keywordonlyarg", "list", "listcomps", "math_property", "named_expressions", "numeric_tower", "opcodes",
    "operator", "ordered_dict", "pkgutil", "positional_only_arg", "pow", "pprint", "property", "pstats",
    "queue", "raise", "range", "reprlib", "sched", "setcomps", "shelve", "shlex", "slice", "stat", "string",
    "stringprep", "structseq", "textwrap", "thread", "threading_local", "timeit", "tuple", "types",
    "type_params", "unary", "unpack", "unpack_ex", "userdict", "userlist", "userstring", "weakset", "with",
    "zipapp",
]
# What is another under the checker, and why.  Of these as many tests have to run.
EXCEPTIONS = {
    "queue": "an object that the collector ends puts into a SimpleQueue, too; which of two items comes first depends "
             "on when it runs, and so on what else is made",
    "thread": "66: its Barrier looks at `waiting` in one hold of its lock and changes it in another; and it prints "
              "random times",
    "types": "a method of SimpleQueue is no built-in one, since its order is followed; the test asks for its type",
}


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("name", LIBRARY)
def test_outcomes_are_the_same(name, python, tmp_path):
    source = library(python) / "test" / f"test_{name}.py"
    if not source.exists():
        pytest.skip("this build comes without such tests")
    (tmp_path / source.name).write_bytes(source.read_bytes())
    expected, got = both(python, tmp_path, source.name)
    if name in EXCEPTIONS:
        assert len(ran := {each for text in (got[2], expected[2]) for each in counted(text) if "Ran" in each}) == 1, ran
    else:
        assert (got[0], got[1], counted(got[2])) == (expected[0], expected[1], counted(expected[2])), got[2][-3000:]


def both(python, folder, *words):
    """Run a program under Python and under the checker; return how each ended and what it printed."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0", "PYTHON_COLORS": "0"}
    found = []
    for command in ([python], [sys.executable, "-m", "gilscope", "race", "--build", f"b={python}"]):
        own = environ if command[1:] else {key: each for key, each in environ.items() if key != "PYTHONPATH"}
        done = subprocess.run([*command, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
                              check=False, env=own, input="a line\n")
        found.append((done.returncode, plain(done.stdout), plain(done.stderr)))
    return found


def plain(text):
    """Return what a program printed without what is another each time: times and addresses."""
    return re.sub(r"0x[0-9a-f]+|\d+\.\d+ ?m?s", "#", text)


@functools.cache
def library(python):
    asked = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"], check=True,
                           capture_output=True, text=True)
    return Path(asked.stdout.strip())


def counted(text):
    """Return what unittest says at the end: how many tests ran, and how they ended."""
    return re.findall(r"^(?:Ran \d+ tests?|OK.*|FAILED.*|FAIL: .*|ERROR: .*)$", re.sub(" in #", "", text), re.MULTILINE)
