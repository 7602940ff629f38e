"""A Chromium that is installed, pages that were opened in it, and all that went wrong while they were."""

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZES = {"wide": (1600, 1000), "narrow": (360, 740), "usual": (1280, 900)}
SCHEMES = ("light", "dark")
# Where most goes wrong is the narrow page for its width, and the dark one for its contrast.
VIEWS = [pytest.param(size, scheme, marks=[] if (size, scheme) == ("narrow", "dark") else pytest.mark.nightly)
         for size in SIZES for scheme in SCHEMES]


class NoBrowserError(Exception):
    """What is missing, and how to get it."""


@contextmanager
def launched():
    """Return a browser that runs without a screen."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowserError("playwright is not installed: `make setup` does it") from None
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise NoBrowserError("there is no Chromium here (Debian: apt-get install chromium)")
    with sync_playwright() as started:
        # As root it runs without its sandbox or not at all; it opens our own files alone.
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@dataclass
class Opened:
    page: Any
    problems: list[str] = field(default_factory=list)

    def overflow(self):
        """Return how many pixels the page is wider than the screen."""
        return self.page.evaluate("document.scrollingElement.scrollWidth - window.innerWidth")


@contextmanager
def opened(browser, file, *, size="wide", scheme="light", script=True):
    """Open the page `file`; whatever it asks for beyond files beside it is a problem."""
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme,
                                  java_script_enabled=script)
    page = context.new_page()
    found = Opened(page)
    problems = found.problems
    page.on("console", lambda each: each.type in {"error", "warning"} and problems.append(f"console: {each.text}"))
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("requestfailed", lambda each: problems.append(f"failed: {each.url}"))
    page.on("dialog", lambda dialog: (problems.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda each: None if each.url.startswith(("file:", "data:")) else
            problems.append(f"elsewhere: {each.url}"))
    try:
        page.goto(file.as_uri())
        yield found
    finally:
        context.close()
