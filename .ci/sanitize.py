"""Run the race checker's C core under AddressSanitizer and UndefinedBehaviorSanitizer.

On this Python and on those of GILSCOPE_TEST_BUILDS.  Leaks are not looked for: CPython itself leaves memory behind.
On builds with the GIL, all of Python's memory comes from malloc, so that AddressSanitizer sees what happens to objects;
free-threaded builds refuse that, and fill freed objects with a pattern instead.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.conformance.builds import builds, run_child

# UndefinedBehaviorSanitizer would go on otherwise, and write nothing into the log.
FLAGS = ("-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 "
         "-DGILSCOPE_WIDE_WINDOWS")
LIBRARIES = ("libasan.so", "libubsan.so")
RACES = 66       # status of `gilscope race` if it found some: those of the program, which are meant
# Scenarios that measure memory or recurse deeply are left out: sanitizers need more of both.
SCENARIOS = ("address_reuse", "crowd", "come_and_go", "everything_at_once", "fork", "fork_amid_work", "pieces_of_locks")
STEPS = (
    ("-m", "tests.race.core.cases.run", "C"),
    *(("-m", "tests.race.core.c_core_child", name) for name in SCENARIOS),
    ("-m", "gilscope", "race", "-m", "tests.race.core.transient_keys", "8"),
)


def main(cache: Path) -> int:
    """Run all steps on all builds; return 1 if a sanitizer reported something or a step failed."""
    libraries = " ".join(_output("gcc", f"-print-file-name={name}") for name in LIBRARIES)
    failed = False
    for label, python in builds().items():
        question = "import sysconfig; print(sysconfig.get_config_var('Py_GIL_DISABLED'))"
        variables = {
            "GILSCOPE_CACHE": str(cache / label), "GILSCOPE_RACE_CFLAGS": FLAGS, "LD_PRELOAD": libraries,
            "PYTHONMALLOC": "debug" if _output(python, "-c", question) == "1" else "malloc",
        }
        for step in STEPS:
            failed |= not _run(label, python, step, variables)
    return int(failed)


def _run(label: str, python: str, step: tuple[str, ...], variables: dict[str, str]) -> bool:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        options = f"detect_leaks=0:log_path={folder}/report"
        child = run_child(python, *step, **variables, ASAN_OPTIONS=options, UBSAN_OPTIONS="print_stacktrace=1")
        reports = [path.read_text(errors="replace") for path in sorted(Path(folder).iterdir())]
    good = not reports and child.returncode in {0, RACES}
    seconds = time.monotonic() - started
    print(f"{label}: {' '.join(step[1:])}: {'ok' if good else 'FAILED'} ({seconds:.0f} s)", flush=True)
    if not good:
        print(*reports, f"status {child.returncode}", child.stderr[-4000:], sep="\n", flush=True)
    return good


def _output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        sys.exit(main(Path(cache)))
