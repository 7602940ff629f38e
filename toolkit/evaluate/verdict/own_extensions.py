"""What the project's own extension modules come to: words for verdicts, and what is to be declared where.  Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.judge.modules import gil_users
from gilscope.toolkit.evaluate.packages.judge.status import Status
from gilscope.toolkit.evaluate.project.extensions.how_to_declare import (
    BY_ITSELF,
    binding_of_module,
    how_to_declare,
    place_of,
    source_of,
)
from gilscope.toolkit.units import counted, few

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import BuildEvaluation
    from gilscope.toolkit.evaluate.packages.doctor import Finding
    from gilscope.toolkit.evaluate.project.extensions.facts import OwnBuild, OwnExtensions, Unbuilt

OWN = "its own"   # how a reason begins that is about the project's own files
SEEN_BY = " (seen by "   # how what was seen ends
_STOPS = re.compile(r"([^\s:]+\.\w+):(\d+)(?::\d+)?: ")   # as compilers name a place
_UNKNOWN = {Status.UNKNOWN, Status.INTERPRETER}


def blockers(own: OwnBuild | None) -> Iterator[str]:
    """Yield what of the project's own keeps it from a build without a GIL."""
    if own is None:
        return
    if own.failure and own.elsewhere:
        yield f"{OWN} extension modules cannot be built here, and can on {own.elsewhere}: {own.failure}"
    finding = own.finding
    if finding is None or not finding.verdict.status.blocks or finding.verdict.status is Status.LOST:
        return
    if users := gil_users(finding.seen):
        names = list(users)
        verb = "turns" if len(names) == 1 else "turn"
        kind = "extension module" if len(names) == 1 else "extension modules"
        yield (f"{OWN} {kind} {few(names)} {verb} the GIL on when imported: not declared to do without it"
               f"{SEEN_BY}{users[names[0]]})")
        return
    why = "; ".join(finding.verdict.reasons[:1])
    yield f"{OWN} code, as it is built, {finding.verdict.status.value}{f': {why}' if why else ''}"


def unbuilt(own: OwnBuild | None, where: str = "without the GIL") -> Iterator[str]:
    """Yield what was not built of the project's own, here nor elsewhere, so that nobody knows what it does."""
    if own is None:
        return
    if own.failure and not own.elsewhere:
        yield f"{OWN} extension modules were not built, so what they do {where} is not known: {own.failure}"
    for each in own.unbuilt:
        if not each.elsewhere:
            why = each.why or "the build went on without it and said nothing"
            yield f"{_module(each)} was not built, so what it does {where} is not known: {why}"


def _module(unbuilt: Unbuilt) -> str:
    """Return the subject of a sentence about a module, which need not have a name."""
    return unbuilt.name if unbuilt.name.startswith("what ") else f"{OWN} extension module {unbuilt.name}"


def unknowns(own: OwnBuild | None) -> Iterator[str]:
    """Yield what is not known of the project's own extension modules: no word is better than a wrong one."""
    yield from unbuilt(own)
    if own is not None and own.finding is not None and own.finding.verdict.status in _UNKNOWN:
        why = "; ".join(own.finding.verdict.reasons[:1])
        yield f"{OWN} extension modules: {own.finding.verdict.status.value}{f': {why}' if why else ''}"


def unlocked(extensions: OwnExtensions) -> list[str]:
    """Return "file:line" of what the project's own C code writes to objects without a lock."""
    return list(dict.fromkeys(f"{source.file}:{remark.line}" for source in extensions.sources
                              for remark in source.remarks if remark.concern == "unlocked write"))


def doubts(extensions: OwnExtensions) -> Iterator[str]:
    """Yield why nobody knows what threads do to the project's own C code, whatever was seen running."""
    if places_ := unlocked(extensions):
        code = "C code" if _in_c(extensions) else "compiled code"
        yield (f"{OWN} {code} writes to fields without a lock at {counted(len(places_), 'place')} "
               f"({few(places_)}): whether several threads reach the same ones is not known, as nothing watches C code")


def _in_c(extensions: OwnExtensions) -> bool:
    """Return whether all that writes so is C or C++, not Cython."""
    return all(source.language in {"C", "C++"} for source in extensions.sources
               if any(remark.concern == "unlocked write" for remark in source.remarks))


def costs(own: OwnBuild | None) -> Iterator[str]:
    """Yield which of its C code the project does without on this build."""
    if own is None:
        return
    for each in own.unbuilt:
        if each.elsewhere:
            why = f": {each.why}" if each.why else ""
            yield f"{OWN} extension module {each.name} is not built here, and is on {each.elsewhere}{why}"
    if own.finding is not None and own.finding.verdict.status is Status.LOST:
        yield f"it loses C code of its own: {'; '.join(own.finding.verdict.reasons[:2])}"


def files(own: OwnBuild | None) -> int:
    """Return how many extension files of the project's own were looked at."""
    return len(own.finding.seen.extensions) if own and own.finding else 0


def findings(own: OwnBuild | None) -> tuple[Finding, ...]:
    """Return the project itself as one more package, where it has extension modules and was built."""
    return (own.finding,) if own and own.finding and own.finding.seen.extensions else ()


def steps(builds: Sequence[BuildEvaluation], extensions: OwnExtensions) -> Iterator[str]:
    """Yield what is to be written into the project's own extension modules, and what is to be built, by build."""
    for build in builds:
        yield from (f"{build.build.label}: {step}" for step in _steps(build.own, extensions))
    if places_ := unlocked(extensions):
        yield (f"{few(places_)}: guard the {counted(len(places_), 'write')} to fields, as --explain "
               "extensions says of each, or say in a comment there why it may be (race: ok WHY): threads that share "
               "one may crash")


def _steps(own: OwnBuild | None, extensions: OwnExtensions) -> Iterator[str]:
    if own is None:
        return
    if places_ := _limited(own, extensions):
        yield (f"{few(places_)}: leave the limited API out on builds without a GIL before 3.15, which have "
               "none and load no abi3 module: where sysconfig.get_config_var('Py_GIL_DISABLED') is 1")
        return
    if own.failure:
        yield "have the project itself built: pip install . says the same, with all that the compiler says"
        return
    if own.unbuilt:
        names = few([each.name for each in own.unbuilt])
        told = next((each.why for each in own.unbuilt if each.why), "")
        yield f"have {names} built{f' ({told})' if told else ''}: pip install -v . shows what its build does"
    if own.finding is not None:
        for name in gil_users(own.finding.seen):
            yield declare(own.finding, name, extensions)


def places(own: OwnBuild | None, extensions: OwnExtensions) -> list[str]:
    """Return "file:line" of what is to be looked at or written: where compiling stops, what turns the GIL on."""
    if own is None:
        return []
    stops = [f"{match[1]}:{match[2]}" for each in own.unbuilt
             if (match := _STOPS.match(each.why)) and not match[1].startswith(("/", "site-packages/"))]
    stops += _limited(own, extensions)
    if own.finding is None or not (users := gil_users(own.finding.seen)):
        return stops
    declared = [place_of(extensions, source) for name in users if (source := source_of(extensions, name))]
    return [*stops, *declared, *places_of(extensions)]


def places_of(extensions: OwnExtensions) -> list[str]:
    """Return "file:line" of what porting must look at in the project's own sources."""
    return list(dict.fromkeys(f"{each.file}:{remark.line}" for each in extensions.sources for remark in each.remarks))


def _limited(own: OwnBuild, extensions: OwnExtensions) -> tuple[str, ...]:
    """Return where the limited API is asked for, where modules are missing for it: its build says so, or nothing."""
    lacks = [own.failure] * bool(own.failure and own.elsewhere) + [each.why for each in own.unbuilt if each.elsewhere]
    told = any(not why or re.search("limited.api|abi3", f"{why} {own.output}", re.IGNORECASE) for why in lacks)
    return extensions.limited if told else ()


def declare(finding: Finding, name: str, extensions: OwnExtensions) -> str:
    """Return what is to be written for the module `name`, and where, once it was made safe."""
    found = next((each for each in finding.seen.extensions if each.name == name), None)
    source = source_of(extensions, name)
    binding = source.binding if source else binding_of_module(extensions, name)
    how = how_to_declare(binding, single_phase=found is not None and found.init == "single-phase")
    place = f"{place_of(extensions, source)}: " if source else ""
    count = len(places_of(extensions))
    first = (f", after a look at the {counted(count, 'place')} that --explain extensions lists" if count else
             ", once it is safe to be called by several threads")
    if how.startswith(BY_ITSELF):
        return f"{place}{how.removeprefix(BY_ITSELF)}; {name} ({binding}) then declares that it does without the GIL"
    return f"{place}declare that {name} does without the GIL{first}: {how}"
