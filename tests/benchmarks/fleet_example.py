"""Measure the example that docs/fleet.md names: a run over two hosts on this machine, stored in results/example.

Run it on an idle machine: it takes about five minutes, and replaces the stored run.

    python -m tests.benchmarks.fleet_example 3.14=PATH 3.14t=PATH
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conformance.builds import ROOT

LABEL = "two-hosts"
KEPT = ROOT / "results" / "example" / LABEL
ASKED = ["countdown", "tcp_echo", "--builds", "{builds}", "--models", "threads,subinterpreters", "--workers", "2",
         "--rounds", "8", "--fleet", "local:2", "--label", LABEL]


def main() -> None:
    """Measure the run, and publish it."""
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


def gilscope(*words: str, folder: Path) -> None:
    """Call gilscope in a folder."""
    subprocess.run([sys.executable, "-m", "gilscope", *words], cwd=folder, check=True)


if __name__ == "__main__":
    main()
