"""A short real run of the main job, and a look at what it printed and wrote.  .ci/run names the two builds."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = "serial,threads,free-threaded,subinterpreters,processes-forkserver,asyncio"
ROUNDS = 3


def main() -> None:
    """Run, and raise AssertionError where something is missing."""
    gil, free_threaded = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "gilscope",
            "run",
            "countdown",
            "tcp_echo",
            "--builds",
            f"{gil},{free_threaded}",
            "--models",
            MODELS,
            "--workers",
            "1,2",
            "--rounds",
            str(ROUNDS),
            "--label",
            "ci",
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        print(done.stdout)
        print(done.stderr, file=sys.stderr)
        assert done.returncode == 0, f"exit code {done.returncode}"
        for word in (
            "countdown",
            "tcp_echo",
            *MODELS.split(","),
            gil,
            free_threaded,
            "Noise floor",
            "Build against build",
        ):
            assert word in done.stdout, f"{word!r} is not in what was printed"
        results = Path(folder, "results", "ci")
        for label in (gil, free_threaded):
            shown = subprocess.run(
                [sys.executable, "-m", "pyperf", "show", str(results / f"{label}.json")],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            assert "countdown/runner=subinterpreters/workers=2/phase=steady" in shown, shown
        again = subprocess.run(
            [sys.executable, "-m", "gilscope", "report", "ci"], cwd=folder, capture_output=True, text=True, check=True
        )
        assert again.stdout == done.stdout, "the report of the kept values is not what the run printed"
    print("the main job printed and wrote what it must")


if __name__ == "__main__":
    main()
