"""Write effects.h, the C core's copy of the table of effects: `python -m gilscope.toolkit.race._core.header`."""

from __future__ import annotations

import os
import re
import textwrap
from typing import TYPE_CHECKING

from gilscope.toolkit.race import effects
from gilscope.toolkit.race.terms import AccessKind, Flag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from enum import IntEnum, IntFlag

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "effects.h")


def text() -> str:
    """Return the content of the header."""
    pairs = {**effects.LOCK_PAIRS, **{last: first for first, last in effects.LOCK_PAIRS.items()}}
    return f"""\
/* Made from toolkit/race/effects.py and terms.py by `python -m gilscope.toolkit.race._core.header`: do not edit it.  */
{_enum("Kind", _members(AccessKind))}
{_enum("Flag", _members(Flag))}
{_enum("SideEffect", _members(effects.SideEffect, "SIDE_"))}
{_enum("Container", _members(effects.Container, "CONTAINER_"))}
{_enum("Column", ["NO_COLUMN", *map(str.upper, effects.FAMILIES), "N_COLUMNS"])}
{_enum("EffectName", ["NO_EFFECT", *map(_effect, effects.EFFECTS), "N_EFFECTS"])}

/* Effects on the container as a whole.  kind: of the access of the structure.  side: enum SideEffect.  */
typedef struct {{ uint8_t kind, side; }} Effect;
static const Effect effects[N_EFFECTS] = {{
{_rows(_effect_row(name, effect) for name, effect in effects.EFFECTS.items() if effect.kind is not None)}
}};

/* in_steps: enum Container.  */
typedef struct {{ const char *name; bool removes; uint8_t in_steps, effects[N_COLUMNS]; }} Method;
static const Method methods[] = {{
{_rows(_method_row(name) for name in sorted(effects.CONTAINER_METHODS))}
}};
#define METHODS_WITH_STAND_IN(each) \\
{_filled((f'each("{name}")' for name in sorted(_with_stand_in())), end=" \\")}

/* The effects on the argument of the op `size`, by the key of the site.  in_steps: enum Container.  */
typedef struct {{ const char *name; uint8_t effect, in_steps; }} Function;
static const Function functions[] = {{
{_rows(_function_row(name, function) for name, function in sorted(effects.readers().items()))}
}};

{_definitions()}

static const struct {{ const char *name, *partner; bool acquires; }} lock_pairs[] = {{
{_rows(f'{{"{name}", "{partner}", {_bool(name in effects.LOCK_PAIRS)}}}' for name, partner in sorted(pairs.items()))}
}};
"""


def _enum(name: str, members: Iterable[str]) -> str:
    return f"enum {name} {{\n{_filled(f'{member},' for member in members)}\n}};"


def _members(kinds: type[IntEnum | IntFlag], prefix: str = "") -> list[str]:
    return [f"{prefix}{kind.name} = {int(kind)}" for kind in kinds if kind.name != "NONE"]


def _rows(rows: Iterable[str]) -> str:
    return "\n".join(_filled(re.split(r" (?=\[|\| )", f"{row},")) for row in rows)


def _filled(parts: Iterable[str], end: str = "") -> str:
    """Return the parts in lines of at most 120 characters, each of which stays in one."""
    whole = " ".join(part.replace(" ", "\0") for part in parts)
    lines = textwrap.wrap(whole, 114, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return f"{end}\n".join(lines).replace("\0", " ")


def _effect(name: str) -> str:
    return f"EFFECT_{name.upper().replace(' ', '_')}"


def _bool(value: bool) -> str:  # noqa: FBT001  it is formatted
    return "true" if value else "false"


def _effect_row(name: str, effect: effects.Effect) -> str:
    sides = " | ".join(f"SIDE_{side.name}" for side in effect.side) or "0"
    return f"[{_effect(name)}] = {{{effect.kind.name if effect.kind is not None else ''}, {sides}}}"


def _method_row(name: str) -> str:
    row = effects.METHODS[name]._asdict()
    columns = ", ".join(f"[{column.upper()}] = {_effect(row[column])}" for column in effects.FAMILIES if row[column])
    kinds = _containers(effects.METHODS[name].in_steps)
    return f'{{"{name}", {_bool(name in effects.REMOVING)}, {kinds}, {{{columns}}}}}'


def _function_row(name: str, function: effects.Function) -> str:
    return f'{{"{name}", {_effect(function.effect)}, {_containers(function.in_steps)}}}'


def _containers(kinds: effects.Container) -> str:
    return " | ".join(f"CONTAINER_{kind.name}" for kind in kinds) or "0"


def _definitions() -> str:
    names = {step: step.replace("__", "").replace(".", "_").upper() for step in effects.ATOMIC_SINCE}
    return "\n".join(f"#define ATOMIC_{names[step]} \\\n    ({_since(firsts)})"
                     for step, firsts in effects.ATOMIC_SINCE.items())


def _since(firsts: Sequence[tuple[int, int, int]]) -> str:
    """Return the condition in C that the running version is one of these or a later one of its minor version."""
    def number(version: tuple[int, ...]) -> str:
        return f"0x{version[0]:02X}{version[1]:02X}{version[2]:02X}00"

    parts = [f"(Py_Version >= {number(first)} && Py_Version < {number((first[0], first[1] + 1, 0))})"
             for first in firsts[:-1]]
    return " \\\n     || ".join([*parts, f"Py_Version >= {number(firsts[-1])}"])


def _with_stand_in() -> set[str]:
    return {name for name, method in effects.METHODS.items()
            if any(effects.EFFECTS[effect].kind is None for effect in method.effects)}


if __name__ == "__main__":
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(text())
