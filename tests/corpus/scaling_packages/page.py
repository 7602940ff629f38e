"""A template of jinja2 from the environment's cache, with a lock for each look-up (pallets/jinja#8)."""

import threading

from jinja2 import DictLoader, Environment

SOURCES = {"page.html": "Hello {{ name }}"}
PAGES = Environment(loader=DictLoader(SOURCES), auto_reload=False)
OWN = threading.local()


def look_up():
    return PAGES.get_template("page.html")


def look_up_20():
    pages = PAGES
    for _ in range(20):
        pages.get_template("page.html")


def look_up_20_in_own_environment():
    pages = getattr(OWN, "pages", None)
    if pages is None:
        pages = OWN.pages = Environment(loader=DictLoader(dict(SOURCES)), auto_reload=False)
    for _ in range(20):
        pages.get_template("page.html")
