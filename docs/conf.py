"""Sphinx settings: every Markdown page of the repository as a site.  `make docs` builds it, each warning an error.

The source folder is the repository's root, so that links between pages are the same here, on a code host and on disk.
"""

project = "gilscope"
author = "The gilscope authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"
include_patterns = [
    "docs/*.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "results/example/*.md", "results/example/**/*.md",
]
exclude_patterns = ["docs/_build"]
nitpicky = True                            # a link that leads nowhere is a warning
suppress_warnings = ["toc.not_included"]   # the pages of single results are linked from where they are told of

myst_heading_anchors = 3       # headings are link targets by the names that code hosts give them

html_theme = "furo"
html_title = "gilscope"
html_extra_path = ["site"]     # index.html, which leads to docs/index.html
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_show_copyright = False
