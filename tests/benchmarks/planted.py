"""Count false verdicts of `gilscope evaluate` on planted projects: all of them, or those that are named.

Prints a line for each: the answer, the verdicts on threads, subinterpreters and processes, and which of them are false
by `tests/corpus/planted/truth.toml`.  On a busy machine verdicts are INCONCLUSIVE, which hides false ones.  Run it on a
quiet machine, or with --as-if-fast, which measures nothing and assumes that every model gains and costs nothing, so
that only the other probes can keep a project from READY.  Like any evaluation, it needs packages, compilers and an
index.

    python -m tests.benchmarks.planted --build 3.14t
    python -m tests.benchmarks.planted --as-if-fast
    python -m tests.benchmarks.planted recordfile gridcalc --build 3.14t=/path/to/python3.14t
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from gilscope.toolkit import temporary
from tests.evaluate.planted import (
    EvaluationOutcome,
    Truth,
    evaluated,
    evaluated_as_if_fast,
    falsely_bad,
    falsely_good,
    truths,
)

MODELS = ("threads", "subinterpreters", "processes")


def main() -> None:
    """Evaluate the projects, print a line for each, and the counts."""
    known = truths()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="projects (default: all)")
    parser.add_argument("--build", default="3.14t", metavar="LABEL[=PATH]", help="the build without a GIL")
    parser.add_argument("--gil", default="", metavar="LABEL[=PATH]", help="its twin with one (default: what is found)")
    parser.add_argument("--budget", type=int, default=60, metavar="SECONDS", help="of each evaluation (default: 60)")
    parser.add_argument("--as-if-fast", action="store_true", help="leave out the rounds, and what only they tell")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what each evaluation printed in FOLDER")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in known]:
        parser.error(f"no such project: {', '.join(unknown)}")
    chosen = [known[name] for name in args.names or known if not (args.as_if_fast and known[name].measured)]
    builds = [each for each in (args.build, args.gil) if "=" in each]
    print(f"{'project':13}{'answer':15}{'threads':17}{'interpreters':17}{'processes':17}seconds")
    good, bad = 0, 0
    for truth in chosen:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=temporary.prefix("planted")) as folder:   # of a kill, too, swept later
            told = _evaluate(truth, Path(folder), builds, args)
        words = "".join(f"{told.word(model):17}" for model in MODELS)
        print(f"{truth.name:13}{told.decision or 'none':15}{words}{time.monotonic() - began:.0f}", flush=True)
        if args.keep:
            args.keep.mkdir(parents=True, exist_ok=True)
            (args.keep / f"{truth.name}.txt").write_text(told.output)
        false, alarms = list(falsely_good(truth, told)), list(falsely_bad(truth, told))
        for text in (*false, *alarms):
            print(f"    FALSE: {text}; planted: {truth.planted}", flush=True)
        good, bad = good + bool(false), bad + bool(alarms)
    clean = sum(truth.clean for truth in chosen)
    print(f"false READY: {good} of {len(chosen)}; false alarms: {bad} of {clean} with which nothing is wrong")


def _evaluate(truth: Truth, folder: Path, builds: list[str], args: argparse.Namespace) -> EvaluationOutcome:
    free = args.build.partition("=")[0]
    if args.as_if_fast:
        return evaluated_as_if_fast(truth, folder, builds, free, budget=args.budget, say=lambda _: None)
    return evaluated(truth, folder, builds, free, "--budget", f"{args.budget}s")


if __name__ == "__main__":
    main()
