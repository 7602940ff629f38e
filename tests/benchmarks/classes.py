"""Compare gilscope's classes of packages with classes that were found without its code (`classes_truth`).

Installs the packages of a list, which takes gigabytes and, for the hundred of `classes.txt`, an hour; `classes2.txt`
contains 65 that were chosen later.

    python -m tests.benchmarks.classes [FILE] [--builds 3.14t,3.15t] [--batch 16]

For two packages the reference says "unknown" and only gilscope knows the class: gensim, where an installer falls back
to a pure version of 2014 ("no-wheel"), and pyzstd on a build without `_zstd` ("interpreter-at-fault").
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from packaging.utils import canonicalize_name

from gilscope.toolkit.builds.find import find_builds, select_builds
from gilscope.toolkit.evaluate.packages.doctor import BuildReport, DoctorOptions, diagnose, reference_of
from gilscope.toolkit.evaluate.packages.scratch import EnvironmentRequest, ScratchEnvironment, prepare
from tests.benchmarks import classes_truth as truth

NAMES = Path(__file__).with_name("classes.txt")


def main() -> None:
    """Print each disagreement, then the classes and the number of agreements for each build."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=NAMES, help="one name a line")
    parser.add_argument("--builds", default="3.14t,3.15t", metavar="LABELS")
    parser.add_argument("--build", action="append", default=[], metavar="LABEL=PATH")
    parser.add_argument("--batch", type=int, default=16, metavar="N", help="packages in one environment (default: 16)")
    args = parser.parse_args()
    lines = args.file.read_text().splitlines()
    names = [canonicalize_name(line) for line in lines if line and not line.startswith("#")]
    counts: dict[str, Counter[str]] = {}
    for start in range(0, len(names), args.batch):
        for label, told, found, free in look(names[start:start + args.batch], args.builds, args.build):
            for what, ours, theirs in zip(("free-threading", "subinterpreters"), told, found, strict=True):
                count = counts.setdefault(f"{label} {what}", Counter())
                count[f"  {theirs}"] += 1
                count["agree"] += ours == theirs
                count["falsely ready"] += theirs != ours in {"ready", "ok", "pure-python"}
                if ours != theirs:
                    print(f"{label} {what}: {free} is {theirs!r} and called {ours!r}", flush=True)
    for what, count in counts.items():
        agree, wrong = count.pop("agree"), count.pop("falsely ready")
        print(f"{what}: {agree} of {count.total()} agree ({agree / count.total():.1%}), {wrong} falsely ready")
        print(*(f"{each:26}{number}" for each, number in count.most_common()), sep="\n")


def look(names: list[str], labels: str, paths: list[str]) -> list[tuple[str, list[str], list[str], str]]:
    """Return build, gilscope's two classes, the two reference classes, and the name of each package on each build."""
    builds = find_builds(paths)
    asked = select_builds(builds, labels)
    request = EnvironmentRequest(requirements=tuple(names))
    reports = diagnose(request, asked, builds.builds, DoctorOptions(interpreters=True),
                       lambda told: print(told, file=sys.stderr))
    twins = {build.label: reference_of(build, builds.builds) for build in asked}
    places = prepare(replace(request, offline=True), [*asked, *{twin for twin in twins.values() if twin}])
    return [(report.build.label, *_both(name, report, places, twin.label), name)
            for report in reports if (twin := twins[report.build.label]) for name in names]


def _both(name: str, report: BuildReport, places: dict[str, ScratchEnvironment], twin: str) -> tuple[list[str],
                                                                                                     list[str]]:
    (finding,) = (each for each in report.findings if each.name == name)
    here = places[report.build.label].folder
    found = [truth.free_threading(name, here, places[twin].folder), truth.interpreters(name, here)]
    return [str(finding.verdict.status), str(finding.interpreters)], found


if __name__ == "__main__":
    main()
