"""Projects and environments for `pytest --gil=off`: a build with pytest and gilscope, and packages compiled here."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from gilscope.toolkit.evaluate.packages.distributions import site_folders
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

# All pure Python, so that any build can import those of this environment.
PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "execnet", "pytest-xdist")
ENTRY_POINTS = """\
[pytest11]
gilscope_race = gilscope.toolkit.race.pytest_.plugin
gilscope_gil = gilscope.toolkit.gil_guard.plugin
"""


def make_environment(build, folder):
    """Make an environment of a build with pytest and this checkout, without a registry; return its Python."""
    subprocess.run([build.executable, "-I", "-m", "venv", "--without-pip", str(folder)], check=True, timeout=PATIENCE)
    (site,) = site_folders(folder)
    link_packages(site, PACKAGES)
    (site / "gilscope.pth").write_text(f"{ROOT}\n")
    add_distribution(site, "gilscope", {"entry_points.txt": ENTRY_POINTS})
    return folder / "bin" / "python"


def link_packages(site, names):
    """Let an environment import packages of this one, which must be pure Python."""
    for name in names:
        found = distribution(name)
        for entry in {path.parts[0] for path in found.files if path.parts[0] not in {"..", "__pycache__"}}:
            (site / entry).symlink_to(Path(found.locate_file(entry)).resolve())


def add_distribution(site, name, info_files=(), version="1.0", requires=()):
    """Write the metadata of a distribution whose package is there already."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    texts = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}", **dict(info_files)}
    texts["RECORD"] = "".join(f"{path.relative_to(site)},,\n" for path in sorted((site / name).rglob("*")))
    for file, text in texts.items():
        (info / file).write_text(text)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a session ended."""

    code: int
    output: str

    def counts(self):
        """Return {"passed": 1, ...} of the last line."""
        return {word: int(number) for number, word in re.findall(
            r"(\d+) (passed|failed|errors?|skipped)", self.output.splitlines()[-1])}

    def failed(self):
        """Return the tests and files that failed."""
        return [line.split(" - ")[0] for line in self.output.splitlines()
                if line.startswith(("FAILED ", "ERROR ", "PARALLEL FAILED "))]


class Project:
    """A project with its tests, and the packages that it needs."""

    def __init__(self, minor, python, library, folder, *, repaired=False):
        self.minor, self.python, self.library, self.folder = minor, python, library, folder   # minor: "3.14"
        self.site = folder / "site-packages"
        self.extension = "multi_free" if repaired else "multi_plain"    # of variants.c; the latter lacks the slot
        self.root = folder / "project"
        self.root.mkdir(parents=True)
        self.write({"pyproject.toml": '[project]\nname = "shop"\n'})

    def write(self, files, folder=None):
        """Write files of the project, or of another folder; EXTENSION in them is the name of the extension module."""
        for path, text in files.items():
            target = (folder or self.root) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(textwrap.dedent(text).replace("EXTENSION", self.extension))

    def add(self, name, files=(), *, version="1.0", info=(), compiled=True, requires=()):
        """Install a package by hand: one with an extension module, or a pure one."""
        self.write({f"{name}/__init__.py": "", **{f"{name}/{path}": text for path, text in dict(files).items()}},
                   self.site)
        if compiled:
            self.compile(self.site / name)
        add_distribution(self.site, name, info, version, requires)

    def compile(self, folder):
        """Put the extension module into a package."""
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.library, folder / f"{self.extension}.so")

    def test(self, *options, gil=("--gil=off",), python=(), **variables):
        """Run pytest on the project."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("PYTEST_", "PYTHON", "GILSCOPE_", "COV_"))}
        environment |= {"PYTHONPATH": str(self.site), "GILSCOPE_CACHE": str(self.folder / "cache"),
                        "PYTHONDONTWRITEBYTECODE": "1", **variables}
        done = subprocess.run(
            [str(self.python), *python, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", "-rfE", *gil, *options],
            cwd=self.root, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        print(done.stdout + done.stderr, file=sys.stderr)    # shown when the test fails
        return Outcome(code=done.returncode, output=(done.stdout + done.stderr).strip())
