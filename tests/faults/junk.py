"""Command lines that make no sense, drawn by a seed from the words that there are and words that nobody means."""

import shlex

from gilscope.toolkit.cli import COMMANDS, make_parser
from tests.conformance.builds import ROOT

WORDS = (
    "", " ", "-", "--", "---", "0", "-1", "1e400", "nan", "inf", "-inf", "10" * 400, "1" * 5000, "\n",
    "a\nb", "::error::x", "\x1b[31mred\x07", "\u202ereversed", "\udcff", "x" * 300, "x" * 5000, "../..", "/",
    "/dev/null", "/dev/zero", "/proc/self/mem", "~", "$HOME", "*", "?", "[", "a,b", ",", ",,", "a,", "a=b", "=", "a:b",
    ":", "%", "5%", "-5%", "%s", "%(x)s", "{}", "{0}", "{label}", "é", "日本", "😀", "None", "true", "'", '"', "\\",
    "3.99", "3.14t", "results", "label", str(ROOT / "results" / "example"),
    str(ROOT / "results" / "example" / "run.json"),
)
OPTIONS = ("--json", "--markdown", "--builds", "--models", "--clock", "--margin", "--fail-on", "--publish", "--format",
           "--help", "--version", "--nothing", "-h", "-x", "--label", "--rounds", "--resume", "--budget", "--dry-run")


def options_of(command):
    """Return the options that `command` knows."""
    (commands,) = (each for each in make_parser((command,))._actions if each.dest == "command")
    return [option for action in commands.choices[command]._actions for option in action.option_strings]


KNOWN = {command: options_of(command) for command in COMMANDS}


def junk(draw):
    """Return the words of one command line."""
    if draw.random() < 0.1:
        return [draw.choice((*WORDS, *OPTIONS)) for _ in range(draw.randint(0, 4))]
    command = draw.choice((*COMMANDS, "report", "compare", "list"))
    words = [command]
    for _ in range(draw.randint(1, 6)):
        if draw.random() < 0.5:
            words.append(draw.choice(KNOWN[command]))
        words.append(draw.choice(WORDS))
    return words


def spelled(words):
    """Return the command line as a message shows it."""
    return ascii(shlex.join(each[:60] for each in words))
