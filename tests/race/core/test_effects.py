"""The table of effects is the C core's, too; the core and its stand-ins know the same ops."""

import textwrap
from pathlib import Path

import pytest

from gilscope.toolkit.race._core import build, header
from gilscope.toolkit.race.effects import BUILTINS, EFFECTS, LIBRARY, METHODS, SYNTAX
from gilscope.toolkit.race.site import OPS
from tests.conformance.builds import run_child


def test_header_of_the_c_core_is_made_from_the_table():
    assert Path(header.PATH).read_text() == header.text(), "run `python -m gilscope.toolkit.race._core.header`"


def test_rows_name_effects_of_the_table():
    named = {effect for method in METHODS.values() for effect in method.effects}
    named |= {function.effect for module in (BUILTINS, SYNTAX, *LIBRARY.values()) for function in module.values()}
    assert named - {""} <= set(EFFECTS)


def run(python, program):
    child = run_child(python, "-c", textwrap.dedent(program))
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout.strip()


@pytest.mark.builds("gil", "free")
def test_steps_are_atomic_in_the_versions_that_the_table_names(python):
    assert run(python, """
        from collections import defaultdict
        from gilscope.toolkit.race.effects import is_atomic

        def factory():
            table["k"] = "first"
            return "last"

        table = defaultdict(factory)
        print(table["k"], is_atomic("defaultdict.__missing__"))
    """) in {"first True", "last False"}


@pytest.mark.slow
@pytest.mark.builds("free")
def test_copies_fail_during_changes_where_the_table_has_several_steps(python):
    assert run(python, """
        import threading
        from collections import Counter, OrderedDict, deque
        from gilscope.toolkit.race.effects import Container, BUILTINS, SYNTAX

        MANY = dict.fromkeys(range(300), 1)
        MAKE = {Container.DICT: lambda: dict(MANY), Container.SUBCLASS: lambda: Counter(MANY),
                Container.ORDERED: lambda: OrderedDict(MANY), Container.VIEW: lambda: dict(MANY),
                Container.SET: lambda: set(MANY), Container.DEQUE: lambda: deque(MANY)}
        READ = {name: getattr(__builtins__, name) for name in BUILTINS}
        READ |= {"print": str, "star": lambda items: [*items], "join": lambda items: "".join(map(str, items))}

        def change(container, done):
            while not done.is_set():
                if isinstance(container, dict):
                    container[-1] = 1
                    container.pop(-1)
                elif isinstance(container, set):
                    container.add(-1)
                    container.discard(-1)
                else:
                    container.append(-1)
                    container.pop()

        def fails(read, kind):
            container, done = MAKE[kind](), threading.Event()
            seen = container.items() if kind == Container.VIEW else container
            changer = threading.Thread(target=change, args=(container, done))
            changer.start()
            try:
                while True:
                    read(seen)
            except (RuntimeError, KeyError) as error:
                return bool(str(error))
            finally:
                done.set()
                changer.join()

        rows = [(name, kind) for name, row in (BUILTINS | SYNTAX).items() for kind in row.in_steps]
        print(all(fails(READ[name], kind) for name, kind in rows), bool(rows))
    """) == "True True"


def test_every_core_has_every_op():
    from gilscope.toolkit.race.confirm.ops import PausingOps
    from gilscope.toolkit.race.loading.shutdown_ops import operations

    assert set(build.load().ops) == set(operations()) == set(OPS)
    assert not [name for name in OPS if not hasattr(PausingOps, name)]
