"""Count how two runs of the atlas (`gilscope experiment run scaling`) go together.

Compares each operation that both runs measured on a build, and each cause that both looked for.  No two verdicts may
contradict each other; an open one contradicts none.

    python -m tests.benchmarks.atlases .gilscope-results/ONE .gilscope-results/OTHER
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.results import Results
from gilscope.toolkit.experiments.scaling.shares import OperationShares
from gilscope.toolkit.scale.judgement import LOST, ScalingVerdict
from gilscope.toolkit.store import load_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.model import Cell

OPEN, CONTRADICTION = "open", "CONTRADICTION"


def main() -> None:
    """Print the counts, and a line for each contradiction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="of stored runs")
    args = parser.parse_args()
    shares = [OperationShares(Results(load_run(each / "scaling"))) for each in args.folders]
    for folder, each in zip(args.folders, shares, strict=True):
        print(f"{folder}: {_counted(_word(each, cell) for cell in each.cells)}")
    for one, other in itertools.combinations(shares, 2):
        others = set(other.cells)
        both = [cell for cell in one.cells if cell in others]
        print(f"verdicts: {_counted(_compared(one, other, cell) for cell in both)}")
        for cell in both:
            if _compared(one, other, cell) == CONTRADICTION:
                print(f"  {_named(cell)}: {one.share(cell)} and {other.share(cell)}")
        print(f"causes that both looked for: {_counted(filter(None, (_causes(one, other, cell) for cell in both)))}")


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in Counter(words).most_common())


def _named(cell: Cell) -> str:
    return f"{cell.build} {', '.join(dict(cell.parameters).values())}"


def _word(shares: OperationShares, cell: Cell) -> str:
    verdict = shares.verdict(cell)
    if verdict in {None, ScalingVerdict.UNSURE}:
        return OPEN
    return "do not scale" if verdict in LOST else "scale"


def _compared(one: OperationShares, other: OperationShares, cell: Cell) -> str:
    words = {_word(one, cell), _word(other, cell)}
    if OPEN in words:
        return OPEN
    return words.pop() if len(words) == 1 else CONTRADICTION


def _causes(one: OperationShares, other: OperationShares, cell: Cell) -> str:
    """Return how the causes that both runs looked for go together; an empty text if one of them did not."""
    found = [cause for shares in (one, other) if (cause := shares.cause(cell)) is not None]
    if len(found) < 2:
        return ""
    if any(cause.verdict is ScalingVerdict.UNSURE or cause.doubt for cause in found):
        return OPEN
    if found[0].obstacle != found[1].obstacle:
        print(f"  {_named(cell)}: {found[0]} and {found[1]}")
        return CONTRADICTION
    return "the same" if set(found[0].objects) == set(found[1].objects) else "the same obstacle, other names"


if __name__ == "__main__":
    main()
