"""Check in a new environment that the installed wheel's own core finds a race: `python .ci/check_core.py`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

RACY = """
import threading
count = 0
def add():
    global count
    count += 1
threads = [threading.Thread(target=add) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
RACE_FOUND = 66


def main() -> int:
    """Return 1 if the race is not found, or if a core was compiled for it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "racy.py").write_text(RACY)
        done = subprocess.run(
            [sys.executable, "-m", "gilscope", "race", "racy.py"], cwd=folder, capture_output=True, text=True,
            check=False, env={**os.environ, "GILSCOPE_CACHE": str(folder / "cache")})
        made = list((folder / "cache").rglob("*.so"))
    if done.returncode != RACE_FOUND or "C core" not in done.stderr or made:
        print(f"exit code {done.returncode}, cores made: {made}\n{done.stdout}{done.stderr}")
        return 1
    print("the wheel's core found the race")
    return 0


if __name__ == "__main__":
    sys.exit(main())
