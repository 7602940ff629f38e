"""An installed gilscope in a stranger's project whose packages are called as folders of ours are."""

import os
import shutil
import subprocess
import sys
import textwrap
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from gilscope.toolkit.store import load_run
from tests.conformance.builds import ROOT, found
from tests.patience import PATIENCE
from tests.shared import once

pytestmark = pytest.mark.newest

NAMES = ("toolkit", "workloads", "runners", "model", "store", "units", "race", "measure", "report", "gilscope_x")
OURS = f"""
    NAMES = {NAMES!r}

    def check():
        # Imported here, so that each worker, process and interpreter asks for them itself.
        import importlib, os, sys
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        for name in NAMES:
            module = importlib.import_module(name + ".own")
            assert module.__file__ == os.path.join(here, name, "own.py"), module.__file__
"""
APP = OURS + """
    def busy(number):
        import os, sys
        check()
        strangers = [path for path in sys.path if os.path.exists(os.path.join(path, "shtab"))]
        assert not strangers, f"libraries of gilscope's own are on the path: {strangers}"
        return sum(range(number))

    payloads = [20_000] * 4

    def request():
        return sum(busy(200_000) for _ in range(10))

    if __name__ == "__main__":
        import threading
        import toolkit.own
        threads = [threading.Thread(target=toolkit.own.add) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        check()
        print("whole")
"""
OWN = """
    class Total:
        value = 0

    def add():
        Total.value += 1
"""
TESTS = """
    import threading
    import pytest
    from shop import app
    from toolkit import own

    def test_everything_is_its_own():
        app.check()

    def test_two_threads():
        threads = [threading.Thread(target=own.add) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("setuptools", reason="makes the wheel")
    (made,) = once(tmp_path_factory, "wheel", lambda folder: build("wheel", ROOT, folder)).iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    pytest.importorskip("setuptools", reason="makes the sdist")
    (made,) = once(tmp_path_factory, "sdist", lambda folder: build("sdist", ROOT, folder)).iterdir()
    return made


def build(target, source, folder):
    """Return the wheel or sdist that setuptools makes of `source`."""
    code = f"import sys, setuptools.build_meta as backend; backend.build_{target}(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, folder], cwd=source, check=True, capture_output=True, timeout=PATIENCE)
    (made,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


PYTEST = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")


def installed_files(name):
    """Return the files and folders in site-packages that a distribution of this environment has."""
    found = distribution(name)
    inside = {path.parts[0] for path in found.files or () if path.parts[0] not in {"..", "__pycache__"}}
    return [Path(str(found.locate_file(part))) for part in inside]


class Installed:
    """An environment with gilscope's wheel in it, and the libraries of this one where they are asked for."""

    def __init__(self, folder):
        self.bin = folder / "bin"
        (self.site,) = folder.glob("lib/python3*/site-packages")

    @classmethod
    def make(cls, folder, wheel, libraries):
        venv.create(folder, symlinks=True)
        made = cls(folder)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(made.site)
        for path in {path for name in libraries for path in installed_files(name)}:
            (made.site / path.name).symlink_to(path)
        return made

    def call(self, folder, *words, expect=0, **variables):
        # Nothing of the process that tests: no path, no options of its interpreter.
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
        done = subprocess.run([self.bin / "python", *words], cwd=folder, env={**env, **variables}, timeout=PATIENCE,
                              capture_output=True, text=True, check=False)
        assert expect is None or done.returncode == expect, done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    libraries = (*PYTEST, "rich", "markdown-it-py", "mdurl", "pyperf", "shtab")
    return Installed(once(tmp_path_factory, "installed", lambda folder: Installed.make(folder, wheel, libraries)))


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    for name in NAMES:
        (folder / name).mkdir(parents=True)   # without __init__.py: any package of that name elsewhere would win
        (folder / name / "own.py").write_text(textwrap.dedent(OWN))
    for name, module, source in (("shop", "app", APP), ("tests", "test_shop", TESTS)):
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
        (folder / name / f"{module}.py").write_text(textwrap.dedent(source))
    (folder / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\n')
    return folder


def test_wheel_holds_one_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        top = {name.partition("/")[0] for name in archive.namelist()}
    assert {name.partition("-")[0] for name in top} == {"gilscope"}
    assert any(name.endswith("toolkit/race/pytest_/plugin.py") for name in zipfile.ZipFile(wheel).namelist())


@pytest.mark.slow
def test_sdist_makes_the_same_wheel(wheel, sdist, tmp_path):
    shutil.unpack_archive(sdist, tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    with zipfile.ZipFile(wheel) as straight, zipfile.ZipFile(build("wheel", source, tmp_path)) as way_round:
        assert [(each.filename, each.CRC) for each in way_round.infolist()] == [
            (each.filename, each.CRC) for each in straight.infolist()]


def test_nothing_of_this_machine_is_in_a_distribution(wheel, sdist, tmp_path):
    shutil.unpack_archive(wheel, tmp_path / "wheel", "zip")
    shutil.unpack_archive(sdist, tmp_path / "sdist", filter="data")
    assert not [path for path in tmp_path.rglob("*") if path.is_symlink()]
    assert not list((tmp_path / "wheel").glob("gilscope/tests*"))
    assert not list((tmp_path / "sdist").rglob("*.so"))
    for library in (tmp_path / "wheel").rglob("*.so"):
        assert os.fsencode(ROOT) not in library.read_bytes()


@pytest.mark.parametrize("words", [["-m", "pytest", "-W", "error"], ["-m", "pytest", "-W", "error", "--race"]])
def test_projects_tests_run(installed, project, words):
    plain = installed.call(project, "-m", "pytest", "-q", "-p", "no:gilscope_race", "-p", "no:cacheprovider")
    assert "2 passed" in plain.stdout
    racy = "--race" in words
    done = installed.call(project, *words, "-q", "-p", "no:cacheprovider", expect=int(racy))
    assert ("1 failed, 1 passed" if racy else "2 passed") in done.stdout
    assert "warning" not in done.stdout
    assert ("DATA RACE on Total.value" in done.stdout) == racy


def test_project_is_raced(installed, project):
    done = installed.call(project, "-m", "gilscope", "race", "-m", "shop.app", expect=66)
    assert done.stdout == "whole\n"
    assert "DATA RACE on Total.value" in done.stderr


@pytest.mark.slow
@pytest.mark.network   # pyperf, in the environment of the build
def test_project_is_measured_in_every_model(installed, project):
    done = installed.call(project, "-m", "gilscope", "run", "shop.app:busy", "--payloads", "shop.app:payloads",
                          "--quick", "--rounds", "1", "--workers", "2", "--build", f"mine={sys._base_executable}",
                          "--models", "serial,threads,subinterpreters,processes,asyncio", "--label", "own", expect=None,
                          GILSCOPE_RESULTS="results")
    failures = load_run(project / "results" / "own").failures
    assert not failures, "\n".join(f"{each.cell}: {each.reason}\n{each.output}" for each in failures)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed" not in done.stdout
    assert "subinterpreters" in done.stdout


def test_threads_of_the_project_are_watched(installed, project):
    if not sys.platform.startswith("linux"):
        pytest.skip("gilscope gil needs Linux")
    done = installed.call(project, "-m", "gilscope", "gil", "-m", "shop.app")
    assert "whole" in done.stdout


@pytest.mark.nightly
@pytest.mark.network
@pytest.mark.builds("free")
def test_project_is_evaluated(installed, project, build):
    builds = [word for each in found() for word in ("--build", f"{each.label}={each.executable}")]
    done = installed.call(project, "-m", "gilscope", "evaluate", ".", "--workload", "shop.app:request", *builds,
                          "--builds", build.label, "--budget", "8m", "--full", expect=None)
    assert " 2/2 " in done.stdout
    assert "the workload failed" not in done.stdout
    assert "toolkit/own.py:6: guard Total.value with a lock" in done.stdout


def test_plugins_cost_a_test_run_their_own_modules(installed, project):
    # How long that takes: `python -m tests.benchmarks.plugin_cost`.
    (project / "tests" / "test_shop.py").write_text("import sys\ndef test():\n    print(*sorted(sys.modules))\n")
    shown = [set(installed.call(project, "-m", "pytest", "-q", "-s", *words).stdout.splitlines()[0].split())
             for words in ([], ["-p", "no:gilscope_race", "-p", "no:gilscope_gil"])]
    assert shown[0] - shown[1] == {
        "gilscope", "gilscope.toolkit", "gilscope.toolkit.gil_guard", "gilscope.toolkit.gil_guard.plugin",
        "gilscope.toolkit.race", "gilscope.toolkit.race.pytest_",
        "gilscope.toolkit.race.pytest_.plugin"}


@pytest.mark.parametrize("damage", ["missing", "broken"])
def test_plugin_needs_none_of_our_dependencies(wheel, project, damage, tmp_path):
    poor = Installed.make(tmp_path / "poor", wheel, PYTEST)
    if damage == "broken":
        for name in ("rich", "pyperf", "shtab"):
            (poor.site / f"{name}.py").write_text("raise RuntimeError('broken')\n")
    done = poor.call(project, "-m", "pytest", "-q", "-W", "error")
    assert "2 passed" in done.stdout
