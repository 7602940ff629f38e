"""Findings about a set of wheels: the codes of all, and the rules for those that need no run.  Pure.

The rules compare tags with the suffixes of files, metadata, and what is there with what is not.  They hold for every
platform, those of other machines, too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from gilscope.toolkit.evaluate.facts import Effect
from gilscope.toolkit.evaluate.packages.judge import comparable
from gilscope.toolkit.evaluate.wheel_tags import (
    EVERY_VERSION,
    BuildKind,
    installing,
    labels,
    other_platform,
    platform_families,
)
from gilscope.toolkit.evaluate.wheels.files import Layout, WheelFile
from gilscope.toolkit.units import few, inflect

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.evaluate.packages.evidence import Status
    from gilscope.toolkit.evaluate.wheels.files import Distributable, ExtensionFile


class WheelCode(StrEnum):
    """The code of a finding; `code_of_import` gives those that follow from a package's state."""

    # read from the files
    FILE_FOR_ANOTHER_BUILD = "wheel.file-for-another-build"
    FILE_FOR_ANOTHER_PLATFORM = "wheel.file-for-another-platform"
    TAG_TOO_WIDE = "wheel.tag-too-wide"
    EXTENSION_IN_PURE_WHEEL = "wheel.extension-in-pure-wheel"
    ABI3_WITHOUT_GIL = "wheel.abi3-file-without-gil"
    UNTAGGED_FILE = "wheel.untagged-file"
    COMPILED_FOR_ANOTHER_BUILD = "wheel.compiled-for-another-build"
    OTHER_TAGS_INSIDE = "wheel.other-tags-inside"
    NO_KNOWN_BUILD = "wheel.no-known-build"
    METADATA_DIFFERS = "metadata.differs"
    CLASSIFIER_CONTRADICTED = "metadata.classifier-contradicted"
    CLASSIFIER_ABSENT = "metadata.classifier-absent"
    # what is not in the set
    NO_WHEEL = "missing.wheel"
    SDIST_ONLY = "missing.wheel-but-sdist"
    PLATFORM = "missing.platform"
    C_CODE = "missing.c-code"
    TWIN = "missing.twin"
    # found by installing and importing
    NOT_INSTALLED = "import.not-installed"
    DEPENDENCY = "import.dependency-blocks"
    NOT_RUN = "import.not-run"
    NO_SUBINTERPRETERS = "import.no-subinterpreters"


def code_of_import(status: Status) -> str:
    """Return the code of the finding that the project has this state on a build: "import.turns-gil-on"."""
    return WheelCode.NOT_INSTALLED if status.not_installed else f"import.{status}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFinding:
    """One thing that was found about a set of wheels."""

    code: str
    effect: Effect                  # BLOCKS, UNKNOWN, CAUTION or NOTE
    text: str                       # written once, read by people alone
    builds: tuple[str, ...] = ()    # labels; () for all
    wheel: str = ""                 # file name; "" for the set
    files: tuple[str, ...] = ()     # inside the wheel
    package: str = ""               # the dependency that it is about

    @property
    def is_missing(self) -> bool:
        """True if it is about something that is not there."""
        return self.code.startswith("missing.")

    @property
    def blocks(self) -> bool:
        """True if it keeps users of a build from running the project there without the GIL."""
        return self.effect is Effect.BLOCKS


def python_allowed(requires_python: str, kind: BuildKind, patch: int | None = None) -> bool:
    """Return True if a Requires-Python admits a kind of build; without a patch number, if it admits any of them."""
    try:
        allowed = SpecifierSet(requires_python)
    except InvalidSpecifier:
        return True   # installers warn of it
    patches = range(100) if patch is None else [patch]
    return any(allowed.contains(f"3.{kind.minor}.{each}") for each in patches)


def installed_on(wheel: WheelFile) -> frozenset[BuildKind]:
    """Return the kinds of build that an installer gives a wheel to, on the wheel's platforms."""
    return frozenset(kind for kind in installing(wheel.tags)
                     if python_allowed(wheel.metadata.requires_python, kind))


def wheel_findings(wheel: WheelFile) -> Iterator[WheelFinding]:
    """Yield the defects of one wheel."""
    kinds = installed_on(wheel)
    if not kinds and all(tag.interpreter.startswith("cp") for tag in wheel.tags):
        yield WheelFinding(code=WheelCode.NO_KNOWN_BUILD, effect=Effect.CAUTION, wheel=wheel.path.name,
                           text=f"no build from {EVERY_VERSION} installs it, by its tag and its Requires-Python")
    if wheel.written_tags != wheel.tags:
        told = few(sorted(map(str, wheel.written_tags))) or "no tag"
        yield WheelFinding(code=WheelCode.OTHER_TAGS_INSIDE, effect=Effect.CAUTION, wheel=wheel.path.name,
                           text=f"its WHEEL says {told}, its file name something else; `wheel tags` changes both")
    if wheel.any_platform and wheel.extensions:
        files = tuple(each.path for each in wheel.extensions)
        yield WheelFinding(
            code=WheelCode.EXTENSION_IN_PURE_WHEEL, effect=Effect.BLOCKS, wheel=wheel.path.name, files=files,
            text=f"every platform installs it, and it has {_files(files)} ({_suffixes(wheel.extensions)}), which only "
                 "some builds of one platform load: the others have no C code")
        return
    yield from _suffix_findings(wheel, kinds)
    yield from _layout_findings(wheel, kinds)


def _suffix_findings(wheel: WheelFile, kinds: frozenset[BuildKind]) -> Iterator[WheelFinding]:
    """Yield a finding for each build that the tag promises and that does not load the files."""
    by_module: dict[str, list[ExtensionFile]] = defaultdict(list)
    for each in wheel.extensions:
        by_module[each.module].append(each)
    groups: dict[tuple[WheelCode, tuple[BuildKind, ...]], list[ExtensionFile]] = defaultdict(list)
    for files in by_module.values():
        here = [each for each in files if not other_platform(each.suffix, wheel.platforms)]
        if files and not here:
            groups[WheelCode.FILE_FOR_ANOTHER_PLATFORM, ()] += files
            continue
        for code, lacking in _mismatches(here, kinds, wheel):
            groups[code, tuple(sorted(lacking))] += files
    for (code, builds), found in groups.items():
        yield _mismatch(wheel, code, builds, found)


def _mismatches(
    files: Sequence[ExtensionFile], kinds: frozenset[BuildKind], wheel: WheelFile
) -> Iterator[tuple[WheelCode, set[BuildKind]]]:
    """Yield the defects of one module's files, with the builds that the tag promises and they do not suit."""
    without = {kind for kind in kinds if not any(each.suffix.loads(kind) for each in files)}
    # The suffix of the build itself comes first; abi3 is loaded only if there is no such file.
    wrongly = {kind for kind in kinds - without if not any(each.suffix.suits(kind) for each in files)}
    if wrongly:
        yield WheelCode.ABI3_WITHOUT_GIL, wrongly
    if without and without == set(kinds):
        yield WheelCode.FILE_FOR_ANOTHER_BUILD, without
    elif without:
        yield WheelCode.TAG_TOO_WIDE, without
    if len(kinds) > 1 and all(tag.abi == "none" for tag in wheel.tags) and not all(
            each.suffix.tagged for each in files):
        yield WheelCode.UNTAGGED_FILE, set()


def _mismatch(
    wheel: WheelFile, code: WheelCode, lacking: Sequence[BuildKind], found: Sequence[ExtensionFile]
) -> WheelFinding:
    files = tuple(dict.fromkeys(each.path for each in found))
    it = inflect(len(files), "it", "them")
    told = f"{_files(files)} ({_suffixes(found)})"
    effect = Effect.BLOCKS
    if code is WheelCode.ABI3_WITHOUT_GIL and all(each.layout is Layout.FREE_THREADED for each in found):
        effect = Effect.CAUTION
        text = (f"{told}: compiled for builds without the GIL and named as if for those with it, which would crash if "
                f"they found {it}")
    elif code is WheelCode.ABI3_WITHOUT_GIL:
        text = (f"{told}: {labels(lacking)} installs it and loads {it}, but abi3 is for builds with the GIL, where "
                "objects have another layout")
    elif code is WheelCode.FILE_FOR_ANOTHER_BUILD:
        text = f"{told}: the tag {wheel.abis} is for {labels(lacking)}, where Python does not look for {it}"
    elif code is WheelCode.FILE_FOR_ANOTHER_PLATFORM:
        text = f"{told}: the suffix names another platform than the tag, and Python there does not look for {it}"
    elif code is WheelCode.TAG_TOO_WIDE:
        text = f"{told}: the tag {wheel.abis} also promises {labels(lacking)}, where Python does not look for {it}"
    else:
        effect = Effect.CAUTION
        text = f"{told}: every build that installs the wheel loads {it}, whatever build {it} {_was(files)} compiled for"
    return WheelFinding(code=code, effect=effect, wheel=wheel.path.name, files=files, text=text,
                        builds=tuple(each.label for each in lacking))


def _was(files: Sequence[str]) -> str:
    return inflect(len(files), "was", "were")


def _layout_findings(wheel: WheelFile, kinds: Collection[BuildKind]) -> Iterator[WheelFinding]:
    """Yield files that are named for one kind of build and compiled for the other."""
    wrong: dict[bool, list[ExtensionFile]] = {True: [], False: []}
    for each in wheel.extensions:
        if each.layout is Layout.UNKNOWN or each.suffix.foreign or other_platform(each.suffix, wheel.platforms):
            continue
        loaded_by = {kind.free_threaded for kind in kinds if each.suffix.suits(kind)}
        if len(loaded_by) == 1 and loaded_by != {each.layout is Layout.FREE_THREADED}:
            wrong[loaded_by.pop()].append(each)
    for free_threaded, found in wrong.items():
        files = tuple(each.path for each in found)
        if files:
            against, named = ("with", "without") if free_threaded else ("without", "with")
            yield WheelFinding(
                code=WheelCode.COMPILED_FOR_ANOTHER_BUILD, effect=Effect.BLOCKS, wheel=wheel.path.name, files=files,
                text=f"{_files(files)} ({_suffixes(found)}) {_was(files)} compiled for a build {against} the GIL, as "
                     f"the functions of Python that {inflect(len(files), 'it calls', 'they call')} show, and builds "
                     f"{named} it load {inflect(len(files), 'it', 'them')}")


def _files(files: Sequence[str]) -> str:
    return few(files)


def _suffixes(found: Iterable[ExtensionFile]) -> str:
    return ", ".join(sorted({each.suffix.words for each in found}))


def set_findings(
    files: Sequence[Distributable], kinds: Collection[BuildKind], run: Mapping[BuildKind, frozenset[str]]
) -> Iterator[WheelFinding]:
    """Yield contradictions between the files of a set, and gaps on platforms that cannot be tried here.

    Args:
        files: The set.
        kinds: The free-threaded builds that are asked for.
        run: For those of them whose wheel is run here, beside that of the twin: the platforms of the wheel, where
            imports tell what C code is lost.
    """
    wheels = [each for each in files if isinstance(each, WheelFile)]
    yield from _metadata_differs(files)
    if wheels and kinds and not any(kind.free_threaded for wheel in wheels for kind in installed_on(wheel)):
        return   # said for each build
    for kind in sorted(kinds):
        yield from _platforms_without(wheels, kind)
        yield from _lost_c_code(wheels, kind, run.get(kind, frozenset()))


def _metadata_differs(files: Sequence[Distributable]) -> Iterator[WheelFinding]:
    """Yield fields that are not the same in all files, although some installers read only one of them."""
    values: dict[str, dict[str, list[WheelFile]]] = defaultdict(lambda: defaultdict(list))
    for each in files:
        if isinstance(each, WheelFile):
            said = each.metadata
            values["Requires-Dist"]["\n".join(sorted(map(_requirement, said.requires)))].append(each)
            values["Requires-Python"][_versions(said.requires_python)].append(each)
            values["the classifier Free Threading"][str(said.free_threading)].append(each)
    for name, by_value in values.items():
        if len(by_value) > 1:
            other = min(by_value.values(), key=len)
            yield WheelFinding(code=WheelCode.METADATA_DIFFERS, effect=Effect.CAUTION, wheel=other[0].path.name,
                               text=f"{name} is not the same in all wheels: {few([each.abis for each in other])} "
                                    f"{inflect(len(other), 'differs', 'differ')}; uv and locks read one wheel for all")


def _requirement(text: str) -> str:
    """Return a requirement in the one spelling of all that mean the same; build back ends write them differently."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return text
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


def _versions(text: str) -> str:
    """Return a version specifier in the one spelling of all that mean the same."""
    try:
        return str(SpecifierSet(text))
    except InvalidSpecifier:
        return text


def _by_kind(wheels: Iterable[WheelFile], kind: BuildKind) -> list[WheelFile]:
    return [each for each in wheels if kind in installed_on(each)]


def _platforms_without(wheels: Sequence[WheelFile], kind: BuildKind) -> Iterator[WheelFinding]:
    """Yield the platforms with a wheel for the build with the GIL, and none for the free-threaded one."""
    here, there = _by_kind(wheels, kind), _by_kind(wheels, kind.twin)
    lacking = _families(there) - _families(here)
    if not _families(here) or not lacking:
        return   # it has none at all, or only the pure one: said elsewhere
    pure = any(each.any_platform for each in here)
    yield WheelFinding(code=WheelCode.PLATFORM, effect=Effect.CAUTION, builds=(kind.label,),
                       text=f"no wheel for {kind.label} on {few(sorted(lacking), 4)}, where {kind.twin.label} has one"
                            + ("; it gets the pure Python there" if pure else ""))


def _families(wheels: Iterable[WheelFile]) -> frozenset[str]:
    return frozenset(family for each in wheels for family in platform_families(each.platforms))


def _lost_c_code(
    wheels: Sequence[WheelFile], kind: BuildKind, tried: Collection[str]
) -> Iterator[WheelFinding]:
    """Yield C code that the wheels for the build with the GIL have and those for the free-threaded one lack."""
    here, there = _by_kind(wheels, kind), _by_kind(wheels, kind.twin)
    pure, compiled = [each for each in here if not each.has_c_code], [each for each in there if each.has_c_code]
    if pure and compiled and not any(each.has_c_code for each in here):
        yield WheelFinding(
            code=WheelCode.C_CODE, effect=Effect.BLOCKS, builds=(kind.label,), wheel=pure[0].path.name,
            text=f"{kind.label} gets {pure[0].path.name}, which is pure Python, and {kind.twin.label} gets C code")
        return
    lost: dict[str, list[str]] = defaultdict(list)
    found = _modules(here)
    for family, names in _modules(there).items():
        if family in found and family not in tried:
            for name in sorted(names - found[family]):
                lost[name].append(family)
    if lost:
        where = sorted({each for families in lost.values() for each in families})
        yield WheelFinding(
            code=WheelCode.C_CODE, effect=Effect.CAUTION, builds=(kind.label,), files=tuple(lost),
            text=f"the wheels for {kind.label} lack {few([*lost])}, which those for {kind.twin.label} have, on "
                 f"{few(where, 2)}; they were read, not run")


def _modules(wheels: Iterable[WheelFile]) -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for each in wheels:
        for family in platform_families(each.platforms):
            found[family] |= {comparable(extension.module) for extension in each.extensions}
    return found
