"""Compare the reported memory of workers with the true one: two child processes that hold 60 MB each.

python -m tests.benchmarks.memory [--build LABEL=PATH]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from gilscope.toolkit.measure.child.spec import UserTarget
from gilscope.toolkit.measure.measured_process import run_child
from gilscope.toolkit.measure.preparation import question_spec
from gilscope.toolkit.units import format_bytes
from tests.benchmarks.common import build_of, prepared

HOLDER = """
held = []
def hold(path):
    if not held:
        held.append(bytearray(b"x") * 60_000_000)
    with open("/proc/self/smaps_rollup") as file:
        own = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    import os
    with open(os.path.join(path, f"pss-{os.getpid()}"), "w") as file:
        file.write(str(own * 1024))
    import time
    time.sleep(0.05)  # long enough that the other worker takes the other payload
    return own
"""


def main() -> None:
    """Measure, and print the reported and the true memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=f"host={sys.executable}", metavar="LABEL=PATH")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "holder.py").write_text(HOLDER)
        _, python, environment, _ = prepared(build_of(args.build), "countdown", folder)
        environment["PYTHONPATH"] += f":{folder}"
        user = UserTarget(function="holder:hold", payload=repr(name), tasks=2)
        spec = replace(question_spec(folder, user=user), runner="processes-spawn", workers=2, values=2)
        answer = run_child(python, spec, environment)
        assert answer.kind == "measured", answer
        children = [int(path.read_text()) for path in folder.glob("pss-*")]
    reported = answer.fields["metrics"]["pss_bytes"]
    print(
        f"{len(children)} children say {format_bytes(sum(children))}; reported for the whole tree: "
        f"PSS {format_bytes(reported)}, peak RSS {format_bytes(answer.fields['metrics']['rss_bytes'])}; "
        f"above the children's own: {format_bytes(reported - sum(children))} (the parent, about what a bare run takes)"
    )


if __name__ == "__main__":
    main()
