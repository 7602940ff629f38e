"""A core that finds what a test tells it, over real source files."""

import ast
from contextlib import contextmanager

from gilscope.toolkit.race.conflicts.handler import ConflictHandler
from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.site import SiteInfo, all_sites, register_sites
from gilscope.toolkit.race.terms import AccessKind, Flag


class FakeCore:
    """Knows stacks and locks by number."""

    name = "fake"

    def __init__(self):
        self.stacks = {0: ()}
        self.locks = {}
        self.told = {}
        self.muted = 0
        self.number = 0      # of the objects that a test makes up next, if it is not their id

    def object_number(self, owner):
        return self.number or id(owner)

    @contextmanager
    def busy(self):
        yield

    def mute(self):
        self.muted += 1
        return self.muted - 1

    def restore(self, level):
        self.muted = level

    def stack(self, context):
        return self.stacks[context]

    def lock_origin(self, uid):
        return self.locks.get(uid, ((), None))

    def counts(self):
        return dict(self.told)


class Program:
    """A source file with its sites, and the conflicts that a test makes up.

    Sites are named by the test: `program.site("write", line, "self.total", op="attr_write", ...)`.
    """

    def __init__(self, folder, source, name="jobs.py"):
        self.path = folder / name
        self.path.write_text(source, encoding="utf-8")
        self.tree = ast.parse(source)
        self.lines = source.splitlines()
        self.infos = []
        self.numbers = {}
        self.folder = folder
        self.core = FakeCore()
        self.spool = folder / "spool"
        self.spool.mkdir(exist_ok=True)
        self.threads = {1: ("thread-1", ((str(self.path), 1, "<module>"),)), 2: ("thread-2", ())}
        self.handler = ConflictHandler(self.core, str(self.spool), lambda uid: self.threads[uid],
                                       {"root": str(folder), "target": name, "build": "3.14t"})

    def line_of(self, fragment, occurrence=1):
        found = [number for number, line in enumerate(self.lines, 1) if fragment in line]
        return found[occurrence - 1]

    def site(self, label, fragment, text, op, key="", flags=Flag.NONE, partners=(), *, note=None, occurrence=1,
             function=None):
        line = self.line_of(fragment, occurrence)
        source = self.lines[line - 1]
        column = source.index(text) if text in source else source.index(source.strip())
        width = len(text) if text in source else len(source.strip())
        info = SiteInfo(str(self.path), line, column, line, column + width, function or self.function_at(line), op, key,
                        text, int(flags), tuple(self.numbers[name] for name in partners), note,
                        "+=" if flags & Flag.AUGMENTED else "")
        self.numbers[label] = register_sites([info._replace(partners=())])
        all_sites[self.numbers[label]] = info
        return self.numbers[label]

    def function_at(self, line):
        names = []

        def visit(node, inside):
            for child in ast.iter_child_nodes(node):
                if hasattr(child, "lineno") and not child.lineno <= line <= child.end_lineno:
                    continue
                if isinstance(child, ast.FunctionDef | ast.ClassDef):
                    names.append(".<locals>" if inside else "")
                    names.append(("." if names[:-1] else "") + child.name)
                    visit(child, isinstance(child, ast.FunctionDef))
                else:
                    visit(child, inside)

        visit(self.tree, inside=False)
        return "".join(names) or "<module>"

    def access(self, label, kind=AccessKind.WRITE, thread=1, locks=(), span=None, context=0):
        opened = -1 if span is None else self.numbers[span]
        return (thread, self.numbers[label], int(kind), context, tuple(locks), opened)

    def tell(self, first, second, owner, part, key, sort="order", value=NO_VALUE):
        """Tell the handler of a conflict: `first` and `second` are the arguments of `access`."""
        first = self.access(first[0], *first[1:2], thread=1, **(first[2] if len(first) > 2 else {}))
        second = self.access(second[0], *second[1:2], thread=2, **(second[2] if len(second) > 2 else {}))
        pair = (first[1], second[1])
        self.core.told[pair] = self.core.told.get(pair, 0) + 1
        return self.handler.on_conflict((sort, owner, part, key, first, second, value))

    def report(self, **options):
        from gilscope.toolkit.race.verdicts.gather import load
        return load(str(self.spool), **options)
