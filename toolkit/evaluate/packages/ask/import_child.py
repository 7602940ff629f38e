"""The processes that import other people's packages: once as a program would, or in interpreters of their own.

Runs inside the build asked about.  Whatever happens (crash, hang, exit) is read from the journal by who started it.
"""

from __future__ import annotations

from gilscope.toolkit.evaluate.children.begin import begin
from gilscope.toolkit.evaluate.children.interpreters import interpreters_module, run_in
from gilscope.toolkit.evaluate.children.journal import Journal
from gilscope.toolkit.evaluate.children.loaded_modules import forget_toolkit
from gilscope.toolkit.evaluate.packages.ask.watch import import_all

SCRIPT = """import json, sys
sys.path.insert(0, {harness!r})
from gilscope.toolkit.evaluate.packages.ask.watch import import_all
del sys.path[0]
with open({job!r}, encoding='utf-8') as source: job = json.load(source)
sys.path.extend(path for path in job['path'] if path not in sys.path)
import_all(job, {turn})
"""


def main() -> None:
    """Import the modules of the job that the standard arguments name, in this interpreter."""
    job = begin()
    import_all(job)


def interpreters_main() -> None:
    """Do it in an interpreter with its own GIL, and end that; as often as the job says."""
    job = begin()
    forget_toolkit()
    journal = Journal(job, -1)
    interpreters = interpreters_module()
    if interpreters is None:
        journal.write("unavailable")
        return
    for turn in range(job["turns"]):
        ident = interpreters.create()
        script = SCRIPT.format(harness=job["harness"], job=job["file"], turn=turn)
        error = run_in(interpreters, ident, script)
        journal.write("ran", number=turn, error=error)
        interpreters.destroy(ident)
        journal.write("destroyed", number=turn)
