"""The interface for users' own Python: what `import gilscope` gives, and what it costs."""

import concurrent.futures
import inspect
import subprocess
import sys

import pytest

import gilscope
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE


def test_public_names_are_these():
    # Changed on purpose only: users' code has them.
    assert gilscope.__all__ == ["SubinterpreterExecutor", "__version__", "race"]
    assert gilscope.race.__all__ == ["RaceError", "checked", "watch"]
    assert str(inspect.signature(gilscope.race.watch)) == (
        "(*, raises: 'bool' = False, include: 'Sequence[str]' = ()) -> 'Iterator[WatchReport]'")
    assert str(inspect.signature(gilscope.race.checked)) == (
        "(function: 'Callable[P, R] | None' = None, /, *, raises: 'bool' = False, include: 'Sequence[str]' = ()) "
        "-> 'Any'")
    assert issubclass(gilscope.race.RaceError, AssertionError)
    assert issubclass(gilscope.SubinterpreterExecutor, concurrent.futures.Executor)
    assert str(inspect.signature(gilscope.SubinterpreterExecutor)) == (
        "(max_workers: 'int | None' = None, *, initializer: 'Callable[..., object] | None' = None, "
        "initargs: 'Args' = ()) -> 'None'")
    assert [name for name in vars(gilscope.SubinterpreterExecutor) if not name.startswith("_")] == [
        "submit", "map", "run", "shutdown", "stop"]


def test_import_brings_nothing_along():
    code = ("import sys; before = set(sys.modules); import gilscope; assert gilscope.__version__; "
            "print(*sorted(set(sys.modules) - before)); gilscope.race; print('gilscope.race' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
                          timeout=PATIENCE)
    assert done.stdout == "gilscope\nTrue\n"


def test_other_names_are_missing_as_usual():
    done = subprocess.run([sys.executable, "-c", "import gilscope; gilscope.nothing"], cwd=ROOT, capture_output=True,
                          text=True, check=False, timeout=PATIENCE)
    assert done.stderr.endswith("AttributeError: module 'gilscope' has no attribute 'nothing'\n")


@pytest.mark.parametrize("statement", ["import gilscope.race as race", "from gilscope import race",
                                       "import gilscope; race = gilscope.race"])
def test_race_is_imported_as_anything_is(statement):
    code = f"{statement}\nwith race.watch() as report: pass\nprint(report.races)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
                          timeout=PATIENCE)
    assert done.stdout == "()\n"
