"""Draws figures: `python -m gilscope.toolkit.report.plots FOLDER` takes their JSON on standard input."""

import sys
from pathlib import Path

from gilscope.toolkit.report import plots
from gilscope.toolkit.report.figure_json import load

if __name__ == "__main__":
    for figure in load(sys.stdin.read()):
        plots.draw(figure, Path(sys.argv[1]))
