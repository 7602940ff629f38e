"""gilscope with the reference model in place of the core in C: `python -m tests.race.model.command race SCRIPT`."""

from __future__ import annotations

import sys

from gilscope.toolkit import cli
from gilscope.toolkit.race.program import start

# The checked process runs this instead of the file that is its first argument, `boot`: the same code, and something is
# replaced after the checker was imported and before it is called, which is the last line there.
RUN = """import sys
with open(sys.argv[1]) as file: boot, call, _ = file.read().rpartition('_import_main()')
exec(compile(boot, sys.argv[1], 'exec'))
main = _import_main()
sys.path.insert(0, sys.argv[1].rsplit('/', 5)[0])
{replace}
sys.modules['gilscope.toolkit.race.session'].NOT_THE_PROGRAMS.add('tests')   # the model is the checker
del sys.path[0]
main.main(sys.argv[-3])"""


def main(replace: str = "from tests.race.model import replace_c_core; replace_c_core()") -> int:
    """Run gilscope's command line with our arguments and what `replace` replaces; return its exit code."""
    start.AS_SCRIPT = start.AS_MODULE = ("-c", RUN.replace("{replace}", replace), start.BOOT)   # type: ignore[assignment]  # a script needs no more
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
