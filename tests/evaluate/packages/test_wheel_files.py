"""Wheels and sdists as they are read, without a compiler, a network or a build: names, tags, suffixes, metadata."""

import json
import subprocess
from dataclasses import replace

import pytest
from packaging.tags import Tag, parse_tag

from gilscope.toolkit.cli import main
from gilscope.toolkit.commands.doctor.wheels import is_file
from gilscope.toolkit.evaluate.wheel_tags import (
    BuildKind,
    installing,
    labels,
    other_platform,
    platform_families,
    suffix_of,
)
from gilscope.toolkit.evaluate.wheels.choice import WhyNoWheel, choose
from gilscope.toolkit.evaluate.wheels.examine import grouped
from gilscope.toolkit.evaluate.wheels.files import (
    FileProblem,
    Layout,
    SourceFile,
    UnusableFile,
    WheelFile,
    layout_of,
    read,
    read_all,
)
from gilscope.toolkit.evaluate.wheels.rules import set_findings, wheel_findings
from tests.conformance.builds import host
from tests.evaluate.planted_wheels import FREE_BYTES, GIL_BYTES, WheelKit


@pytest.fixture
def kit(tmp_path):
    """Write wheels whose files have names and no code."""
    return WheelKit(tmp_path, "14", {"314": b"PyInit_c\0", "314t": b"PyInit_c\0"})


def build(label):
    base = host()
    return replace(base, label=label, version=f"{label.rstrip('t')}.2", free_threaded=label.endswith("t"))


@pytest.mark.parametrize(("tag", "builds"), [
    ("cp314-cp314-win32", "3.14"), ("cp314-cp314t-win32", "3.14t"), ("cp312-abi3-win32", "3.12 to 3.15"),
    ("cp315-abi3t-win32", "3.15t"), ("cp315-abi3.abi3t-win32", "3.15, 3.15t"), ("cp313-none-win32", "3.13, 3.13t"),
    ("py3-none-any", "3.8 to 3.15, 3.13t to 3.15t"), ("py2.py3-none-any", "3.8 to 3.15, 3.13t to 3.15t"),
    ("py314-none-any", "3.14 to 3.15, 3.14t to 3.15t"), ("pp311-pypy311_pp73-win32", ""), ("cp27-cp27mu-win32", ""),
])
def test_builds_that_an_installer_gives_a_tag_to(tag, builds):
    assert labels(installing(parse_tag(tag))) == builds


@pytest.mark.parametrize(("file", "words", "loaded", "suited"), [
    ("a.cpython-314t-x86_64-linux-gnu.so", "cp314t", {"3.14t"}, {"3.14t"}),
    ("a.cp314-win_amd64.pyd", "cp314", {"3.14"}, {"3.14"}),
    # Free-threaded builds before 3.15 look for abi3 files, whose layout of objects is not theirs.
    ("a.abi3.so", "abi3", {"3.13", "3.14", "3.15", "3.13t", "3.14t"}, {"3.13", "3.14", "3.15"}),
    ("a.abi3t.so", "abi3t", {"3.15", "3.15t"}, {"3.15", "3.15t"}),
    ("a.abi3t-x86_64-linux-gnu.so", "abi3t", {"3.15", "3.15t"}, {"3.15", "3.15t"}),
    ("a.so", "no tag", {"3.13", "3.14", "3.15", "3.13t", "3.14t", "3.15t"},
     {"3.13", "3.14", "3.15", "3.13t", "3.14t", "3.15t"}),
    ("a.pypy311-pp73-x86_64-linux-gnu.so", "another implementation", set(), set()),
    ("a.cpython-314d-x86_64-linux-gnu.so", "another implementation", set(), set()),
])
def test_builds_that_load_a_suffix(file, words, loaded, suited):
    suffix = suffix_of(file)
    kinds = [BuildKind(minor, free) for minor in (13, 14, 15) for free in (False, True)]
    assert suffix.words == words
    assert {kind.label for kind in kinds if suffix.loads(kind)} == loaded
    assert {kind.label for kind in kinds if suffix.suits(kind)} == suited


@pytest.mark.parametrize("name", ["a.py", "libz.so.1", "a.dylib", "a.dll", "a.b.so", ".so"])
def test_other_files_have_no_suffix(name):
    assert suffix_of(name) is None


@pytest.mark.builds("gil", "free")
def test_suffixes_agree_with_those_that_each_build_looks_for(build):
    script = "import _imp, json; print(json.dumps(_imp.extension_suffixes()))"
    asked = subprocess.run([build.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    kind = BuildKind(int(build.minor.partition(".")[2]), build.free_threaded)
    own = json.loads(asked.stdout)
    every = {*own, ".abi3.so", ".abi3t.so", ".cpython-314-x86_64-linux-gnu.so",
                                   ".cpython-314t-x86_64-linux-gnu.so"}
    told = {suffix for suffix in every if suffix_of(f"a{suffix}").loads(kind)}
    assert told == set(own)


@pytest.mark.parametrize(("platform", "tags", "other"), [
    ("x86_64-linux-gnu", ["manylinux_2_28_x86_64"], False), ("x86_64-linux-gnu", ["manylinux_2_28_aarch64"], True),
    ("x86_64-linux-gnu", ["musllinux_1_2_x86_64"], False), ("darwin", ["macosx_11_0_arm64"], False),
    ("darwin", ["manylinux_2_28_x86_64"], True), ("win_amd64", ["win_amd64"], False),
    ("x86_64-linux-gnu", ["win_amd64"], True), ("win_amd64", ["macosx_11_0_arm64"], True), ("", ["win32"], False),
])
def test_suffix_of_another_platform(platform, tags, other):
    suffix = suffix_of(f"a.cpython-314-{platform}.so" if platform else "a.so")
    assert other_platform(suffix, tags) is other


def test_platforms_are_named_without_versions():
    found = platform_families(["manylinux_2_17_x86_64", "manylinux_2_28_x86_64", "musllinux_1_2_aarch64", "win_amd64",
                               "macosx_10_9_universal2", "linux_x86_64", "any"])
    assert found == {"Linux x86_64", "Linux musl aarch64", "Windows x86_64", "macOS arm64", "macOS x86_64"}


@pytest.mark.parametrize(("content", "layout"), [
    (GIL_BYTES, Layout.GIL), (FREE_BYTES, Layout.FREE_THREADED), (FREE_BYTES + GIL_BYTES, Layout.FREE_THREADED),
    (b"_Py_MergeZeroLocalRefcount\0", Layout.FREE_THREADED), (b"", Layout.UNKNOWN), (b"_Py_DecRef\0", Layout.UNKNOWN),
])
def test_layout_is_told_by_the_functions_that_a_file_calls(content, layout):
    assert layout_of(content) is layout


def test_wheel_is_read(kit):
    path = kit.wheel("cp314-cp314t-win_amd64", {
        "thing/__init__.py": "", "thing/c.cp314t-win_amd64.pyd": b"", "thing.libs/x.dll": b"", "thing/zlib.so": b"",
        "thing-1.0.data/platlib/thing/d.cp314t-win_amd64.pyd": FREE_BYTES},
        "Requires-Python: >=3.14\nRequires-Dist: other\nRequires-Dist: pytest; extra == 'test'\n"
        "Classifier: Programming Language :: Python :: Free Threading :: 3 - Stable\n")
    wheel = read(path)
    assert isinstance(wheel, WheelFile)
    assert wheel.tags == wheel.written_tags == {Tag("cp314", "cp314t", "win_amd64")}
    assert [(each.module, each.suffix.words) for each in wheel.extensions] == [("thing.d", "cp314t"),
                                                                              ("thing.c", "cp314t")]
    assert wheel.libraries == 2
    assert wheel.metadata.requires == ("other",)
    assert (wheel.metadata.requires_python, wheel.metadata.free_threading) == (">=3.14", "3 - Stable")


def test_sdist_is_read(kit, tmp_path):
    kit.sdist()
    found = read(tmp_path / "thing-1.0.tar.gz")
    assert isinstance(found, SourceFile)
    assert (found.name, found.version) == ("thing", "1.0")


def unusable(kit, folder):
    """Write files that are no valid wheels or sdists; return what is wrong with each."""
    tag = "py3-none-any"
    (folder / "no.whl").write_bytes(b"")
    (folder / f"cut-1.0-{tag}.whl").write_bytes(b"PK\3\4 and no more")
    (folder / "cut-1.0.tar.gz").write_bytes(b"\x1f\x8b\x08 and no more")
    (folder / f"dir-1.0-{tag}.whl").mkdir()
    kit.wheel(tag, {}, told_name="other", name="renamed")
    kit.wheel(tag, {"more-1.0.dist-info/METADATA": ""}, name="two")
    return {"no.whl": FileProblem.BAD_NAME, f"cut-1.0-{tag}.whl": FileProblem.NOT_AN_ARCHIVE,
            "cut-1.0.tar.gz": FileProblem.NOT_AN_ARCHIVE, f"dir-1.0-{tag}.whl": FileProblem.ABSENT,
            f"renamed-1.0-{tag}.whl": FileProblem.OTHER_NAME, f"two-1.0-{tag}.whl": FileProblem.NO_METADATA,
            f"absent-1.0-{tag}.whl": FileProblem.ABSENT}


def test_unusable_files_are_named_with_the_reason_and_the_others_are_read(kit, tmp_path):
    expected = unusable(kit, tmp_path)
    kit.wheel("py3-none-any", {"thing/__init__.py": ""})
    found, bad = read_all(tmp_path / name for name in [*expected, "thing-1.0-py3-none-any.whl"])
    assert [each.name for each in found] == ["thing"]
    assert {each.path.name: each.problem for each in bad} == expected
    assert all(isinstance(each, UnusableFile) and each.reason for each in bad)


def test_file_named_twice_counts_once(kit, tmp_path):
    path = kit.wheel("py3-none-any", {"thing/__init__.py": ""})
    assert len(read_all([path, tmp_path, path])[0]) == 1


def test_versions_and_projects_are_sets_of_their_own(kit):
    paths = [kit.wheel("py3-none-any", {}, version=version, name=name)
             for name, version in (("b", "1.0"), ("a", "2.0"), ("a", "10.0"))]
    assert [(files[0].name, files[0].version) for files in grouped(map(read, paths))] == [
        ("a", "2.0"), ("a", "10.0"), ("b", "1.0")]


def chosen(kit, label):
    files, _ = read_all([kit.folder])
    found = choose(files, build(label))
    return found.file.path.name if found.file else found.why


def test_best_fitting_wheel_is_taken_and_of_equal_ones_the_later_build(kit):
    for tag in ("cp310-abi3-linux_x86_64", "cp314-cp314-linux_x86_64", "1-cp314-cp314-linux_x86_64",
                "2-cp314-cp314-linux_x86_64", "py3-none-any",
                "cp314-cp314t-win_amd64"):
        kit.wheel(tag, {}, written=tag.lstrip("12-"))
    assert chosen(kit, "3.14") == "thing-1.0-2-cp314-cp314-linux_x86_64.whl"
    assert chosen(kit, "3.13") == "thing-1.0-cp310-abi3-linux_x86_64.whl"
    assert chosen(kit, "3.14t") == "thing-1.0-py3-none-any.whl"


@pytest.mark.parametrize(("tag", "metadata", "why"), [
    ("cp314-cp314-linux_x86_64", "", WhyNoWheel.OTHER_BUILDS), ("cp39-abi3-linux_x86_64", "", WhyNoWheel.ABI3_ONLY),
    ("cp314-cp314t-win_amd64", "", WhyNoWheel.OTHER_PLATFORM),
    ("cp314-cp314t-manylinux_2_99_x86_64", "", WhyNoWheel.OTHER_PLATFORM),
    ("cp314-cp314t-linux_x86_64", "Requires-Python: <3.14\n", WhyNoWheel.REQUIRES_PYTHON),
])
def test_why_an_installer_takes_no_wheel(kit, tag, metadata, why):
    kit.wheel(tag, {}, metadata)
    assert chosen(kit, "3.14t") == why


def test_sdist_is_taken_where_there_is_no_wheel(kit):
    kit.sdist()
    assert chosen(kit, "3.14t") == "thing-1.0.tar.gz"


def codes(path):
    return {each.code.value for each in wheel_findings(read(path))}


def test_further_file_for_another_build_does_no_harm(kit):
    assert codes(kit.wheel("cp314-cp314t-win_amd64", {
        "thing/c.cp314t-win_amd64.pyd": b"", "thing/c.cp314-win_amd64.pyd": b""})) == set()


def test_file_without_a_tag_is_right_in_a_wheel_for_one_build_and_for_abi3_on_windows(kit):
    content = {"thing/c.pyd": b"PyInit_c\0"}
    assert codes(kit.wheel("cp314-cp314t-win_amd64", content)) == set()
    assert codes(kit.wheel("cp39-abi3-win_amd64", content)) == set()
    assert codes(kit.wheel("py3-none-win_amd64", content)) == {"wheel.untagged-file"}
    assert codes(kit.wheel("py3-none-win_arm64", {"thing/c.pyd": b"for ctypes"})) == set()


def test_abi3_file_compiled_without_the_gil_is_for_another_build(kit):
    assert codes(kit.wheel("cp39-abi3-linux_x86_64", {"thing/c.abi3.so": FREE_BYTES})) == {
        "wheel.compiled-for-another-build"}


def missing(kit):
    files, _ = read_all([kit.folder])
    return [(each.code.value, each.effect.value, each.text)
            for each in set_findings(files, [BuildKind(14, free_threaded=True)], {})]


def test_platforms_without_a_wheel_are_named_and_what_they_get(kit):
    for tag in ("cp314-cp314-win_amd64", "cp314-cp314-macosx_11_0_arm64", "cp314-cp314t-win_amd64"):
        kit.wheel(tag, {"thing/c.pyd": b"PyInit_c\0"})
    text = "no wheel for 3.14t on macOS arm64, where 3.14 has one"
    assert missing(kit) == [("missing.platform", "caution", text)]
    kit.wheel("py3-none-any", {"thing/__init__.py": ""})
    assert missing(kit) == [("missing.platform", "caution", f"{text}; it gets the pure Python there")]


@pytest.mark.parametrize(("second", "differs"), [
    # As two versions of setuptools write the same requirements of psutil.
    ("Requires-Python: <4, >= 3.9\nRequires-Dist: sphinx-rtd-theme ; (os_name == 'nt')\nRequires-Dist: cffi <3,>=2\n",
     0),
    ("Requires-Python: >=3.9,<4\nRequires-Dist: cffi>=2,<3\n", 1),
    ("Requires-Python: >=3.10,<4\nRequires-Dist: cffi>=2,<3\nRequires-Dist: Sphinx_RTD.theme; os_name == 'nt'\n", 1),
])
def test_requirements_differ_in_meaning_not_in_spelling(second, differs, kit):
    first = 'Requires-Python: >=3.9,<4\nRequires-Dist: cffi>=2,<3\nRequires-Dist: Sphinx_RTD.theme; os_name == "nt"\n'
    kit.wheel("cp314-cp314-win_amd64", {"thing/c.pyd": b"PyInit_c\0"}, first)
    kit.wheel("cp314-cp314t-win_amd64", {"thing/c.pyd": b"PyInit_c\0"}, second)
    assert [code for code, _, _ in missing(kit)] == ["metadata.differs"] * differs


def test_only_a_pure_wheel_beside_compiled_ones_loses_the_c_code(kit):
    kit.wheel("cp314-cp314-win_amd64", {"thing/c.pyd": b"PyInit_c\0"})
    assert missing(kit) == []   # said for each build
    kit.wheel("py3-none-any", {"thing/__init__.py": ""})
    assert [each[:2] for each in missing(kit)] == [("missing.c-code", "blocks")]


@pytest.mark.parametrize(("text", "file"), [
    ("dist/a.whl", True), ("a.whl", True), ("a-1.tar.gz", True), ("dist/", True), (".", True), ("numpy", False),
    ("numpy[extra]==1", False), ("a @ file:///x/a.whl", False), ("https://example.invalid/a.whl", False),
    ("git+https://example.invalid/a", False),
])
def test_arguments_that_are_files(text, file):
    assert is_file(text) is file


@pytest.mark.parametrize(("arguments", "told"), [
    (["nowhere/a-1-py3-none-any.whl"], "nowhere/a-1-py3-none-any.whl: there is no such file"),
    (["."], ".: there is no wheel and no sdist in this folder; for a project: gilscope evaluate ."),
    (["a.whl", "numpy"], "numpy is named beside files"),
    (["a.whl", "--lock", "uv.lock"], "--lock cannot be used with files of packages"),
])
def test_request_that_is_wrong_is_exit_2(arguments, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", *arguments]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
