"""The workflows of this repository: linted, and each of their steps run here, or listed with the reason why not."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from tests.actionlint import lint
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

FOLDER = ROOT / ".github" / "workflows"
NAMES = sorted(path.name for path in FOLDER.glob("*.yml"))
PER_BUILD = ("cp312", "cp313", "cp314", "cp314t", "cp315", "cp315t")
pytestmark = [pytest.mark.newest, pytest.mark.skipif(not NAMES, reason="a source distribution has no workflows")]

NOT_RUN = {   # (workflow, job, step): why
    ("tests.yml", "all", "check everything"): "it runs this test",
    ("nightly.yml", "whole", "check everything"): "likewise",
    ("wheels.yml", "wheels", "make the wheels"): "it needs containers and other machines; see the identifiers below",
    ("release.yml", "publish", "sign"): "it needs the identity that GitHub gives a workflow",
    ("release.yml", "publish", "publish"): "it publishes",
}
LESS = {   # the variables that make a step short; what it runs stays
    ("tests.yml", "builds", "test"): {"PYTEST_ADDOPTS": "tests/test_units.py"},
    ("nightly.yml", "next", "test"): {"PYTEST_ADDOPTS": "tests/test_units.py"},
}


def jobs():
    """Return {(workflow, job): steps with commands}."""
    yaml = pytest.importorskip("yaml", reason="pyyaml reads workflows")
    found = {}
    for name in NAMES:
        for job, content in yaml.safe_load((FOLDER / name).read_text())["jobs"].items():
            steps = [step for step in content.get("steps", ()) if "run" in step]
            if steps:
                found[name, job] = steps
    return found


def test_every_step_has_a_name_and_what_is_not_run_exists():
    steps = {(*key, step.get("name")) for key, found in jobs().items() for step in found}
    assert all(name for *_, name in steps)
    assert set(NOT_RUN) | set(LESS) <= steps


@pytest.mark.slow
@pytest.mark.network   # the first time
@pytest.mark.parametrize("name", NAMES)
def test_workflow_is_clean_for_actionlint(name):
    assert lint((FOLDER / name).read_text()) == ""


@pytest.mark.slow   # whose set-up installs zizmor
def test_workflows_are_clean_for_zizmor():
    zizmor = Path(sys.executable).with_name("zizmor")
    if not zizmor.exists():
        pytest.skip("NO WORKFLOW WAS AUDITED: there is no zizmor; `make test-all` installs it")
    done = subprocess.run([zizmor, "--offline", "--no-progress", FOLDER, ROOT / "action.yml"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("tag", ["", "v0.0.0-other"])
def test_version_is_the_tags(tag):
    done = subprocess.run([sys.executable, ROOT / ".ci" / "check_version.py", *filter(None, [tag])],
                          capture_output=True, text=True, check=False)
    assert done.returncode == bool(tag), done.stdout


def test_tag_has_a_section_in_the_changelog(tmp_path):
    for name in (".ci/check_version.py", "pyproject.toml", "gilscope/__init__.py", "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text().replace(f"[{version}]", "[other]")
    endings = []
    for text in (changelog, f"{changelog}\n## [{version}] - 2026-12-01\n"):
        (tmp_path / "CHANGELOG.md").write_text(text)
        endings.append(subprocess.run([sys.executable, tmp_path / ".ci" / "check_version.py", f"v{version}"],
                                      check=False, capture_output=True).returncode)
    assert endings == [1, 0]


@pytest.mark.slow
@pytest.mark.parametrize(("platform", "archs", "kinds"), [
    ("linux", ("x86_64", "aarch64"), ("manylinux", "musllinux")), ("macos", ("x86_64", "arm64"), ("macosx",))])
def test_wheels_are_made_for_every_build(platform, archs, kinds):
    pytest.importorskip("cibuildwheel")
    command = [sys.executable, "-m", "cibuildwheel", "--print-build-identifiers", "--platform", platform]
    done = subprocess.run([*command, "--archs", ",".join(archs), ROOT], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {
        f"{build}-{kind}_{arch}" for build in PER_BUILD for kind in kinds for arch in archs}


def checkout(folder):
    """Copy what git knows or would know of this checkout, as a repository of its own."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        source, target = ROOT / name, folder / name
        if name == ".venv" or not os.path.lexists(source):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)
    return folder


JOBS = [("tests.yml", "builds"), ("wheels.yml", "sdist"), ("wheels.yml", "wheels"), ("wheels.yml", "check"),
        ("release.yml", "version"), ("release.yml", "publish"), ("docs.yml", "make"), ("nightly.yml", "next")]

# `.ci/run` makes the docs, and runs tests on a build like the other jobs do.
LONG = {("docs.yml", "make"), ("nightly.yml", "next")}


def test_every_job_is_run():
    assert {*JOBS, ("tests.yml", "all"), ("nightly.yml", "whole")} == set(jobs())


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize(("workflow", "job"), [
    pytest.param(*each, marks=pytest.mark.nightly) if each in LONG else each for each in JOBS])
def test_steps_of_the_job_work(workflow, job, tmp_path, request):
    folder = checkout(tmp_path / "checkout")
    # As the Pythons of the runners have it: --group needs pip 25.1.
    venv.create(tmp_path / "env", with_pip=True, upgrade_deps=True)
    if (workflow, job) == ("wheels.yml", "check"):
        shutil.copytree(request.getfixturevalue("dist"), folder / "dist")
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    if workflow == "release.yml":   # a commit with a tag has a section for it
        (folder / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{version}] - 2026-12-01\n")
    ours = ("PYTHON", "GILSCOPE_TEST")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"PATH": f"{tmp_path / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}", "CI": "true",
                    "GITHUB_REF_NAME": f"v{version}"}
    ran = 0
    for step in jobs()[workflow, job]:
        key = (workflow, job, step["name"])
        if key in NOT_RUN:
            continue
        assert "${{" not in step["run"], "values of expressions belong into env"
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", step["run"]], cwd=folder, timeout=PATIENCE,
                              env={**environment, **LESS.get(key, {})}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{step['run']}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        ran += 1
    assert ran
