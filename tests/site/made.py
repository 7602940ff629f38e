"""Sites and pages for tests, and what their HTML has."""

import json
import shutil
from html.parser import HTMLParser
from urllib.parse import unquote

from gilscope.toolkit.site.page import TemplatePages
from gilscope.toolkit.site.style import load_assets
from tests.conformance.builds import ROOT

EXAMPLE = ROOT / "results" / "example"
KINDS = {"primes": "cpu", "sleep": "io", "sha256_64k": "native", "http_fetch": "io", "fetch_parse": "mixed"}


def copied_run(source, target, seed):
    """Copy a run as another one, which is told by its seed."""
    shutil.copytree(source, target)
    header = json.loads((target / "run.json").read_text())
    (target / "run.json").write_text(json.dumps(header | {"seed": seed}))


class Tags(HTMLParser):
    """Collects what a page has: tags with their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def named(self, name):
        return [attrs for tag, attrs in self.tags if tag == name]

    def links(self):
        """Return every address that the page names."""
        return [attrs[name] for _, attrs in self.tags for name in ("href", "src") if name in attrs]

    def ids(self):
        return {attrs["id"] for _, attrs in self.tags if "id" in attrs}


def rendered(template, values):
    """Return a page that stands alone."""
    look = load_assets()
    return TemplatePages(look).render(template, json.loads(json.dumps(values)))


def pages_of(folder):
    return {path.name: Tags(path.read_text(encoding="utf-8")) for path in folder.glob("*.html")}


def broken_links(folder):
    """Return each link within a site that leads nowhere."""
    pages, found = pages_of(folder), []
    for name, page in pages.items():
        for link in page.links():
            file, _, fragment = unquote(link).partition("#")
            target = folder / (file or name)
            if not target.is_file() or (fragment and fragment not in pages[target.name].ids()):
                found.append((name, link))
    return found
