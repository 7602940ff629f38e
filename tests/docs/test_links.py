"""Links, anchors, figures and file names of the pages lead somewhere; the pages are all reachable."""

import re

import pytest

from tests.docs.pages import DOCS, INLINE, PAGES, README, ROOT, anchors, blocks, links, prose
from tests.test_layers import LAYERS

INDEX = ROOT / "docs" / "index.md"
LINKED = (*PAGES, ROOT / "CHANGELOG.md")
TARGETS = [(page, target) for page in LINKED for _image, target in links(page)]
IMAGES = [(page, target) for page in LINKED for image, target in links(page) if image]
OURS = ("toolkit", "tests", "workloads", "runners", "results/example", "docs", ".ci", ".editable")


def shown(value):
    return value.name if hasattr(value, "name") else value


@pytest.mark.parametrize(("page", "target"), TARGETS, ids=shown)
def test_link_leads_somewhere(page, target):
    if re.match(r"https?://", target):
        return
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    assert file.exists(), f"{page.name} links to {path}, which is not there"
    assert not anchor or anchor in anchors(file), f"{page.name} links to {target}, but {file.name} has no such heading"


@pytest.mark.parametrize(("page", "target"), IMAGES, ids=shown)
def test_figure_is_one_that_a_stored_run_draws(page, target):
    figure = (page.parent / target).resolve()
    if figure.suffix == ".png":   # of a page, as a browser shows it: with the command that makes the page
        assert "`gilscope site results/example --out site`" in page.read_text(), page.name
        return
    same = [path for path in (ROOT / "results" / "example").rglob("*.svg") if path.name == figure.name]
    assert any(path.read_bytes() == figure.read_bytes() for path in same), f"{figure} is not what a stored run drew"
    # With the command that draws it again; in README it may be broken over two lines.
    assert re.search(r"`gilscope\s(experiment\sshow|report)\s", page.read_text()), page.name


@pytest.mark.parametrize("page", [page for page in DOCS if page != INDEX], ids=shown)
def test_page_is_in_the_index(page):
    listed = "".join(blocks(INDEX, r"\{toctree\}"))
    assert re.search(rf"^{page.stem}$", listed, re.MULTILINE), "it is not in the table of contents"
    assert f"({page.name})" in prose(INDEX), "no question leads to it"


FILES = sorted({(page, span) for page in PAGES for span in INLINE.findall(prose(page))
                if re.fullmatch(rf"({'|'.join(map(re.escape, OURS))})/[\w./*{{}}-]+", span)})


@pytest.mark.parametrize(("page", "span"), FILES, ids=shown)
def test_file_named_in_a_page_is_there(page, span):
    pattern = re.sub(r"\b[A-Z]+\b", "*", span.rstrip("/"))   # NAME, GROUP: what a reader fills in
    assert list(ROOT.glob(pattern)), f"{page.name} names {span}"


def test_picture_of_the_floors_is_what_is_checked():
    (picture,) = blocks(ROOT / "CONTRIBUTING.md", "text")
    floors = [set(line.partition("#")[0].split()) for line in picture.partition("---")[0].splitlines()]
    parts = [{part.rpartition(".")[2] for part in layer} for layer in LAYERS]
    assert floors == parts[:-2]   # but the packages themselves, below


def test_readme_fits_on_two_screens():
    assert len(README.read_text().splitlines()) <= 100
    assert len(README.read_bytes()) <= 10_000


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_microseconds_have_their_sign(page):
    assert not re.search(r"\d us\b", prose(page))


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_no_path_of_the_machine_it_was_written_on(page):
    assert not re.search(r"/(root|work|home/\w+|tmp)/", page.read_text())
