"""How many of the places that the search names in real extension modules are false, as judged by hand?

`extension_places.toml` keeps the judgements by project, file and line.  A place that is in none of its lists is
printed: somebody has to read it.

    pip download --no-binary :all: --no-deps bitarray==3.12.3 ...     # and unpack them all into one folder
    python -m tests.benchmarks.extension_places FOLDER --build 3.14t
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from tests.benchmarks.common import build_of

JUDGED = Path(__file__).with_suffix(".toml")


def main() -> None:
    """Search each project, and print its places and how many of these are false."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="holds the unpacked sdists: bitarray-3.12.3, ...")
    parser.add_argument("--build", default="3.14t", metavar="LABEL[=PATH]", help="whose compiler's view is read")
    args = parser.parse_args()
    build = build_of(args.build)
    true = false = 0
    for name, judged in tomllib.loads(JUDGED.read_text()).items():
        own = find_extensions(args.folder / f"{name}-{judged['version']}", build)
        places = [(source.file, remark) for source in own.sources for remark in source.remarks if remark.unguarded]
        counts = {}
        for word in ("true", "false"):
            counts[word] = sum(remark.line in judged.get(word, {}).get(file, ()) for file, remark in places)
        true, false = true + counts["true"], false + counts["false"]
        how = "" if own.read_for else ", not preprocessed"
        print(f"{name:14} {len(places):4} places, {counts['false']:3} false{how}")
        for file, remark in places:
            if not any(remark.line in judged.get(word, {}).get(file, ()) for word in counts):
                print(f"    not judged: {file}:{remark.line} {remark.concern}: {remark.what}")
    print(f"{false} of {true + false} places are false: {false / (true + false or 1):.0%}")


if __name__ == "__main__":
    main()
