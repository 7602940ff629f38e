"""Pictures of a page as plain values: places in pixels, words, classes.  `charts.html` writes them as SVG."""
