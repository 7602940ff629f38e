"""The steps of action.yml, by name: `python .github/action prepare`, `install`, `check` or `comment`.

Everything a step is given comes from the environment, as a runner sets it: the inputs as INPUT_..., the files of the
runner as GITHUB_....  Needs only the standard library and the checkout that this is part of.
"""

from __future__ import annotations

import sys
from pathlib import Path

# Text of others goes through gilscope's one door for it, and the cache has gilscope's folders.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import check
import comment
import prepare
from inputs import InputError

from gilscope.toolkit.escaping import in_command, message

STEPS = {"prepare": prepare.prepare, "install": prepare.install, "check": check.check, "comment": comment.comment}


def main(words: list[str]) -> int:
    """Run the named step; return its exit status."""
    if len(words) != 1 or words[0] not in STEPS:
        print(f"name one step: {', '.join(STEPS)}", file=sys.stderr)
        return 2
    try:
        return STEPS[words[0]]()
    except InputError as error:
        print(f"::error title=gilscope::{in_command(message(str(error)))}")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
