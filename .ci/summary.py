"""Say what a run of continuous integration did: the time of its steps, the slowest tests, the skips by reason.

Reads a folder of pytest's JUnit files, and `steps` there: a line for each step of .ci/run, its seconds and its name.
Exits with 1 if a test was skipped for a reason that `tests/skips.toml` does not allow: green without having looked is a
defect.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

ALLOWED = Path(__file__).parents[1] / "tests" / "skips.toml"
SLOWEST = 30


def main(folder: Path) -> int:
    """Print the summary; return the exit code."""
    allowed = [re.compile(each["reason"]) for each in tomllib.loads(ALLOWED.read_text(encoding="utf-8"))["allowed"]]
    seconds: dict[str, float] = {}
    skips: Counter[str] = Counter()
    for path in sorted(folder.glob("*.xml")):
        for case in ET.parse(path).iter("testcase"):  # noqa: S314  pytest wrote it
            seconds[f"{path.stem}: {case.get('classname')}::{case.get('name')}"] = float(case.get("time", 0))
            skips.update(each.get("message", "") for each in case.iter("skipped"))
    print(f"== the {SLOWEST} slowest of {len(seconds)} tests, in seconds")
    for name in sorted(seconds, key=seconds.__getitem__, reverse=True)[:SLOWEST]:
        print(f"{seconds[name]:8.1f}  {name}")
    print(f"== {skips.total()} skips, by reason")
    refused = {reason for reason in skips if not any(each.search(reason) for each in allowed)}
    for reason, count in skips.most_common():
        print(f"{count:8}  {'NOT ALLOWED ' if reason in refused else ''}{reason}")
    print("== the steps, in seconds")
    print((folder / "steps").read_text(encoding="utf-8"), end="")
    if not seconds:
        print("no test ran")
    elif refused:
        print(f"{len(refused)} reasons for skips are not in {ALLOWED.parent.name}/{ALLOWED.name}")
    return int(bool(refused) or not seconds)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
