"""Draws figures: `python -m gilscope.toolkit.report.figures.plots FOLDER FILE` takes their JSON from FILE."""

import sys
from pathlib import Path

from gilscope.toolkit.report.figures import plots
from gilscope.toolkit.report.figures.figure import load

if __name__ == "__main__":
    for figure in load(Path(sys.argv[2]).read_text(encoding="utf-8")):
        plots.draw(figure, Path(sys.argv[1]))
