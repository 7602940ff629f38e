"""Facts about the project's own extension modules: what their builds made, what they declare, what nothing watches."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import FREE_THREADING, Codes, Effect, Fact, Kind, PlanStep, Topic
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus, Status
from gilscope.toolkit.evaluate.packages.judge import gil_users
from gilscope.toolkit.evaluate.packages.wording import judged
from gilscope.toolkit.evaluate.project.extensions.own_extensions import (
    Binding,
    binding_of_module,
    how_to_declare,
    place_of,
    source_of,
)
from gilscope.toolkit.evaluate.readings import build_failure_text, lost_too_much, unbuilt_text, unread_texts
from gilscope.toolkit.evaluate.sections import Cause, Missing, Place, cause_of
from gilscope.toolkit.units import counted, few, inflect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.packages.doctor import Finding
    from gilscope.toolkit.evaluate.project.extensions.own_extensions import (
        Concern,
        ExtensionSource,
        OwnBuild,
        OwnExtensions,
        Remark,
        UnbuiltModule,
    )

MOST_SOURCES = 4
_PLURAL: dict[Concern, str] = {"state": "variables that threads share", "lazy cache": "caches filled when first used",
           "module state": "uses of module state",
           "borrowed reference": "borrowed references", "no lock": "accesses without a lock",
           "unlocked write": "writes to fields without a lock",
           "allocation": "allocations", "interface": "uses of the limited API", "not read": "source not read"}
_SINGULAR: dict[Concern, str] = {"state": "variable that threads share", "lazy cache": "cache filled when first used",
             "module state": "use of module state",
             "borrowed reference": "borrowed reference", "no lock": "access without a lock",
             "unlocked write": "write to a field without a lock",
             "allocation": "allocation", "interface": "use of the limited API", "not read": "source not read"}
CODES = Codes({
    "extensions.cannot-be-built-here": Kind(Effect.BLOCKS, step=PlanStep.EXTENSIONS),
    "extensions.do-not-run": Kind(Effect.BLOCKS, step=PlanStep.EXTENSIONS),
    "extensions.turn-gil-on": Kind(Effect.BLOCKS, step=PlanStep.EXTENSIONS),
    "extension.not-built": Kind(Effect.UNKNOWN, step=PlanStep.EXTENSIONS),
    "extensions.not-built": Kind(Effect.UNKNOWN, step=PlanStep.EXTENSIONS),
    "extensions.not-read": Kind(Effect.UNKNOWN, step=PlanStep.EXTENSIONS, state="not known"),
    "extensions.unguarded": Kind(Effect.UNKNOWN, step=PlanStep.EXTENSIONS, state="open"),
    "extensions.unknown": Kind(Effect.UNKNOWN, step=PlanStep.EXTENSIONS),
    "extension.only-elsewhere": Kind(Effect.COSTS, step=PlanStep.EXTENSIONS),
    "extensions.lose-c-code": Kind(Effect.COSTS, step=PlanStep.EXTENSIONS),
    "extensions.not-watched": Kind(Effect.NOT_LOOKED_AT),
    "extension.declare": Kind(Effect.NOTE),
    "extension.source": Kind(Effect.NOTE, heading=Topic.EXTENSIONS),
    "extensions.more": Kind(Effect.NOTE, heading=Topic.EXTENSIONS),
    "extensions.named": Kind(Effect.NOTE, heading=Topic.EXTENSIONS),
    "extensions.none": Kind(Effect.NOTE, step=PlanStep.EXTENSIONS, state="not needed"),
    "extensions.not-looked-at": Kind(Effect.NOTE, step=PlanStep.EXTENSIONS, state="not known"),
    "extensions.read": Kind(Effect.NOTE),
    "extensions.reading-cut": Kind(Effect.NOTE),
    "extensions.ready": Kind(Effect.NOTE, step=PlanStep.EXTENSIONS, state="done"),
    "extensions.result": Kind(Effect.NOTE, heading=Topic.EXTENSIONS),
    "extensions.unsure": Kind(Effect.NOTE, heading=Topic.EXTENSIONS),
})
fact = CODES.fact


def facts(found: Evaluation) -> Iterator[Fact]:
    """Yield the behaviour of the project's own extension modules on each build, and remarks on their sources."""
    yield from _named(found)
    for label in found.labels:
        yield from _build(found, label)
    yield from _sources(found)
    yield from _unguarded(found.extensions)
    # Next steps have this order: what declares that it is safe before it is made safe loses what the GIL still gives.
    for label in found.labels:
        yield from _declarations(found, label)
    yield from _unread(found.extensions)
    for text in unread_texts(found.extensions):
        yield fact("extensions.not-watched", FREE_THREADING, text, subject="races")


def _build(found: Evaluation, label: str) -> Iterator[Fact]:
    own = found.own.get(label)
    if own is None:
        if found.extensions.any:
            yield fact("extensions.not-looked-at", label, "they were not built")
        return
    slower = lost_too_much(found, label)
    action = _build_action(own, found.extensions)
    places = tuple(_stops(own, found.extensions))
    if own.failure:
        yield _not_built(own, own.failure, label, action, places)
    for each in own.unbuilt:
        yield _unbuilt(each, label, action, places, slower)
    if own.finding is not None:
        yield from _judged(found, own, label, slower)
    yield fact("extensions.result", label, "; ".join(built(own)))


def _not_built(own: OwnBuild, failure: Missing, label: str, action: str, places: tuple[Place, ...]) -> Fact:
    """Return the fact that the project could not be built, which blocks if it can be built with the GIL."""
    if own.elsewhere:
        return fact("extensions.cannot-be-built-here", label,
                    "its own extension modules cannot be built here, and can on "
                    f"{own.elsewhere}: {failure.reason}", explain=PlanStep.EXTENSIONS.key, action=action, places=places,
                    missing=Missing(reason=failure.reason, cause=Cause.FAILED))
    tried = failure.cause is Cause.OTHER
    return fact("extensions.not-built", label, build_failure_text(failure), action=action,
                explain=PlanStep.EXTENSIONS.key if tried else "", missing=failure, places=places)


def _unbuilt(each: UnbuiltModule, label: str, action: str, places: tuple[Place, ...], slower: str) -> Fact:
    """Return the fact that one module was not built, which is a cost if it is built with the GIL."""
    if each.elsewhere:
        text = f"its own extension module {each.name} is not built here, and is on {each.elsewhere}"
        return fact("extension.only-elsewhere", label,
                    f"{text}{f': {each.why}' if each.why else ''}{f', and {slower}' if slower else ''}",
                    effect=Effect.BLOCKS if slower else Effect.COSTS, subject=each.name, action=action, places=places,
                    explain=PlanStep.EXTENSIONS.key if slower else "")
    return fact("extension.not-built", label, unbuilt_text(each), subject=each.name, action=action, places=places,
                explain=PlanStep.EXTENSIONS.key)


def _judged(found: Evaluation, own: OwnBuild, label: str, slower: str) -> Iterator[Fact]:
    """Yield the behaviour of the built files, and the declarations that they lack."""
    finding = own.finding
    assert finding is not None
    status, why = finding.verdict.status, "; ".join(finding.verdict.reasons[:1])
    users = gil_users(finding.seen)
    if status.unjudged:
        yield fact("extensions.unknown", label, f"its own extension modules {status.clause}", evidence=why)
    elif status is Status.LOST:
        lost = f"it loses C code of its own: {'; '.join(finding.verdict.reasons[:2])}"
        yield fact("extensions.lose-c-code", label, f"{lost}, and {slower}" if slower else lost,
                   effect=Effect.BLOCKS if slower else Effect.COSTS)
    elif status.blocks and users:
        names = list(users)
        verb, kind = inflect(len(names), "turns", "turn"), inflect(len(names), "extension module")
        yield fact("extensions.turn-gil-on", label,
                   f"its own {kind} {few(names)} {verb} the GIL on when imported: not declared to do without it",
                   explain=PlanStep.EXTENSIONS.key, evidence=f"seen by {users[names[0]]}",
                   mend=f"{few(names)} {inflect(len(names), 'does', 'do')} not declare to do without the GIL",
                   places=tuple(_to_declare(found.extensions, users)))
    elif status.blocks:
        yield fact("extensions.do-not-run", label, f"its own code, as it is built,{judged(status, why)}",
                   explain=PlanStep.EXTENSIONS.key, places=tuple(_to_declare(found.extensions, users)))
    if status.mends:
        files = len(finding.seen.extensions)
        yield fact("extensions.ready", label, f"{counted(files, 'file')} on {label}")


def _declarations(found: Evaluation, label: str) -> Iterator[Fact]:
    """Yield the declarations that modules of a build lack."""
    own = found.own.get(label)
    # A module that is missing because of the limited API, or was not built, has to be fixed first.
    if own is None or own.finding is None or _limited(own, found.extensions):
        return
    alike: dict[str, list[str]] = {}   # the modules that need the same declaration
    for name in gil_users(own.finding.seen):
        alike.setdefault(_declaration(own.finding, name, found.extensions), []).append(name)
    for how, names in alike.items():
        action = _declare(names, how, found.extensions)
        for name in names:
            yield fact("extension.declare", label, f"{name} turns the GIL on", subject=name, action=action)


def _to_declare(extensions: OwnExtensions, users: dict[str, str]) -> Iterator[Place]:
    """Yield the places where modules declare what they need, and those that porting must look at."""
    yield from (place_of(extensions, source) for name in users if (source := source_of(extensions, name)))
    for source in extensions.sources:
        if source.defines and not source.declared:
            yield place_of(extensions, source)
    yield from places_of(extensions)


def places_of(extensions: OwnExtensions) -> list[Place]:
    """Return the places in the project's own sources that porting must look at."""
    return list(dict.fromkeys(Place(file=each.file, line=remark.line)
                              for each in extensions.sources for remark in each.remarks))


def _build_action(own: OwnBuild, extensions: OwnExtensions) -> str:
    """Return the action that gets everything built, or ""."""
    if limited := _limited(own, extensions):
        return (f"{few([*map(str, limited)])}: leave the limited API out on builds without a GIL before 3.15, which "
                "have none and load no abi3 module: where sysconfig.get_config_var('Py_GIL_DISABLED') is 1")
    cause = cause_of(own.failure)
    if cause is Cause.OFFLINE:
        return "have the project itself built: evaluate it once without --offline"
    if cause is Cause.TIME:
        return ""
    if own.failure:
        return "have the project itself built: pip install . says the same, with all that the compiler says"
    if not own.unbuilt:
        return ""
    why = next((each.why for each in own.unbuilt if each.why), "")
    names = few([each.name for each in own.unbuilt])
    return f"have {names} built{f' ({why})' if why else ''}: pip install -v . shows what its build does"


def _stops(own: OwnBuild, extensions: OwnExtensions) -> Iterator[Place]:
    """Yield the places where compiling stops, and where the limited API is asked for."""
    yield from filter(None, (each.place for each in own.unbuilt))
    yield from _limited(own, extensions)


def _limited(own: OwnBuild, extensions: OwnExtensions) -> tuple[Place, ...]:
    """Return the places that request the limited API, if modules are missing because of it."""
    only_elsewhere = bool(own.failure and own.elsewhere) or any(each.elsewhere for each in own.unbuilt)
    silent = any(each.elsewhere and not each.why for each in own.unbuilt)
    return extensions.limited if silent or (only_elsewhere and own.names_limited_api) else ()


def _declaration(finding: Finding, name: str, extensions: OwnExtensions) -> str:
    """Return the form of the declaration for the module `name`."""
    found = next((each for each in finding.seen.extensions if each.name == name), None)
    source = source_of(extensions, name)
    binding = source.binding if source else binding_of_module(extensions, name)
    if source is not None and source.binding is Binding.CYTHON and source.declare:
        return source.declare   # says what has to be generated again
    return how_to_declare(binding, single_phase=found is not None and found.init == "single-phase")


def _declare(names: Sequence[str], how: str, extensions: OwnExtensions) -> str:
    """Return where to declare, once the modules are safe, that they do without the GIL, and how."""
    sources = [source_of(extensions, name) for name in names]
    places = [str(place_of(extensions, source)) for source in sources if source]
    at = f"{few(places)}: " if places else ""
    bindings = {source.binding if source else binding_of_module(extensions, name)
                for name, source in zip(names, sources, strict=True)}
    do = inflect(len(names), "does", "do")
    if all(binding.declared_by_build for binding in bindings):
        tools = ", ".join(sorted(binding.value for binding in bindings))
        declares = inflect(len(names), "declares that it does", "declare that they do")
        return f"{at}{how}; {few(names)} ({tools}) then {declares} without the GIL"
    count = len(places_of(extensions))
    safe = inflect(len(names), "it is", "they are")
    first = (f", after a look at the {counted(count, 'other place')} that --explain extensions lists" if count else
             f", once {safe} safe to be called by several threads")
    return f"{at}declare that {few(names)} {do} without the GIL{first}: {how}"


def _unguarded(extensions: OwnExtensions) -> Iterator[Fact]:
    """Yield a fact for each place of own compiled code that only the GIL is known to make safe.

    A declaration changes nothing about it, and no run shows that several threads do it no harm.
    """
    places = unguarded_places(extensions)
    if not places:
        return
    where, count = few([*map(str, places)]), counted(len(places), "place")
    yield fact("extensions.unguarded", FREE_THREADING,
               f"its own compiled code relies on the GIL at {count} ({where}), as far as its source shows "
               f"({_kinds(remark for source in extensions.sources for remark in source.remarks)}): whether "
               "several threads reach the same objects there is not known", places=places,
               explain=PlanStep.EXTENSIONS.key,
               action=f"{where}: {_make_safe(len(places))} is safe in a comment on its line (race: ok WHY): threads "
                      "that reach the same object may crash or give wrong results")


def _make_safe(count: int) -> str:
    if count == 1:
        return "make it safe without the GIL, as --explain extensions says, or give the reason why it"
    return (f"make the {count} places safe without the GIL, as --explain extensions says of each, or give the reason "
            "why one")


def _unread(extensions: OwnExtensions) -> Iterator[Fact]:
    """Yield that a source, or a function of it, was not read, so that nothing is known of it."""
    unread = [(source.file, f"{source.file}:{remark.line}" if remark.line > 1 else source.file, remark)
              for source in extensions.sources for remark in source.remarks if remark.concern == "not read"]
    alike: dict[str, list[str]] = {}   # the places that need the same
    for _, where, remark in unread:
        alike.setdefault(remark.instead, []).append(where)
    for file, where, remark in unread:
        yield fact("extensions.not-read", FREE_THREADING, f"{where} was not read: {remark.what}", subject=file,
                   action=f"{few(list(dict.fromkeys(alike[remark.instead])))}: {remark.instead}",
                   explain=PlanStep.EXTENSIONS.key)


def unguarded_places(extensions: OwnExtensions) -> tuple[Place, ...]:
    """Return the places in the project's own compiled code that only the GIL is known to make safe."""
    return tuple(dict.fromkeys(Place(file=source.file, line=remark.line) for source in extensions.sources
                               for remark in source.remarks if remark.unguarded))


def _kinds(remarks: Iterable[Remark]) -> str:
    """Return how many lines each kind of place has: "2 borrowed references, 1 write to a field without a lock"."""
    counts = Counter(concern for concern, _ in dict.fromkeys(
        (each.concern, each.line) for each in remarks if each.unguarded))
    return ", ".join(f"{count} {(_SINGULAR if count == 1 else _PLURAL)[concern]}" for concern, count in counts.items())


def _named(found: Evaluation) -> Iterator[Fact]:
    own = found.extensions
    if not own.any:
        yield fact("extensions.none", FREE_THREADING, "it has none")
    # A build may name one in several branches.
    if names := [*dict.fromkeys(each.name or each.stand_in for each in own.modules)]:
        kinds = sorted({each.backend if each.binding is Binding.UNKNOWN else f"{each.binding.value}, {each.backend}"
                        for each in own.modules})
        optional = [*dict.fromkeys(each.name for each in own.modules if each.optional and each.name)]
        without = f"; the build goes on without {few(optional)}" if optional else ""
        yield fact("extensions.named", FREE_THREADING,
                   f"named by its build: {few(names)} ({'; '.join(kinds)}){without}")
    for text in own.unsure:
        yield fact("extensions.unsure", FREE_THREADING, text)


def _sources(found: Evaluation) -> Iterator[Fact]:
    own = found.extensions
    if not own.any and not found.own:
        return
    told = [each for each in own.sources if each.remarks or (each.defines and each.declare
                                                             and not each.binding.declared_by_build)]
    # Copies of others' files come last: their owners mend them.
    worst = sorted(told, key=lambda each: (each.vendored, -len(each.remarks), each.file))
    for each in worst[:MOST_SOURCES]:
        yield fact("extension.source", FREE_THREADING, _source(each))
    if own.sources:
        yield fact("extensions.read", FREE_THREADING, f"{counted(len(own.sources), 'source')} read",
                   unread="; ".join(_not_read(own)))
    if own.cut:
        yield fact("extensions.reading-cut", FREE_THREADING, own.cut.reason,
                   unread=f"sources were not read: {own.cut.reason}")
    if places_of(own) or len(worst) > MOST_SOURCES:
        more = f"{len(worst) - MOST_SOURCES} more sources; " if len(worst) > MOST_SOURCES else ""
        yield fact("extensions.more", FREE_THREADING,
                   f"{more}--explain {PlanStep.EXTENSIONS.key} lists every place, with what "
                   "stands in for it")


def _not_read(own: OwnExtensions) -> Iterator[str]:
    if unread := [each.file for each in own.sources if any(remark.concern == "not read" for remark in each.remarks)]:
        yield f"not read, so not known: {few(unread)}"
    if own.left_out:
        yield f"{counted(own.left_out, 'more source')} not read, as there are too many"


def _source(source: ExtensionSource) -> str:
    parts = [f"{count} {(_SINGULAR if count == 1 else _PLURAL)[concern]}"
             for concern, count in Counter(concern for concern, _ in dict.fromkeys(
                 (each.concern, each.line) for each in source.remarks)).items()]
    if source.defines:
        parts.insert(0, "declares to do without the GIL" if source.declared else "declares nothing")
    first = [str(line) for line in dict.fromkeys(each.line for each in source.remarks)]
    at = f" ({inflect(len(first), 'line')} {few(first)})" if first else ""
    copy = " (a copy of another project's file)" if source.vendored else ""
    return f"{source.file}{copy}: {', '.join(parts)}{at}"


def built(own: OwnBuild) -> Iterator[str]:
    """Yield a short result of building the project on one build."""
    if own.failure:
        yield f"not built: {own.failure.reason}"
    for each in own.unbuilt:
        yield f"{each.name} was not built{f': {each.why}' if each.why else ''}"
    if own.finding is None or own.report is None:
        return
    files, users = own.finding.seen.extensions, gil_users(own.finding.seen)
    inside = own.finding.interpreters
    if files and not own.report.build.free_threaded and inside not in {InterpreterStatus.OK, InterpreterStatus.UNKNOWN}:
        yield f"in interpreters with a GIL of their own it {inside.clause}"
    if users:
        yield f"{few([*users])} {inflect(len(users), 'turns', 'turn')} the GIL on"
    fine = [each.name for each in files if each.gil == "not-used" and each.name not in users]
    if fine:
        yield f"{few(fine)} {inflect(len(fine), 'declares', 'declare')} to do without it"
    if not files:
        yield "it was installed without any"
