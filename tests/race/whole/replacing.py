"""gilscope whose checked programs begin with some code of a test's, which replaces something in the checker."""


from gilscope.toolkit import cli
from gilscope.toolkit.race.program import start
from tests.conformance.builds import ROOT

# The checked process runs this instead of the file that is its first argument, `boot`: the same code, and something is
# replaced after the checker was imported and before it is called, which is the last line there.
RUN = """import sys
with open(sys.argv[1]) as file: boot, call, _ = file.read().rpartition('_import_main()')
exec(compile(boot, sys.argv[1], 'exec'))
main = _import_main()
{replace}
main.main(sys.argv[-3])"""


def replacing(code):
    """Return the words with which Python runs gilscope's command line, each checked process after that code."""
    program = f"from tests.race.whole.replacing import main; sys.exit(main({code!r}))"
    return ["-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {program}"]


def main(code):
    """Run gilscope's command line with our arguments; return its exit code."""
    start.AS_SCRIPT = start.AS_MODULE = ("-c", RUN.replace("{replace}", code), start.BOOT)
    return cli.main()
