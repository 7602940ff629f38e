"""Twelve ways to turn the GIL on, each beside its repair."""

from dataclasses import dataclass, field

import pytest

pytestmark = pytest.mark.builds("free")

PASSING = "def test_passes():\n    pass\n"


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to turn the GIL on, and what the session must say of it."""

    tests: dict                    # files of the project
    failed: tuple = ()             # lines of the summary; () where no test can run
    passed: int = 0                # other tests
    says: tuple = ()               # texts of the output, in this order
    options: dict = field(default_factory=dict)    # of the run, without which it is repaired


FROM_TURNER = "the GIL was turned on by the import of turner.EXTENSION (turner 1.0)"
WAYS = {
    "at import": Way(
        tests={"shop/__init__.py": "import turner.EXTENSION\n",
               "tests/test_a.py": f"import shop\n{PASSING}", "tests/test_b.py": PASSING},
        failed=("ERROR tests/test_a.py",),
        says=(FROM_TURNER, "tests/test_a.py:1", "shop/__init__.py:1")),
    "late in a test": Way(
        tests={"shop/__init__.py": "def late():\n    import turner.EXTENSION\n",
               "tests/test_a.py": f"import shop\n{PASSING}def test_late():\n    assert 1 + 1 == 2\n    shop.late()\n"
                                  "def test_after():\n    pass\n"},
        failed=("FAILED tests/test_a.py::test_late",), passed=2,
        says=(FROM_TURNER, "tests/test_a.py:6", "shop/__init__.py:2")),
    "in a fixture": Way(
        tests={"tests/test_a.py": "import pytest\n@pytest.fixture\ndef turned():\n    import turner.EXTENSION\n"
                                  "def test_first():\n    pass\ndef test_turned(turned):\n    pass\n"},
        failed=("ERROR tests/test_a.py::test_turned",), passed=1,
        says=(FROM_TURNER, "tests/test_a.py:4")),
    "in a thread": Way(
        tests={"shop/__init__.py": "def late():\n    import turner.EXTENSION\n",
               "tests/test_a.py": "import threading, shop\ndef test_thread():\n"
                                  "    thread = threading.Thread(target=shop.late, name='till')\n"
                                  f"    thread.start()\n    thread.join()\n{PASSING}"},
        failed=("FAILED tests/test_a.py::test_thread",), passed=1,
        says=(f"{FROM_TURNER}, in thread till", "shop/__init__.py:2")),
    "in a plugin": Way(
        tests={"tests/test_a.py": PASSING, "plugged": ""},
        says=(f"--gil=off: before any test, {FROM_TURNER}", "plugged/__init__.py:1")),
    "at collection": Way(
        tests={"tests/conftest.py": "def pytest_collection_modifyitems(items):\n    import turner.EXTENSION\n",
               "tests/test_a.py": PASSING}, passed=1,   # no test does it, so the session fails
        says=(f"Before tests/test_a.py::test_passes, {FROM_TURNER}", "tests/conftest.py:2", "So the session fails")),
    "in a subprocess": Way(
        tests={"tests/test_a.py": "import subprocess, sys\ndef test_started():\n"
                                  "    subprocess.run([sys.executable, 'tests/tool.py'], check=True)\n" + PASSING,
               "tests/tool.py": "\nimport turner.EXTENSION\n"},
        failed=("FAILED tests/test_a.py::test_started",), passed=1,
        says=(f"{FROM_TURNER}, in another process (PID ", "tests/tool.py:2")),
    "by -X gil": Way(
        tests={"tests/test_a.py": PASSING}, options={"python": ("-X", "gil=1")},
        says=("--gil=off: -X gil=1 keeps the GIL on",)),
    "by the environment": Way(
        tests={"tests/test_a.py": PASSING}, options={"PYTHON_GIL": "1"},
        says=("--gil=off: PYTHON_GIL=1 keeps the GIL on",)),
    "in a dependency's dependency": Way(
        tests={"tests/test_a.py": f"import middle\n{PASSING}"},
        failed=("ERROR tests/test_a.py",),
        says=(FROM_TURNER, "tests/test_a.py:1", "middle/__init__.py:1", "middle/deep.py:1")),
    "only in the second test file": Way(
        tests={"tests/test_a.py": PASSING,
               "tests/test_b.py": "def test_b():\n    import turner.EXTENSION\ndef test_c():\n    pass\n"},
        failed=("FAILED tests/test_b.py::test_b",), passed=2,
        says=(FROM_TURNER, "tests/test_b.py:2")),
    "in a test by import": Way(
        tests={"tests/test_a.py": "import importlib\ndef test_named():\n"
                                  f"    importlib.import_module('turner.EXTENSION')\n{PASSING}"},
        failed=("FAILED tests/test_a.py::test_named",), passed=1,
        says=(FROM_TURNER, "tests/test_a.py:3")),
}


def planted(project, way):
    """Write a project and the packages that it needs; the one with the extension module is `turner`."""
    files = dict(way.tests)
    project.add("turner")
    project.add("middle", {"__init__.py": "from middle import deep\n", "deep.py": "import turner.EXTENSION\n"},
                compiled=False, requires=("turner",))
    if files.pop("plugged", None) is not None:
        project.add("plugged", {"__init__.py": "import turner.EXTENSION\n"}, compiled=False,
                    info={"entry_points.txt": "[pytest11]\nplugged = plugged\n"})
    project.write(files)
    return project


@pytest.mark.parametrize("name", WAYS)
def test_first_that_turns_the_gil_on_fails_with_the_cause(name, project):
    way = WAYS[name]
    done = planted(project(), way).test(**way.options)
    assert done.code != 0
    assert done.failed() == list(way.failed)
    if way.passed:
        assert done.counts()["passed"] == way.passed
    at = 0
    for text in (each.replace("EXTENSION", "multi_plain") for each in way.says):
        assert text in done.output[at:]
        at = done.output.index(text, at)


@pytest.mark.parametrize("name", WAYS)
def test_repair_passes(name, project):
    way = WAYS[name]
    done = planted(project(repaired=True), way).test()
    assert (done.code, done.failed()) == (0, [])
    assert "gilscope: the GIL is off" in done.output
    tests = done.counts()["passed"]
    assert f"The GIL was off in {tests} of {tests} test" in done.output
