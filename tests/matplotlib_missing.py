"""Tell a machine that cannot get matplotlib from a failure to draw."""

from gilscope.toolkit.report.figures.drawing import WITHOUT_INDEX, WITHOUT_WHEELS


def matplotlib_missing(stderr):
    """Return True if a command said that matplotlib cannot be installed here, for want of an index or of wheels."""
    return WITHOUT_INDEX in stderr or WITHOUT_WHEELS in stderr
