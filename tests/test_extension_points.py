"""What CONTRIBUTING says of adding a runner and a page of a site, done in a copy of the package.

Each addition is one new file, for a page two, and what it says to add elsewhere; everything else works from there.
"""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE
from tests.site.made import EXAMPLE, pages_of

pytestmark = pytest.mark.newest

REVERSED = '''
    """The tasks of a pass from the last to the first, in the calling thread."""

    from contextlib import contextmanager

    from gilscope.runners.base import Appearance, Runner


    class ReversedPool:
        def map(self, task, payloads):
            return [task(payload) for payload in reversed(payloads)][::-1]


    class ReversedRunner(Runner):
        name = "reversed"
        summary = "from the last task to the first"
        parallel = False
        effort = 1
        appearance = Appearance("#7F3C00", "H", "dots", "//")

        def unavailable(self):
            return None

        @contextmanager
        def pool(self, workers, shared=None):
            yield ReversedPool()
'''
DRAW = """
    import json, sys
    from gilscope.toolkit.report.figures.figure import Series
    from gilscope.toolkit.report.figures.plots.palette import series_styles

    styles = series_styles([Series(name, (), (), model=name) for name in ("threads", "reversed", "serial")])
    print(json.dumps({name: (style.colour, style.marker) for name, style in styles.items()}))
"""
SEEDS = '''
    """The seed of each run."""


    def seeds_values(runs):
        return {"seeds": [{"label": each.run.label, "seed": each.run.seed} for each in runs]}
'''
SEEDS_TEMPLATE = """
    {% extends "base.html" %}
    {% block content %}
    <h1>{{ page.title }}</h1>
    <ul>{% for each in seeds %}<li>{{ each.label }}: {{ each.seed }}</li>{% endfor %}</ul>
    {% endblock %}
"""


class Copy:
    """A copy of the package that can be changed, and commands that run in it."""

    def __init__(self, folder):
        self.folder = folder
        for part in ("toolkit", "runners", "workloads"):
            shutil.copytree(ROOT / part, folder / "gilscope" / part, ignore=shutil.ignore_patterns("__pycache__"))
        for path in (ROOT / "gilscope").glob("*.py"):
            shutil.copy(path, folder / "gilscope")

    def write(self, name, text):
        (self.folder / "gilscope" / name).write_text(textwrap.dedent(text).lstrip("\n"))

    def replace(self, name, before, after):
        path = self.folder / "gilscope" / name
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, after))

    def python(self, *words):
        done = subprocess.run([sys.executable, *words], cwd=self.folder, capture_output=True, text=True, check=False,
                              timeout=PATIENCE, env=os.environ | {"PYTHONPATH": str(self.folder), "COLUMNS": "100"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    def call(self, *words):
        return self.python("-m", "gilscope", *words)


@pytest.fixture
def copy(tmp_path):
    return Copy(tmp_path)


def test_a_runner_is_one_class_and_its_entry_in_the_catalogue(copy):
    copy.write("runners/reversed_.py", REVERSED)
    copy.replace("runners/catalog.py", "from gilscope.runners.serial import SerialRunner\n",
                 "from gilscope.runners.reversed_ import ReversedRunner\n"
                 "from gilscope.runners.serial import SerialRunner\n")
    copy.replace("runners/catalog.py", "SerialRunner(), ", "SerialRunner(), ReversedRunner(), ")

    assert "from the last task to the first" in copy.call("list")
    table = copy.call("run", "countdown", "--build", f"host={sys.executable}", "--models", "threads,reversed",
                      "--quick", "--rounds", "2", "--workers", "2", "--label", "mine")
    rows = [line.split()[0] for line in table.splitlines() if line.split()[:1] in (["threads"], ["reversed"])]
    assert rows[:2] == ["reversed", "threads"], "in the order of the catalogue"
    values = json.loads(copy.call("report", "mine", "--json"))
    assert {"serial", "reversed", "threads"} <= {cell["model"] for cell in values["cells"]}

    copy.call("site", "results/mine", "--out", "site")
    run = pages_of(copy.folder / "site")["run-mine.html"]
    assert {"m-reversed"} <= {name for _, attrs in run.tags for name in (attrs.get("class") or "").split()}
    assert ".m-reversed{--m:#7F3C00}" in (copy.folder / "site/assets/site.css").read_text()

    styles = json.loads(copy.python("-c", textwrap.dedent(DRAW)))
    assert styles["reversed"] == ["#7F3C00", "H"]
    assert list(styles) == ["serial", "reversed", "threads"]


def test_a_page_is_its_values_a_template_and_its_entry_in_pages(copy):
    copy.write("toolkit/site/pages/seeds.py", SEEDS)
    copy.write("toolkit/site/templates/seeds.html", SEEDS_TEMPLATE)
    copy.replace("toolkit/site/common_pages.py", "\nPAGES = (\n", (
        "\nfrom gilscope.toolkit.site.pages.seeds import seeds_values\n"
        "PAGES = (\n"
        '    CommonPage(link="Seeds", template="seeds.html", description="The seed of each run.",\n'
        "               values=lambda content: seeds_values(content.runs)),\n"))

    copy.call("site", str(EXAMPLE / "second-worker"), "--out", "site")
    pages = pages_of(copy.folder / "site")
    assert "second-worker: 1769938935" in pages["seeds.html"].text
    assert all("seeds.html" in page.links() for page in pages.values()), "every page leads to it"
