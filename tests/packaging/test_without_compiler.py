"""The wheels in a root without a compiler: every command works there, `race` and `gil` with their compiled libraries.

The source distribution installs there, too; `race` and `gil` then say what to install.
"""

import json
import re
import shutil
import textwrap

import pytest

from gilscope.toolkit.cli import COMMANDS
from tests.conformance.builds import ROOT, chosen
from tests.packaging.bare_root import COMPILERS, BareRoot, refusal

pytestmark = [pytest.mark.slow, pytest.mark.network, pytest.mark.newest,
              pytest.mark.skipif(bool(refusal()), reason=refusal() or "never")]

CLICKS = """
    import threading

    clicks = 0

    def click():
        global clicks
        for _ in range(200_000):
            clicks += 1

    def test_click():
        threads = [threading.Thread(target=click, name=name) for name in ("left", "right")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    if __name__ == "__main__":
        test_click()
"""
WORK = """
    def perfect_numbers(limit):
        return [n for n in range(2, limit) if sum(d for d in range(1, n) if n % d == 0) == n]

    payloads = [200] * 4

    def work():
        return [perfect_numbers(limit) for limit in payloads]
"""
PROJECT = """
    [project]
    name = "mywork"
    version = "1"

    [tool.setuptools]
    py-modules = ["mywork"]
"""
SHORT = ("--rounds", "1", "--budget", "20s", "--workers", "2")
RUN = ("run", "mywork:perfect_numbers", "--payloads", "mywork:payloads", "--models", "serial,threads,subinterpreters",
       *SHORT)
EVERY = {   # the commands of each, with their exit codes
    "run": [((*RUN, "--label", "mine"), 0), ((*RUN, "--label", "again"), 0)],
    "report": [(("report", "mine"), 0)],
    "compare": [(("compare", "mine", "again"), 0)],
    "site": [(("site", "--out", "pages"), 0)],
    "experiment": [(("experiment", "run", "countdown", "--smoke"), 0)],
    "race": [(("race", "clicks.py"), 66)],
    "gil": [(("gil", "clicks.py"), 0)],
    "scale": [(("scale", "mywork:work"), None)],
    "evaluate": [(("evaluate", "project", "--workload", "mywork:work", "--budget", "45s"), None)],
    "doctor": [(("doctor", "markupsafe", "--builds", "TWIN"), None)],   # its newest version has no wheel for 3.13t
    "builds": [(("builds",), 0)],
    "list": [(("list",), 0)],
    "fleet": [((*RUN, "--label", "hosts", "--fleet", "local:1"), 0)],
}


class Installation:
    """An empty environment of one build in a root without a compiler, and gilscope in it."""

    def __init__(self, folder, pythons, label, dist, packages, what="gilscope"):
        self.root = BareRoot(folder / "root", dist, packages, pythons=list(pythons.values()))
        self.variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{dist} {packages}",
                          "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        for compiler in COMPILERS:
            assert self.root.call("sh", "-c", f"command -v {compiler}", expect=None).returncode, compiler
        self.root.call(pythons[label], "-m", "venv", "env")
        self.pip("pytest", "rich", "shtab", "packaging")
        if self.pip("psutil", expect=None).returncode:    # pyperf requires it, and this build has no wheel of it
            self.pip("--no-deps", "pyperf", what)
        else:
            self.pip(what)
        for name, text in (("clicks.py", CLICKS), ("mywork.py", WORK), ("project/mywork.py", WORK),
                           ("project/pyproject.toml", PROJECT)):
            (self.root.home / name).parent.mkdir(exist_ok=True)
            (self.root.home / name).write_text(textwrap.dedent(text))

    def pip(self, *words, expect=0):
        return self.call("python", "-m", "pip", "install", "--quiet", *words, expect=expect)

    def call(self, *words, expect=0, **variables):
        return self.root.call(*words, expect=expect, first="/home/user/env/bin", **self.variables, **variables)

    def made_cores(self):
        return sorted(path.name for path in self.root.home.glob(".cache/gilscope/race-core/*/*.so"))


@pytest.fixture
def installation(tmp_path, pythons, dist, packages):
    def make(label, what="gilscope", among=pythons):
        return Installation(tmp_path, {each: pythons[each] for each in among}, label, dist, packages, what)

    return make


def kinds():
    """Return the labels of a build with the GIL and of one without, of the newest version that has wheels of dask."""
    versions = {}
    for build in chosen():
        versions.setdefault(int(build.minor.partition(".")[2]), {})[build.free_threaded] = build.label
    pairs = {minor: pair for minor, pair in versions.items() if len(pair) == 2 and minor < 15}
    return pairs[max(pairs)] if pairs else {}


@pytest.mark.builds("gil", "free")
def test_races_and_waits_are_found_by_the_wheels_own_libraries(build, installation):
    here = installation(build.label)
    assert here.call("gilscope", "--version").stdout.startswith("gilscope ")
    done = here.call("gilscope", "race", "clicks.py", expect=66)
    assert "DATA RACE on global clicks in clicks.py: lost update" in done.stderr
    assert "[clicks.py]" in done.stderr
    done = here.call("pytest", "-q", "--race", "-p", "no:cacheprovider", "clicks.py", expect=1)
    assert "DATA RACE on global clicks" in done.stdout
    assert here.made_cores() == []
    here.call("gilscope", "gil", "--json", "waits.json", "clicks.py")
    waits = json.loads((here.root.home / "waits.json").read_text())
    assert waits["schema"]
    assert not list(here.root.home.glob(".cache/gilscope/gil-shim/*.so"))


@pytest.mark.builds("gil", "free")
def test_core_for_another_build_comes_from_its_wheel(build, pythons, installation):
    label = build.label
    # Two builds of one minor version load the core of one wheel.
    runs_on = next((other for other in pythons if pythons[other].name != pythons[label].name), None)
    if runs_on is None:
        pytest.skip("there is no build of another version")
    here = installation(runs_on)
    done = here.call("gilscope", "race", "--build", f"other={pythons[label]}", "clicks.py", expect=66)
    assert here.made_cores() == ["_core.so"]
    # Without any wheel, the one in the cache serves.
    here.variables["PIP_FIND_LINKS"] = "/nowhere"
    here.call("gilscope", "race", "--build", f"other={pythons[label]}", "clicks.py", expect=66)
    shutil.rmtree(here.root.home / ".cache")
    done = here.call("gilscope", "race", "--build", f"other={pythons[label]}", "clicks.py", expect=3)
    assert "there is no wheel of gilscope==" in done.stderr
    assert "there is no C compiler" in done.stderr
    assert "install gilscope" in done.stderr


@pytest.mark.parametrize("kind", [
    pytest.param("with the GIL", marks=pytest.mark.nightly), "free-threaded"])
def test_every_command_works(kind, pythons, installation):
    pair = kinds()
    if not pair:
        pytest.skip("there is no pair of builds of one version before 3.15")
    assert set(EVERY) == set(COMMANDS)
    here = installation(pair[kind == "free-threaded"], among=pair.values())
    fleet = here.pip("distributed", expect=None).returncode == 0   # it needs msgpack, which has no wheel for 3.13t
    failures = []
    for name, commands in EVERY.items():
        for words, code in commands if fleet or name != "fleet" else []:
            # On PATH, the label of a build is its file's name.
            twin = pythons[pair[True]].name.removeprefix("python")
            command = [twin if word == "TWIN" else word for word in words]
            done = here.call("gilscope", *command, expect=None)
            expected = done.returncode in {0, 1} if code is None else done.returncode == code
            if not expected or "Traceback" in done.stderr:
                failures.append(f"{command}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    assert not failures, "\n".join(failures)
    assert (here.root.home / "pages" / "index.html").exists()


def test_container_recipe_works(pythons, dist, packages, tmp_path):
    recipe = re.search(r"```dockerfile\n(.+?)```", (ROOT / "docs" / "getting-started.md").read_text(), re.DOTALL)[1]
    commands = re.findall(r"^RUN (.+)$", recipe, re.MULTILINE)
    assert len(commands) == 2
    version = re.search(r"^FROM python:(3\.\d+)", recipe)[1]
    label = next((label for label, path in pythons.items() if path.name == f"python{version}"), None)
    if label is None:
        pytest.skip(f"there is no {version}")
    root = BareRoot(tmp_path / "root", dist, packages, pythons=[pythons[label]])
    root.call(pythons[label], "-m", "venv", "env")     # the image's own Python, which may be written
    (root.home / "app.py").write_text(textwrap.dedent(CLICKS))
    variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(packages)}
    for command, code in zip(commands, (0, 66), strict=True):
        words = ("sh", "-c", command.replace("/dist", str(dist)))
        done = root.call(*words, expect=code, first="/home/user/env/bin", **variables)
    assert "[app.py]" in done.stderr


def test_source_distribution_installs_without_race_and_gil(pythons, installation, dist):
    (archive,) = dist.glob("*.tar.gz")
    here = installation(next(iter(pythons)), archive)
    assert not list(here.root.home.glob("env/lib/python*/site-packages/gilscope/**/*.so"))
    here.call("gilscope", *RUN, "--label", "mine")
    here.variables["PIP_FIND_LINKS"] = here.variables["PIP_FIND_LINKS"].split()[1]    # no wheel of gilscope
    for words in (("gilscope", "race", "clicks.py"), ("gilscope", "gil", "clicks.py")):
        done = here.call(*words, expect=3)
        assert done.stdout == ""
        assert "there is no C compiler" in done.stderr
        assert re.search("install gilscope.*wheel", done.stderr), done.stderr
    done = here.call("pytest", "-q", "--race", "clicks.py", expect=4)
    assert "the race checker has no core for this Python" in done.stderr
