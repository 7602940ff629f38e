"""Join rewritten code with a core: the markers of its sites become the core's objects."""

from __future__ import annotations

from gilscope.toolkit.race import site_registry
from gilscope.toolkit.race.site import MARKER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

    from gilscope.toolkit.race.core import Core
    from gilscope.toolkit.race.site import SiteInfo


def link(code: CodeType, infos: Sequence[SiteInfo], core: Core) -> CodeType:
    """Return the code with the core's site objects in place of the markers, numbered process-wide."""
    if not infos:
        return code
    first = site_registry.add(infos)
    site, known = core.site, site_registry.sites
    return _linked(code, [site(known[number], number) for number in range(first, first + len(infos))])


def _linked(code: CodeType, sites: list[object]) -> CodeType:
    kind = type(code)
    constants: list[object] = []
    changed = False
    for constant in code.co_consts:
        if type(constant) is tuple and len(constant) == 2 and constant[0] == MARKER:   # noqa: PLR2004  mark and index
            constants.append(sites[constant[1]])
        elif type(constant) is kind:
            constants.append(_linked(constant, sites))
        else:
            constants.append(constant)
            continue
        changed = True
    return code.replace(co_consts=tuple(constants)) if changed else code
