"""Run gilscope's C code in other people's processes under AddressSanitizer and UndefinedBehaviorSanitizer.

The race checker's core and the shim of `gilscope gil`, on every build at hand.  Leaks are not looked for: CPython
itself leaves memory behind.  On builds with the GIL, all of Python's memory comes from malloc, so that AddressSanitizer
sees what happens to objects; free-threaded builds refuse that, and fill freed objects with a pattern instead.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1]))

from gilscope.toolkit.builds.compile_library import c_compiler, compile_library
from gilscope.toolkit.gil import preload
from tests.conformance.builds import found, run_child
from tests.gil import programs
from tests.race.core.c_core_child import SCENARIOS

if TYPE_CHECKING:
    from gilscope.toolkit.model import Build

# UndefinedBehaviorSanitizer would go on otherwise, and write nothing into the log.
FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-O1")
LIBRARIES = ("libasan.so", "libubsan.so")
RACES = 66       # status of `gilscope race` if it found some: those of the program, which are meant
# They measure memory, or recurse deeply: sanitizers need more of both.
LEFT_OUT = {"bounded_memory", "no_leaks", "deep_nesting_dies", "deep_recursion"}
CORE = (
    ("-m", "tests.race.core.cases.run"),
    *(("-m", "tests.race.core.c_core_child", name) for name in SCENARIOS if name not in LEFT_OUT),
    ("-m", "gilscope", "race", "-m", "tests.race.core.transient_keys", "8"),
)
SHIM = {name: getattr(programs, name) for name in ("SPIN", "SLEEP")}


def main(folder: Path) -> int:
    """Run all steps on all builds; return 1 if a sanitizer reported something or a step failed."""
    sanitizers = " ".join(_output("gcc", f"-print-file-name={name}") for name in LIBRARIES)
    shim = folder / "shim.so"
    compile_library([*c_compiler(), *preload.FLAGS, *FLAGS], [str(each) for each in preload.c_files()], shim)
    failed = False
    for build in found():
        core = {"GILSCOPE_CACHE": str(folder / build.label), "LD_PRELOAD": sanitizers,
                "GILSCOPE_RACE_CFLAGS": " ".join((*FLAGS, "-DGILSCOPE_WIDE_WINDOWS"))}
        for step in CORE:
            failed |= not _run(build, step, step[1:], core)
        for name, source in SHIM.items():
            records = folder / f"{build.label}-{name}"
            records.mkdir()
            waits = {"LD_PRELOAD": f"{sanitizers} {shim}", preload.VARIABLE: str(records)}
            failed |= not _run(build, ("-c", source, "3"), ("shim:", name), waits)
            failed |= not _has_recorded(records)
    return int(failed)


def _run(build: Build, step: tuple[str, ...], named: tuple[str, ...], variables: dict[str, str]) -> bool:
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        options = f"detect_leaks=0:log_path={folder}/report"
        child = run_child(build.executable, *step, **variables, ASAN_OPTIONS=options,
                          UBSAN_OPTIONS=f"print_stacktrace=1:log_path={folder}/report",
                          PYTHONMALLOC="debug" if build.free_threaded else "malloc")
        reports = [path.read_text(errors="replace") for path in sorted(Path(folder).iterdir())]
    good = not reports and child.returncode in {0, RACES}
    seconds = time.monotonic() - started
    print(f"{build.label}: {' '.join(named)}: {'ok' if good else 'FAILED'} ({seconds:.0f} s)", flush=True)
    if not good:
        print(*reports, f"status {child.returncode}", child.stderr[-4000:], sep="\n", flush=True)
    return good


def _has_recorded(folder: Path) -> bool:
    if not any(folder.iterdir()):
        print("the shim recorded nothing", flush=True)
        return False
    return True


def _output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(Path(temporary)))
