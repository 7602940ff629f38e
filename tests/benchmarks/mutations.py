"""How many small mistakes in the product do the tests of `make test` find?

Draws mutations by a seed in five modules, makes one at a time in a checkout, and runs the nearest tests until one
fails; with --whole, a mutation that they pass is tried by all fast tests.  The checkout needs its `.venv` (make test),
and is as it was at the end.  A mutation that no test finds may change nothing: read it.

    git clone . /elsewhere && make -C /elsewhere test
    python -m tests.benchmarks.mutations /elsewhere [--seed 1] [--count 12] [--only core] [--whole]
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = {   # name -> the files that are mutated, and the tests nearest to them
    "core": (("toolkit/race/_core/detection/*.c", "toolkit/race/_core/state/clocks.c",
              "toolkit/race/_core/state/shadow.c"), ("tests/race/core", "tests/race/sync", "tests/race/whole")),
    "rewriter": (("toolkit/race/rewrite/*.py",), ("tests/race/rewriting", "tests/race/whole")),
    "scheduler": (("toolkit/measure/scheduler.py", "toolkit/measure/rounds.py", "toolkit/measure/turns.py"),
                  ("tests/measure", "tests/test_run_end_to_end.py")),
    "statistics": (("toolkit/stats/*.py",), ("tests/stats", "tests/report")),
    "verdicts": (("toolkit/evaluate/verdict.py", "toolkit/race/verdicts/classify.py"),
                 ("tests/evaluate/probes", "tests/evaluate/views", "tests/evaluate/test_answer.py",
                  "tests/evaluate/test_next_steps.py", "tests/race/reports", "tests/race/whole")),
}
OPERATORS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
             ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or,
             ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
TOKENS = {" == ": " != ", " != ": " == ", " <= ": " < ", " >= ": " > ", " < ": " <= ", " > ": " >= ", " && ": " || ",
          " || ": " && ", " + 1": " + 2", " - 1": " - 2", "return 0;": "return 1;", "return 1;": "return 0;",
          "return true;": "return false;", "return false;": "return true;", "if (!": "if (", "++": "--"}
HANG = 1800.0   # seconds; tests that go on for ever have found something


@dataclass(frozen=True, slots=True)
class Mutation:
    """One small mistake."""

    path: str
    line: int
    start: int   # in bytes of the file
    end: int
    text: str

    def made_in(self, source: bytes) -> bytes:
        """Return the source with the mistake."""
        return source[:self.start] + self.text.encode() + source[self.end:]

    def described(self, source: bytes) -> str:
        """Return its place and what it changes."""
        return f"{self.path}:{self.line}  {source[self.start:self.end].decode()!r} -> {self.text!r}"


def main() -> int:
    """Make the mutations and say which of them no test finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=12, help="of each module")
    parser.add_argument("--only", choices=MODULES)
    parser.add_argument("--whole", action="store_true", help="try with all fast tests what the nearest pass")
    parser.add_argument("--marks", default="not slow and not nightly")
    args = parser.parse_args()
    found = drawn = 0
    for name in [args.only] if args.only else MODULES:
        patterns, tests = MODULES[name]
        for mutation in draw(args.checkout, patterns, args.count, f"{args.seed} {name}"):
            began = time.monotonic()
            path = args.checkout / mutation.path
            source = path.read_bytes()
            try:
                path.write_bytes(mutation.made_in(source))
                finder = run_tests(args.checkout, args.marks, tests)
                if not finder and args.whole:
                    finder = run_tests(args.checkout, args.marks, ("tests",))
            finally:
                path.write_bytes(source)
            drawn += 1
            found += bool(finder)
            print(f"{name:10} {time.monotonic() - began:5.0f} s  {finder or 'NOT FOUND'}\n"
                  f"           {mutation.described(source)}", flush=True)
    print(f"{found} of {drawn} found")
    return 0


def run_tests(checkout: Path, marks: str, tests: tuple[str, ...]) -> str:
    """Return the first test that fails, or how they ended; "" if all pass."""
    command = [checkout / ".venv/bin/python", "-m", "pytest", "-x", "-q", "-n", "3", "--dist", "worksteal",
               "-m", marks, *tests]
    try:
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=HANG, check=False)
    except subprocess.TimeoutExpired:
        return "a hang"
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return failed[1] if failed else "" if done.returncode == 0 else f"exit code {done.returncode}"


def draw(checkout: Path, patterns: tuple[str, ...], count: int, seed: str) -> list[Mutation]:
    """Return mutations of these files, the same for the same seed and code."""
    paths = sorted(path for pattern in patterns for path in checkout.glob(pattern))
    possible = [each for path in paths for each in (of_c if path.suffix == ".c" else of_python)(
        str(path.relative_to(checkout)), path.read_bytes())]
    drawn = random.Random(seed).sample(possible, min(count, len(possible)))
    return sorted(drawn, key=lambda each: (each.path, each.line))


def of_c(path: str, source: bytes) -> Iterator[Mutation]:
    """Yield the mutations of a C file: its code alone, no comment, text or line of the preprocessor."""
    code = re.sub(rb'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|^\s*#(?:[^\n]*\\\n)*[^\n]*',
                  lambda found: b" " * len(found[0]), source, flags=re.DOTALL | re.MULTILINE)
    for token, other in TOKENS.items():
        for at in re.finditer(re.escape(token.encode()), code):
            yield Mutation(path, source.count(b"\n", 0, at.start()) + 1, at.start(), at.end(), other)


def of_python(path: str, source: bytes) -> Iterator[Mutation]:
    """Yield the mutations of a Python file: no annotation, no text."""
    starts = [0, *(at.end() for at in re.finditer(rb"\n", source))]
    for node in code_of(ast.parse(source)):
        if (text := changed(node)) is not None:
            first, last = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            yield Mutation(path, node.lineno, first, last, text)


def code_of(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that run, but for those in f-strings."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "type_params", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.expr):
                yield child
            if isinstance(child, ast.AST):
                yield from code_of(child)


def changed(node: ast.expr) -> str | None:
    """Return the text of a small mistake in an expression, None where there is none to make."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in OPERATORS:
            other: ast.expr = ast.Compare(node.left, [OPERATORS[type(op)]()], node.comparators)
        case ast.BoolOp(op=op, values=values):
            other = ast.BoolOp(OPERATORS[type(op)](), values)
        case ast.BinOp(op=op, left=left, right=right) if type(op) in OPERATORS:
            other = ast.BinOp(left, OPERATORS[type(op)](), right)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            other = operand
        case ast.Constant(value=bool(value)):
            other = ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            other = ast.Constant(value + 1)
        case _:
            return None
    return f"({ast.unparse(other)})"


if __name__ == "__main__":
    sys.exit(main())
