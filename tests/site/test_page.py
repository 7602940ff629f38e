"""Pages: what is escaped, what they allow themselves, what colours they have."""

import base64
import functools
import hashlib
import re

import jinja2
import pytest

from gilscope.toolkit.concurrency_models import APPEARANCES
from gilscope.toolkit.report.document import Banner, Column, Document, Entry, Heading, Lines, Quantity, Table
from gilscope.toolkit.report.figures.plots.palette import luminance
from gilscope.toolkit.site.page import PAUSE, PlainValueEnvironment, TemplatePages, policy, unbroken
from gilscope.toolkit.site.page_values import document_values, page_values
from gilscope.toolkit.site.pages.run import run_page
from gilscope.toolkit.site.style import WHITE, load_assets, model_class
from tests.fakes import make_run
from tests.site.made import KINDS, Tags

pytestmark = pytest.mark.newest
HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
LOOK = load_assets()


def values(document, title="t"):
    return {**page_values(title, "d"), "document": document_values(document)}


def document(text):
    table = Table(title=text, columns=(Column(title=text, key=True), Column(title=text, group=text)),
                  rows=((Entry(text), Entry(text, (1,))),), footnotes=(text,))
    return Document((Heading(text, 1), Banner(text), Lines(text, (text,)), table))


def test_every_text_of_a_document_is_escaped():
    page = TemplatePages(LOOK).render("document.html", values(document(HOSTILE), title=HOSTILE))
    found = Tags(page)
    assert len(found.named("script")) == 1, "our own"
    assert not found.named("img")
    # Title, heading, banner, a list and its title; of the table title, group, two columns, two cells, footnote.
    assert found.text.count(HOSTILE) == 12


def test_page_allows_its_own_style_and_script_alone():
    page = TemplatePages(LOOK).render("document.html", values(document("x")))
    allowed = next(each["content"] for each in Tags(page).named("meta") if "http-equiv" in each)
    for name in ("style", "script"):
        text = re.search(f"<{name}>(.*?)</{name}>", page, re.DOTALL)[1]
        assert f"{name}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in allowed
    assert "default-src 'none'" in allowed
    assert "unsafe" not in allowed


@functools.cache
def values_of_twelve_workloads():
    values = run_page(make_run(), KINDS)
    return values | {"workloads": [each | {"id": f"w{i}"} for i, each in enumerate(values["workloads"] * 6)]}


@pytest.mark.parametrize("linked", [False, True])
def test_long_page_has_scripts_that_let_the_browser_look_up(linked):
    values = values_of_twelve_workloads()
    page = TemplatePages(LOOK, linked=linked).render("run.html", values)
    assert page.count(f"<script>{PAUSE}</script>") == 3, "after each fourth of twelve workloads"
    allowed = next(each["content"] for each in Tags(page).named("meta") if "http-equiv" in each)
    digest = base64.b64encode(hashlib.sha256(PAUSE.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in allowed


def test_linked_page_finds_style_and_script_beside_it():
    page = TemplatePages(LOOK, linked=True).render("document.html", values(document("x")))
    found = Tags(page)
    assert [each["href"] for each in found.named("link")] == ["assets/site.css"]
    assert [each["src"] for each in found.named("script")] == ["assets/site.js"]
    assert policy() in page.replace("&#39;", "'")


@pytest.mark.parametrize("name", ["clear", "items", "values"])
@pytest.mark.parametrize("form", ["row.{0}", "row['{0}']"])
def test_name_of_a_method_is_an_item_of_a_mapping(name, form):
    template = PlainValueEnvironment(undefined=jinja2.StrictUndefined).from_string(
        f"{{{{ {form.format(name)} }}}} {{{{ 'yes' if {form.format(name)} else 'no' }}}}")
    assert template.render(row={name: False}) == "False no"
    assert template.render(row={name: [1]}) == "[1] yes"


@pytest.mark.parametrize("name", ["clear", "items", "values"])
@pytest.mark.parametrize("form", ["row.{0}", "row['{0}']"])
def test_item_that_a_mapping_lacks_is_missing_and_no_method(name, form):
    environment = PlainValueEnvironment(undefined=jinja2.StrictUndefined)
    with pytest.raises(jinja2.UndefinedError, match=name):
        environment.from_string(f"{{{{ {form.format(name)} }}}}").render(row={"other": 1})
    assert environment.from_string(f"{{{{ {form.format(name)}|default('none') }}}}").render(row={}) == "none"


def test_missing_value_is_an_error():
    lacking = {key: value for key, value in values(document("")).items() if key != "document"}
    with pytest.raises(jinja2.UndefinedError, match="document"):
        TemplatePages(LOOK).render("document.html", lacking)


def test_models_have_the_colours_of_the_figures():
    for name, look in APPEARANCES.items():
        assert f".{model_class(name)}{{--m:{look.colour}}}" in LOOK.style
    assert model_class("processes-spawn") == model_class("processes")
    assert model_class("a model of tomorrow") == "m-other"


@pytest.mark.parametrize("model", APPEARANCES)
def test_each_colour_is_seen_by_night(model):
    colour = APPEARANCES[model].colour
    parts = [int(colour[i:i + 2], 16) for i in (1, 3, 5)]
    by_night = "#" + "".join(f"{round(part + (255 - part) * WHITE / 100):02X}" for part in parts)
    assert (luminance(by_night) + 0.05) / (luminance("#15181C") + 0.05) >= 3   # WCAG 2.2, 1.4.11


def test_no_line_ends_within_a_day_or_a_share():
    assert str(unbroken("on 2026-11-22 10:31, <b>6.5 % off")) == (
        'on <span class="unbroken">2026-11-22 10:31</span>, &lt;b&gt;<span class="unbroken">6.5 %</span> off')
    assert ".unbroken{white-space:nowrap}" in LOOK.style
    page = TemplatePages(LOOK).render("document.html", values(document("2026-11-22")))
    assert page.count('<span class="unbroken">2026-11-22</span>') == 5   # the banner, the list, two cells, the footnote


def test_figures_drawn_on_white_are_dimmed_by_night():
    night = LOOK.style.partition("prefers-color-scheme:dark")[2].partition("\n}}")[0]
    assert "filter:brightness(" in night


def test_dark_background_is_that_of_the_style_sheet():
    assert "--paper:#15181c" in LOOK.style


def test_numbers_link_the_file_of_what_their_column_is_of():
    columns = (Column(title="model", key=True), Column(title="now", source="3.14"), Column(title="3.14, published"))
    table = Table(title="3.14: times", columns=columns, rows=(
        (Entry("serial"), Entry(Quantity(1.0, "seconds")), Entry(Quantity(2.0, "seconds"))),
        (Entry("threads"), Entry("skipped"), Entry())))
    (section,) = document_values(Document((table,)), {"3.14": "data/3.14.json"})
    assert [[entry.get("link") for entry in row] for row in section["rows"]] == [
        [None, "data/3.14.json", None], [None, None, None]]
