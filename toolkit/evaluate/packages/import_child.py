"""Import packages in this process, or in interpreters with their own GIL; a child process of `imports`.

Runs inside the build under test.  The parent reads the journal, whatever ends the process (crash, hang, exit).
"""

from __future__ import annotations

from gilscope.toolkit.children.child import Journal, begin, forget_toolkit, interpreters_module, run_in
from gilscope.toolkit.evaluate.packages.import_watch import import_all

SCRIPT = """import json, sys
sys.path.insert(0, {harness!r})
from gilscope.toolkit.evaluate.packages.import_watch import import_all
del sys.path[0]
with open({job!r}, encoding='utf-8') as source: job = json.load(source)
sys.path.extend(path for path in job['path'] if path not in sys.path)
import_all(job, {cycle})
"""


def main() -> None:
    """Import the modules of the job in this interpreter."""
    job = begin()
    import_all(job)


def interpreters_main() -> None:
    """Import the modules of the job in an interpreter with its own GIL and destroy it, as often as the job says."""
    job = begin()
    forget_toolkit()
    journal = Journal(job, -1)
    interpreters = interpreters_module()
    if interpreters is None:
        journal.write("unavailable")
        return
    for cycle in range(job["cycles"]):
        ident = interpreters.create()
        script = SCRIPT.format(harness=job["harness"], job=job["file"], cycle=cycle)
        error = run_in(interpreters, ident, script)
        journal.write("ran", number=cycle, error=error)
        interpreters.destroy(ident)
        journal.write("destroyed", number=cycle)
