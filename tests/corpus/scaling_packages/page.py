"""A template of jinja2 from the environment's cache, with a lock for each look-up (pallets/jinja#8)."""

from jinja2 import DictLoader, Environment

PAGES = Environment(loader=DictLoader({"page.html": "Hello {{ name }}"}), auto_reload=False)


def look_up():
    return PAGES.get_template("page.html")
