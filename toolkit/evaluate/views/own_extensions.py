"""Everything known of the project's own extension modules: every place that porting must look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.facts import PlanStep, Topic
from gilscope.toolkit.evaluate.probes.own_extensions import built
from gilscope.toolkit.evaluate.project.extensions.source_text import NO_REASON, RISKY_CALLS
from gilscope.toolkit.report.document import Column, Entry, Heading, Lines, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.evaluation import Evaluation
    from gilscope.toolkit.evaluate.project.extensions.own_extensions import (
        ExtensionModule,
        ExtensionSource,
        OwnBuild,
        OwnExtensions,
    )
    from gilscope.toolkit.report.document import Section

GUIDE = ("borrowed references are a danger where another thread can change the container meanwhile; keyword arguments "
         "and what a function has just made are nobody else's")


def explained(found: Evaluation, name: str) -> Iterator[Section]:
    """Yield everything known of the project's own extension modules, or of those and their sources called `name`."""
    own = found.extensions
    everything = name == PlanStep.EXTENSIONS.key
    modules = [each for each in own.modules if everything or name in _names(each)]
    sources = [each for each in own.sources if everything or name in {each.file, each.file.rpartition("/")[2]}
               or any(each.file in module.sources for module in modules)]
    if everything:
        builds = builds_of(found)
        if modules or builds or own.unsure:
            yield Heading(f"{found.project.name}: {Topic.EXTENSIONS[0].lower()}{Topic.EXTENSIONS[1:]}")
        yield from _lines("On each build", (f"{each.build}: {'; '.join(built(each)) or 'nothing'}" for each in builds))
        for each in builds:
            yield from _lines(f"The end of what its build said on {each.build}", each.output.splitlines())
        yield from _lines("What may make more", own.unsure)
    if modules:
        yield Lines("Named by its build", tuple(map(_module, modules)))
    for source in sources:
        yield from _places(source)
    yield from _lines("What to do about them", _remedies(sources))
    yield from _lines("", _reading(own, sources))
    if any(remark.concern == "borrowed reference" for each in sources for remark in each.remarks):
        yield Lines("", (GUIDE,))
    if everything and own.left_out:
        yield Lines("", (f"{own.left_out} more sources were not read",))


def builds_of(found: Evaluation) -> list[OwnBuild]:
    """Return the results of building the project itself, on each build."""
    return [found.own[build.label] for build in found.all_builds if build.label in found.own]


def _names(module: ExtensionModule) -> set[str]:
    return {module.name, module.name.rpartition(".")[2], *module.sources} - {""}


def _module(module: ExtensionModule) -> str:
    parts = [f"{module.binding.value}, {module.backend}", f"{module.file}:{module.line}"]
    if module.optional:
        parts.append("optional: the build goes on without it")
    if condition := module.condition or module.question:
        parts.append(f"only where {condition}")
    if module.sources:
        parts.append(f"sources: {', '.join(module.sources)}")
    return f"{module.name or 'its name is computed'}: {'; '.join(parts)}"


def _places(source: ExtensionSource) -> Iterator[Section]:
    said = "it declares to do without the GIL" if source.declared else "it does not declare to do without the GIL"
    lines = []
    if source.defines:
        lines.append(f"line {source.line}: {said}" + ("" if source.declared or not source.declare
                                                      else f"; to write: {source.declare}"))
    if lines or source.remarks:
        yield Heading(f"{source.file} ({source.language}, {source.binding.value})")
    yield from _lines("", lines)
    lined: dict[tuple[str, str], list[str]] = {}
    for each in source.remarks:
        lined.setdefault((each.concern, each.what), []).append(str(each.line))
    if lined:
        columns = (Column(title="lines", key=True, align="left"), Column(title="kind", align="left"),
                   Column(title="what", align="left"))
        rows = tuple((Entry(", ".join(dict.fromkeys(lines))), Entry(concern), Entry(what))
                     for (concern, what), lines in lined.items())
        yield Table(title="", columns=columns, rows=rows)


def _remedies(sources: Iterable[ExtensionSource]) -> Iterator[str]:
    """Yield what to do about each kind of place, each sentence once."""
    remarks = [(source, each) for source in sources for each in source.remarks if each.instead]
    said: dict[str, None] = {}
    for source, each in remarks:
        # A comment without a reason concerns its line alone.
        where = f"{source.file}:{each.line}: " if each.instead.endswith(NO_REASON) else ""
        name = f" ({each.what})" if each.what in RISKY_CALLS else ""
        said[f"{where}{each.concern}{name}: {each.instead}"] = None
    yield from said


def _reading(own: OwnExtensions, sources: Sequence[ExtensionSource]) -> Iterator[str]:
    """Yield how the C code was read, and which files are copies of others' projects."""
    if any(each.language in {"C", "C++"} and each.remarks for each in sources):
        yield (f"C code was read as the compiler of {own.read_for} sees it" if own.read_for else
               "all branches of #if in C code were read: no compiler and headers of a build say which count")
    if copies := [each.file for each in sources if each.vendored and each.remarks]:
        yield f"copies of other projects' files, to be mended there: {', '.join(copies)}"


def _lines(title: str, texts: Iterable[str]) -> list[Section]:
    items = tuple(texts)
    return [Lines(title, items)] if items else []
