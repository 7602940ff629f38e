"""Load a report by the program's Python where ours is older, and cannot parse a source that verdicts depend on."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from gilscope.toolkit.race.report.model import RaceReport
from gilscope.toolkit.race.report.settings import Suppression
from gilscope.toolkit.race.verdicts.gather import Gathering, load
from gilscope.toolkit.records import DamagedError, from_plain, plain_value, to_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

CODE = ("import sys; sys.path.insert(0, sys.argv[1]); "
        "from gilscope.toolkit.race.verdicts.other_python import print_report; print_report()")


def load_with(python: str, folder: str, suppressions: Sequence[Suppression]) -> RaceReport:
    """Return the report of a run whose program ran in `python`; the other arguments are those of `load`."""
    from gilscope.toolkit.builds.environment import harness_path
    from gilscope.toolkit.processes.supervised import run

    gathering = Gathering(folder)
    found = gathering.report(suppressions)
    if gathering.is_parsed():
        return found
    ended = run([python, "-I", "-c", CODE, str(harness_path()), folder, json.dumps(plain_value(suppressions))])
    try:
        return from_plain(RaceReport, json.loads(ended.stdout))
    except (DamagedError, ValueError):
        return found


def print_report() -> None:
    """Print the report of the folder in the command line as JSON; the suppressions follow it."""
    suppressions = [from_plain(Suppression, each) for each in json.loads(sys.argv[3])]
    json.dump(to_plain(load(sys.argv[2], suppressions)), sys.stdout)
