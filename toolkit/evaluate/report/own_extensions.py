"""The project's own extension modules as lines: in short on the screen, and every place that porting must look at."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.judge.modules import gil_users
from gilscope.toolkit.evaluate.packages.judge.status import InterpreterStatus
from gilscope.toolkit.evaluate.project.extensions.how_to_declare import BY_ITSELF
from gilscope.toolkit.evaluate.verdict.own_extensions import places_of
from gilscope.toolkit.report.document import Column, Entry, Heading, Lines, Table
from gilscope.toolkit.units import few

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.project.extensions.facts import Module, OwnBuild, OwnExtensions, Source
    from gilscope.toolkit.report.document import Section

TITLE = "Its own extension modules"
ALL = "extensions"     # the name under which --explain shows all of it
MOST_SOURCES = 4
GUIDE = ("borrowed references are a danger where another thread can change the container meanwhile; keyword arguments "
         "and what a function has just made are nobody else's")
_PLURAL = {"state": "variables that threads share", "module state": "uses of module state",
           "borrowed reference": "borrowed references", "no lock": "accesses without a lock",
           "unlocked write": "writes to fields without a lock",
           "allocation": "allocations", "interface": "uses of the limited API"}
_SINGULAR = {"state": "variable that threads share", "module state": "use of module state",
             "borrowed reference": "borrowed reference", "no lock": "access without a lock",
             "unlocked write": "write to a field without a lock",
             "allocation": "allocation", "interface": "use of the limited API"}
_DOES = {InterpreterStatus.FAILS: "cannot be imported"}


def lines(found: Evaluation) -> Iterator[str]:
    """Yield what the project's own extension modules do on each build, and what their sources ask for, in short."""
    own = found.extensions
    if not own.any and not any(each.own for each in found.builds):
        return
    yield from _named(own)
    for build in found.builds:
        if build.own is not None:
            yield f"{build.build.label}: {'; '.join(_built(build.own))}"
    told = [each for each in own.sources if each.remarks or (each.defines and each.declare
                                                             and not each.declare.startswith(BY_ITSELF))]
    worst = sorted(told, key=lambda each: (-len(each.remarks), each.file))
    yield from (_source(each) for each in worst[:MOST_SOURCES])
    if places_of(own) or len(worst) > MOST_SOURCES:
        more = f"{len(worst) - MOST_SOURCES} more sources; " if len(worst) > MOST_SOURCES else ""
        yield f"{more}--explain {ALL} lists every place, with what stands in for it"


def _named(own: OwnExtensions) -> Iterator[str]:
    names = [each.name or each.place for each in own.modules]
    if names:
        kinds = sorted({f"{each.binding.value}, {each.backend}" for each in own.modules})
        optional = [each.name for each in own.modules if each.optional and each.name]
        without = f"; the build goes on without {few(optional)}" if optional else ""
        yield f"named by its build: {few(names)} ({'; '.join(kinds)}){without}"
    yield from own.unsure


def _built(own: OwnBuild) -> Iterator[str]:
    if own.failure:
        yield f"not built: {own.failure}"
    for each in own.unbuilt:
        yield f"{each.name} was not built{f': {each.why}' if each.why else ''}"
    if own.finding is None or own.report is None:
        return
    files, users = own.finding.seen.extensions, gil_users(own.finding.seen)
    inside = own.finding.interpreters
    free_threaded = own.report.build.free_threaded
    if files and not free_threaded and inside not in {InterpreterStatus.OK, InterpreterStatus.UNKNOWN}:
        yield f"in interpreters with a GIL of their own it {_DOES.get(inside, inside.value)}"
    if users:
        yield f"{few([*users])} turn{'s' * (len(users) == 1)} the GIL on"
    fine = [each.name for each in files if each.gil == "not-used" and each.name not in users]
    if fine:
        yield f"{few(fine)} declare{'s' * (len(fine) == 1)} to do without it"
    if not files:
        yield "it was installed without any"


def _source(source: Source) -> str:
    parts = [f"{count} {(_SINGULAR if count == 1 else _PLURAL)[concern]}"
             for concern, count in Counter(concern for concern, _ in dict.fromkeys(
                 (each.concern, each.line) for each in source.remarks)).items()]
    if source.defines:
        parts.insert(0, "declares to do without the GIL" if source.declared else "declares nothing")
    first = [str(line) for line in dict.fromkeys(each.line for each in source.remarks)]
    at = f" (line {few(first)})" if first else ""
    return f"{source.file}: {', '.join(parts)}{at}"


def explained(found: Evaluation, name: str) -> Iterator[Section]:
    """Yield everything known of the project's own extension modules, or of those and their sources called `name`."""
    own = found.extensions
    everything = name == ALL
    modules = [each for each in own.modules if everything or name in _names(each)]
    sources = [each for each in own.sources if everything or name in {each.file, each.file.rpartition("/")[2]}
               or any(each.file in module.sources for module in modules)]
    if everything:
        builds = builds_of(found)
        if modules or builds or own.unsure:
            yield Heading(f"{found.project.name}: {TITLE[0].lower()}{TITLE[1:]}")
        yield from _lines("On each build", (f"{each.build}: {'; '.join(_built(each)) or 'nothing'}" for each in builds))
        for each in builds:
            yield from _lines(f"The end of what its build said on {each.build}", each.output.splitlines())
        yield from _lines("What may make more", own.unsure)
    if modules:
        yield Lines("Named by its build", tuple(map(_module, modules)))
    for source in sources:
        yield from _places(source)
    if any(remark.concern == "borrowed reference" for each in sources for remark in each.remarks):
        yield Lines("", (GUIDE,))
    if everything and own.left_out:
        yield Lines("", (f"{own.left_out} more sources were not read",))


def builds_of(found: Evaluation) -> list[OwnBuild]:
    """Return what came of building the project itself, on each build."""
    return [own for own in (*(each.own for each in found.builds), *(each.own for each in found.interpreters)) if own]


def _names(module: Module) -> set[str]:
    return {module.name, module.name.rpartition(".")[2], *module.sources} - {""}


def _module(module: Module) -> str:
    parts = [f"{module.binding.value}, {module.backend}", f"{module.file}:{module.line}"]
    parts += ["optional: the build goes on without it"] * module.optional
    parts += [f"only where {module.condition or module.question}"] * bool(module.condition or module.question)
    parts += [f"sources: {', '.join(module.sources)}"] * bool(module.sources)
    return f"{module.name or 'its name is computed'}: {'; '.join(parts)}"


def _places(source: Source) -> Iterator[Section]:
    said = "it declares to do without the GIL" if source.declared else "it does not declare to do without the GIL"
    lines = []
    if source.defines:
        lines.append(f"line {source.line}: {said}" + ("" if source.declared or not source.declare
                                                      else f"; to write: {source.declare}"))
    if lines or source.remarks:
        yield Heading(f"{source.file} ({source.language}, {source.binding.value})")
    yield from _lines("", lines)
    if source.remarks:
        columns = (Column(title="line", key=True), Column(title="kind", align="left"),
                   Column(title="what", align="left"), Column(title="instead", align="left"))
        rows = tuple((Entry(str(each.line)), Entry(each.concern), Entry(each.what), Entry(each.instead))
                     for each in source.remarks)
        yield Table(title="", columns=columns, rows=rows)


def _lines(title: str, texts: Iterable[str]) -> list[Section]:
    items = tuple(texts)
    return [Lines(title, items)] if items else []
