"""Compare `toolkit/records.py` with cattrs and msgspec: start-up, time to read run.json, messages for damaged files.

    pip install cattrs==26.2.1 msgspec==0.22.0 && python -m tests.benchmarks.records

Times are CPU time, the smallest of several.
"""

import copy
import functools
import json
import resource
import subprocess
import sys
from pathlib import Path

from gilscope.toolkit.model import Run
from gilscope.toolkit.records import from_plain

EXAMPLE = Path(__file__).parents[2] / "results" / "example" / "run.json"
STARTS, READS, COPIES = 30, 20, 50
MODEL = "json, dataclasses, enum, typing, gilscope.toolkit.model"
# What each reader needs imported before it can read its first record.
IMPORTS = {"ours": "from gilscope.toolkit.records import from_plain",
           "cattrs": "from cattrs import Converter; from cattrs.preconf.json import make_converter",
           "msgspec": "import msgspec"}
DAMAGE = {
    "text for a number": lambda run: run["cells"][3].update(workers="2"),
    "true for a number": lambda run: run.update(seed=True),
    "an unknown field": lambda run: run["machine"].update(colour="red"),
    "a field is missing": lambda run: run["builds"][0].pop("version"),
    "no such phase": lambda run: run["cells"][0].update(phase="later"),
    "NaN": lambda run: run["cells"][0].update(task_seconds=float("nan")),
    "a number of 400 digits": lambda run: run.update(seed=10**400),
    "an object for a list": lambda run: run.update(skips={}),
}


def readers():
    """Return a function for each reader: from parsed JSON to a `Run`."""
    import msgspec
    from cattrs import ClassValidationError, transform_error
    from cattrs.preconf.json import make_converter

    converter = make_converter(forbid_extra_keys=True)
    converter.register_structure_hook(str | float, lambda value, _: value)

    def by_cattrs(plain):
        try:
            return converter.structure(plain, Run)
        except ClassValidationError as error:
            raise ValueError("; ".join(transform_error(error))) from error

    return {"ours": lambda plain: from_plain(Run, plain), "cattrs": by_cattrs,
            "msgspec": lambda plain: msgspec.convert(plain, Run)}


def cpu_seconds(function):
    before = cpu()
    function()
    return cpu() - before


def cpu():
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def start(code):
    return min(cpu_seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True)) for _ in range(STARTS))


def main():
    fields = json.loads(EXAMPLE.read_text())
    fields = {name: value for name, value in fields.items() if name not in {"format", "version"}} | {"measurements": []}
    large = fields | {"cells": fields["cells"] * COPIES}
    base = start(f"import {MODEL}")
    print(f"python with {MODEL}: {base * 1e3:.0f} ms")
    for name, read in readers().items():
        more = start(f"import {MODEL}; {IMPORTS[name]}") - base
        later = min(cpu_seconds(functools.partial(read, large)) for _ in range(READS))
        print(f"\n{name}: {more * 1e3:+.0f} ms to import, {later * 1e3:.0f} ms for a run.json of "
              f"{len(large['cells'])} cells")
        for what, damage in DAMAGE.items():
            damaged = copy.deepcopy(fields)
            damage(damaged)
            try:
                read(damaged)
                said = "accepted"
            except ValueError as error:   # msgspec's is one, too
                said = f"{type(error).__name__}: {error}"
            print(f"  {what}: {said if len(said) < 400 else said[:200] + ' ...'}")


if __name__ == "__main__":
    main()
