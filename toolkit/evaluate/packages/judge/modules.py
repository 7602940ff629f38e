"""Which extension modules of a distribution need the GIL, are lost, or load nowhere, by what was seen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.packages.facts import Distribution, Extension, ImportRun, Load, Seen

# mypyc names the module of a whole package after a hash of its sources.
_MYPYC = re.compile(r"\b[0-9a-f]{20}__mypyc$")


def gil_users(seen: Seen) -> dict[str, str]:
    """Return the distribution's modules that need the GIL, and how that is known: "import", "hook" or both."""
    if not seen.free_threaded:
        return {}
    by_import = {load.name for run in (seen.run, seen.forced) if run for load in run.loads
                 if load.gil == "used" and load.error is None and owns(seen.distribution, load)}
    by_hook = {extension.name for extension in seen.extensions if extension.gil == "used"}
    return {name: " and ".join(how for how, names in (("hook", by_hook), ("import", by_import)) if name in names)
            for name in sorted(by_hook | by_import)}


def lost_modules(seen: Seen) -> tuple[str, ...]:
    """Return the extension modules that were loaded on the build with the GIL but not here.

    One that the package itself loads there must be loaded by the package here: that it could be does not help.
    """
    if seen.reference is None or seen.run is None or seen.reference_distribution is None:
        return ()
    owned = {name for name, _ in seen.reference_distribution.extensions}
    here, unused = ({comparable(name) for name in names} for names in (seen.run.loaded, only_by_name(seen.run)))
    by_itself = seen.reference.loaded - only_by_name(seen.reference)
    return tuple(sorted(name for name in seen.reference.loaded & owned if comparable(name) not in here
                        or (name in by_itself and comparable(name) in unused)))


def only_by_name(run: ImportRun) -> set[str]:
    """Return what was loaded as somebody asked for that very module and the package did not."""
    loads = [load for load in run.loads if load.error is None]
    return ({load.name for load in loads if load.part == "extensions"}
            - {load.name for load in loads if load.part != "extensions"})


def loadable_nowhere(seen: Seen) -> tuple[str, ...]:
    """Return extension modules that nothing is known of, as they fail here and with the GIL: a library is missing.

    No program on this machine can load them, so they do not keep the distribution from being ready here.  A damaged
    file is none of them: what it was to be is not known.
    """
    if not seen.run or not seen.reference:
        return ()
    failed = {name for name, _ in seen.run.failed} & {name for name, _ in seen.reference.failed}
    return tuple(extension.name for extension in unread(seen)
                 if extension.name in failed and not extension.damaged)


def unread(seen: Seen) -> list[Extension]:
    """Return the extension modules that were neither read nor loaded."""
    loaded = seen.run.loaded if seen.run else frozenset()
    return [each for each in seen.extensions if each.problem and each.name not in loaded]


def owns(distribution: Distribution | None, load: Load) -> bool:
    """Return whether what was loaded belongs to the distribution."""
    return distribution is not None and any(load.name == name or load.file == file
                                            for name, file in distribution.extensions)


def comparable(name: str) -> str:
    """Return what stands for a module of another wheel of the same package, too."""
    return _MYPYC.sub("__mypyc", name)
