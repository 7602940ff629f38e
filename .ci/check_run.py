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
        for word in ("speed-up over serial", "countdown", "tcp_echo", gil, free_threaded, "use (MiB)"):
            assert word in done.stdout, f"{word!r} is not in what was printed"
        results = Path(folder, ".gilscope-results", "ci")
        for label in (gil, free_threaded):
            shown = subprocess.run(
                [sys.executable, "-m", "pyperf", "show", str(results / f"{label}.json")],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            assert "countdown/runner=subinterpreters/workers=2/phase=steady" in shown, shown
        answer, report = (subprocess.run(
            [sys.executable, "-m", "gilscope", "report", "ci", *full], cwd=folder, capture_output=True, text=True,
            check=True,
        ).stdout for full in ([], ["--full"]))
        for word in (*MODELS.split(","), "Noise floor", "Build against build"):
            assert word in report, f"{word!r} is not in the report"
        assert answer == done.stdout, f"the report of the kept values does not say what the run said, but:\n{answer}"
    print("the main job printed and wrote what it must")


if __name__ == "__main__":
    main()
