"""The search through sources of extension modules on 24 projects with one planted fault each, and on their repairs."""

import shutil
import subprocess
import tomllib

import pytest

from gilscope.toolkit.evaluate.evaluation import Verdict
from gilscope.toolkit.evaluate.packages.evidence import PackageVerdict, Status
from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild
from tests.conformance.builds import ROOT
from tests.evaluate.made_up import CLEAN, QUIET, conclude, finding, found, replace, report
from tests.evaluate.places import COMPILER, headers

CORPUS = ROOT / "tests" / "corpus" / "extensions"
TRUTH = tomllib.loads((CORPUS / "truth.toml").read_text())
SUFFIXES = {"C": "c", "C++": "cpp", "Cython": "pyx"}
# Repairs that are not READY: what comes from a freelist is private, which no single function shows.
DOUBTED = {"nodes": [("_nodes.c", 44)]}
BUILT = OwnBuild(build="3.14t", report=report(replace(finding(), verdict=PackageVerdict(status=Status.READY))))

pytestmark = [pytest.mark.newest, pytest.mark.builds("free")]


def extensions_of(name, variant, folder, build=None):
    """Return what a variant of a project contains; `build` preprocesses it."""
    language = TRUTH[name]["language"]
    if language != "Cython":
        pytest.importorskip("tree_sitter")
    project = folder / variant
    shutil.copytree(CORPUS / name / variant, project)
    project.joinpath("setup.py").write_text(
        "from setuptools import Extension, setup\n"
        f"setup(ext_modules=[Extension('_{name}', ['_{name}.{SUFFIXES[language]}'])])\n")
    return find_extensions(project, build)


def places(extensions):
    return [(source.file, remark.line) for source in extensions.sources for remark in source.remarks
            if remark.unguarded]


def verdict(extensions):
    return conclude(found(own=BUILT), QUIET, CLEAN, extensions).word


def test_corpus_is_whole():
    assert len(TRUTH) == 24
    assert {each.name for each in CORPUS.iterdir() if each.is_dir()} == set(TRUTH)


@pytest.mark.parametrize("name", TRUTH)
def test_planted_fault_is_named_and_never_ready(name, tmp_path):
    extensions = extensions_of(name, "faulty", tmp_path)
    assert all(source.declared for source in extensions.sources if source.defines)
    assert verdict(extensions) is Verdict.INCONCLUSIVE
    assert (TRUTH[name]["file"], TRUTH[name]["line"]) in places(extensions)


def test_repairs_are_ready(tmp_path):
    doubts = {}
    for name in TRUTH:
        (tmp_path / name).mkdir()
        extensions = extensions_of(name, "repaired", tmp_path / name)
        if verdict(extensions) is not Verdict.READY:
            doubts[name] = places(extensions)
    assert doubts == DOUBTED


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("variant", ["faulty", "repaired"])
@pytest.mark.parametrize("name", [name for name, truth in TRUTH.items() if truth["language"] != "C++"])
def test_projects_compile(name, variant, build, tmp_path):
    include = headers(build)
    source = CORPUS / name / variant / f"_{name}.{SUFFIXES[TRUTH[name]['language']]}"
    if source.suffix == ".pyx":
        compiler = pytest.importorskip("Cython.Compiler.Main")
        made = compiler.compile(str(source), output_file=str(tmp_path / "made.c"))
        assert not made.num_errors
        source = tmp_path / "made.c"
    done = subprocess.run([COMPILER, "-fsyntax-only", f"-I{include}", str(source)], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["faulty", "repaired"])
@pytest.mark.parametrize("name", [name for name, truth in TRUTH.items() if truth["language"] == "C++"])
def test_cpp_projects_compile(name, variant, build, tmp_path):
    pybind11 = pytest.importorskip("pybind11")
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no compiler of C++")
    include = headers(build)
    done = subprocess.run([compiler, "-std=c++17", "-fsyntax-only", f"-I{include}", f"-I{pybind11.get_include()}",
                           str(CORPUS / name / variant / f"_{name}.cpp")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
