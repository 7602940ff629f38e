"""Draws figures: `python -m gilscope.toolkit.report.figures.plots FOLDER` takes their JSON on standard input."""

import sys
from pathlib import Path

from gilscope.toolkit.report.figures import plots
from gilscope.toolkit.report.figures.as_json import load

if __name__ == "__main__":
    for figure in load(sys.stdin.read()):
        plots.draw(figure, Path(sys.argv[1]))
