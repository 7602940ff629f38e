"""Compare what `gilscope doctor` says of published wheels with `published_wheels.toml`, which was judged by hand.

Downloads the wheels of each project for CPython 3.14 with and without the GIL, on Linux x86_64, macOS arm64 and Windows
x86_64, and judges them as one set.  Prints a line per project; exits with 1 if one differs.  The versions are fixed, so
that the judgement stays right.

    python -m tests.benchmarks.published_wheels [NAMES] [--builds 3.14t,3.14]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

JUDGED = Path(__file__).with_suffix(".toml")
PLATFORMS = (
    ("manylinux_2_28_x86_64", "manylinux2014_x86_64", "manylinux_2_17_x86_64"),
    ("macosx_14_0_arm64", "macosx_11_0_arm64", "macosx_10_15_universal2"),
    ("win_amd64",),
)
ABIS = (("cp314", "abi3", "none"), ("cp314t", "none"))


def main() -> None:
    """Print each project's answers, and what was found by hand where they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of projects (default: all)")
    parser.add_argument("--builds", default="3.14t,3.14", metavar="LABELS")
    args = parser.parse_args()
    judged = tomllib.loads(JUDGED.read_text())
    wrong = 0
    for name in args.names or judged:
        with tempfile.TemporaryDirectory() as folder:
            download(f"{name}=={judged[name]['version']}", folder)
            told = answers(folder, args.builds)
        right = {each: judged[name][each] for each in told}
        wrong += told != right
        print(f"{name:16} {'as by hand' if told == right else f'{told}, by hand {right}'}", flush=True)
    sys.exit(bool(wrong))


def download(requirement: str, folder: str) -> None:
    """Download the wheels of a project; it may have none for a build or a platform."""
    for platforms in PLATFORMS:
        for abis in ABIS:
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                 "--python-version=3.14", "--implementation=cp", *(f"--platform={each}" for each in platforms),
                 *(f"--abi={each}" for each in abis), f"--dest={folder}", requirement],
                check=False, stderr=subprocess.DEVNULL)


def answers(folder: str, builds: str) -> dict[str, object]:
    """Return what doctor says of a folder: on each build, the status and interpreters; findings except notes."""
    report = Path(folder, "report.json")
    subprocess.run([sys.executable, "-m", "gilscope", "doctor", folder, "--builds", builds, "--json", str(report)],
                   check=False, stdout=subprocess.DEVNULL)
    (found,) = json.loads(report.read_text())["sets"]
    return {
        "status": {each["build"]: each["status"] for each in found["answers"]},
        "interpreters": {each["build"]: each["interpreters"] for each in found["answers"]},
        "findings": sorted({each["code"] for each in found["findings"] if each["effect"] != "note"}),
    }


if __name__ == "__main__":
    main()
