"""How long does the quick matrix take, and how much of it is gilscope's own CPU time?

Runs `gilscope run --quick` in this process, so that its own CPU time can be read apart from the measured processes'.

    python -m tests.benchmarks.harness [options of gilscope run]      # KEEP=FOLDER keeps the results there
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time

from gilscope.toolkit.cli import main as gilscope


def main() -> None:
    """Run, and print both numbers under the table."""
    keep, options = os.environ.get("KEEP"), sys.argv[1:] or ["--quick"]
    with contextlib.nullcontext(keep) if keep else tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        wall, own = time.perf_counter(), time.process_time()
        code = gilscope(["run", *options])
        wall, own = time.perf_counter() - wall, time.process_time() - own
    children = os.times()
    print(
        f"exit code {code}; {wall:.0f} s; gilscope's own CPU time {own:.1f} s = {own / wall:.1%} of the time, "
        f"measured and helper processes {children.children_user + children.children_system:.0f} s"
    )


if __name__ == "__main__":
    main()
