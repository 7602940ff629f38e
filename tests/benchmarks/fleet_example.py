"""Measure the example of docs/fleet.md: a run over two hosts on this machine, stored in results/example.

Run it on an idle machine: it takes about five minutes, and replaces the stored run.

    python -m tests.benchmarks.fleet_example 3.14=PATH 3.14t=PATH
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conformance.builds import ROOT

LABEL = "two-hosts"
KEPT = ROOT / "results" / "example" / LABEL
PAGE = ROOT / "docs" / "fleet.md"
ASKED = ["countdown", "tcp_echo", "--builds", "{builds}", "--models", "threads,subinterpreters", "--workers", "2",
         "--rounds", "8", "--fleet", "local:2", "--label", LABEL]
BEFORE = "## On your machines\n"
SECTION = """## Two hosts on one machine

<!-- only parsed: its report is shown below -->
```console
$ gilscope run {words}
```

From a checkout, `gilscope report results/example/{label}` prints it again.
gilscope sees that both hosts are on one machine, and counts their rounds as those of one.
The report continues with such tables for each workload:

```text
{report}
```

Hosts are on one machine if they have the same boot ID or, where there is none, the same machine ID.
Containers on one machine have the same boot ID. `fleet.json` keeps only which hosts share a machine, not these IDs.
Hosts on different machines are pooled:
[Reading a table](reading-a-table.md#several-hosts) shows such a report, and explains its columns.

"""


def main() -> None:
    """Measure the run, publish it, and update the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="LABEL=PATH")
    args = parser.parse_args()
    labels = ",".join(each.partition("=")[0] for each in args.builds)
    words = [word.format(builds=labels) for word in ASKED]
    with tempfile.TemporaryDirectory() as folder:
        named = [word for each in args.builds for word in ("--build", each)]
        gilscope("run", *words, *named, folder=Path(folder))
        gilscope("report", LABEL, "--publish", "published", folder=Path(folder))
        shutil.rmtree(KEPT, ignore_errors=True)
        shutil.copytree(Path(folder) / "published", KEPT)
    section = SECTION.format(words=" ".join(words), label=LABEL, report=_shown((KEPT / "report.txt").read_text()))
    text = PAGE.read_text()
    head, _, rest = text.partition(BEFORE)
    head = head.partition(SECTION.partition("\n")[0])[0]   # an earlier one goes
    PAGE.write_text(head + section + BEFORE + rest)


def _shown(report: str) -> str:
    """Return the overview of the report."""
    heads = [match.start() for match in re.finditer(r"^Builds$", report, re.MULTILINE)]
    return report[:heads[0] if heads else None].strip("\n")


def gilscope(*words: str, folder: Path) -> None:
    """Call gilscope in a folder of its own."""
    subprocess.run([sys.executable, "-m", "gilscope", *words], cwd=folder, check=True)


if __name__ == "__main__":
    main()
