"""Which extension modules a project's files name, for each kind of build; nothing of the project is run."""

import pytest

from gilscope.toolkit.evaluate.project.extensions.find import find_extensions
from gilscope.toolkit.evaluate.project.extensions.own_extensions import Binding
from gilscope.toolkit.evaluate.sections import Place

C_SOURCE = "#include <Python.h>\nPyMODINIT_FUNC PyInit_x(void) { return PyModule_Create(&def); }\n"

FFI_SOURCE = "#define _CFFI_\n\n/* We try to define Py_LIMITED_API */\nstatic int state;\nint PyInit_f(void) {}\n"


def written(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return find_extensions(root)


def backend(name, more=""):
    return f'[build-system]\nrequires = []\nbuild-backend = "{name}"\n{more}'


SETUP = "from setuptools import Extension, setup\nimport sys\n"
CASES = {
    "setuptools": ({
        "setup.py": SETUP + 'setup(ext_modules=[Extension("lru._lru", ["src/lru/_lru.c"], optional=True)])\n',
        "src/lru/_lru.c": C_SOURCE}, [("lru._lru", Binding.C_API, ("src/lru/_lru.c",), True)]),
    "setuptools, with constants and in pieces": ({
        "setup.py": SETUP + 'NAME = "pkg"\nSOURCES = ["a.c"]\next = []\nif True:\n'
                            '    ext.append(Extension(NAME + "._a", sources=SOURCES))\n'
                            'ext += [Extension(f"{NAME}._b", ["gone.c"])]\nsetup(ext_modules=ext)\n',
        "a.c": C_SOURCE}, [("pkg._a", Binding.C_API, ("a.c",), False), ("pkg._b", Binding.C_API, (), False)]),
    "setuptools, computed": ({
        "setup.py": "from setuptools import setup\nfrom mine import extensions\nsetup(ext_modules=extensions())\n",
        "pkg/a.c": C_SOURCE}, [("", Binding.UNKNOWN, (), False)]),
    "setuptools, a table": ({
        "pyproject.toml": '[tool.setuptools]\next-modules = [{name = "pkg._a", sources = ["a.c"], optional = true}]\n',
        "a.c": C_SOURCE}, [("pkg._a", Binding.C_API, ("a.c",), True)]),
    "setuptools, setup.cfg": ({
        "setup.py": "import setuptools\nsetuptools.setup(setup_requires=['pbr'], pbr=True)\n",
        "setup.cfg": "[extension=pkg._a]\nsources = a.c\n", "a.c": C_SOURCE},
        [("pkg._a", Binding.C_API, ("a.c",), False)]),
    "meson-python": ({
        "pyproject.toml": backend("mesonpy"),
        "meson.build": "project('x', 'c')\nsubdir('src')\n",
        "src/meson.build": "py.extension_module(\n  '_core',  # the core (of it)\n  'core.c',\n  install: true,\n"
                           "  subdir: 'pkg/sub')\n",
        "src/core.c": C_SOURCE}, [("pkg.sub._core", Binding.C_API, ("src/core.c",), False)]),
    "Rust behind meson": ({
        "pyproject.toml": backend("mesonpy"),
        "meson.build": "project('x', 'rust')\npy.extension_module('_core', 'src/lib.rs', subdir: 'pkg')\n",
        "src/lib.rs": "#[pymodule]\nfn _core() {}\n"}, [("pkg._core", Binding.PYO3, ("src/lib.rs",), False)]),
    "scikit-build-core": ({
        "pyproject.toml": backend("scikit_build_core.build"),
        "CMakeLists.txt": "# pybind11_add_module(no no.cpp)\nPython_add_library(_core MODULE core.c WITH_SOABI)\n"
                          "python_add_library(util STATIC util.c)\n#[[ pybind11_add_module(neither) ]]\n",
        "core.c": C_SOURCE}, [("_core", Binding.C_API, ("core.c",), False)]),
    "pybind11": ({
        "pyproject.toml": backend("scikit_build_core.build"),
        "CMakeLists.txt": "pybind11_add_module(_core src/main.cpp)\n",
        "src/main.cpp": "#include <pybind11/pybind11.h>\nPYBIND11_MODULE(_core, m) {}\n"},
        [("_core", Binding.PYBIND11, ("src/main.cpp",), False)]),
    "nanobind": ({
        "pyproject.toml": backend("scikit_build_core.build"),
        "CMakeLists.txt": "nanobind_add_module(${NAME} STABLE_ABI src/main.cpp)\n",
        "src/main.cpp": "#include <nanobind/nanobind.h>\nNB_MODULE(_core, m) {}\n"},
        [("", Binding.NANOBIND, ("src/main.cpp",), False)]),
    "maturin": ({
        "pyproject.toml": backend("maturin", '[tool.maturin]\nmodule-name = "pkg._rust"\n'),
        "Cargo.toml": '[package]\nname = "a-b"\n[dependencies]\npyo3 = { version = "0.26", features = [] }\n',
        "src/lib.rs": "#[pymodule]\nfn _rust() {}\n"}, [("pkg._rust", Binding.PYO3, ("src/lib.rs",), False)]),
    "maturin, named by its crate": ({
        "pyproject.toml": backend("maturin"),
        "Cargo.toml": '[package]\nname = "a-b"\n[lib]\ncrate-type = ["cdylib"]\n[dependencies]\npyo3 = "0.26"\n'},
        [("a_b", Binding.PYO3, (), False)]),
    "setuptools-rust": ({
        "setup.py": 'from setuptools_rust import RustExtension\nsetup(rust_extensions=[RustExtension("pkg._r")])\n'},
        [("pkg._r", Binding.PYO3, (), False)]),
    "Cython": ({
        "setup.py": "from Cython.Build import cythonize\nsetup(ext_modules=cythonize('pkg/*.pyx'))\n",
        "pkg/fast.pyx": "def f(): pass\n"}, [("fast", Binding.CYTHON, ("pkg/fast.pyx",), False)]),
    "CFFI": ({
        "setup.py": SETUP + "setup(cffi_modules=['build_ffi.py:ffi'])\n",
        "build_ffi.py": "ffi = FFI()\nffi.set_source('pkg._ffi', '')\n"},
        [("pkg._ffi", Binding.CFFI, ("build_ffi.py",), False)]),
    "CFFI, whose C is there": ({
        "pyproject.toml": backend("scikit_build_core.build"),
        "CMakeLists.txt": 'set(WHERE "${CMAKE_CURRENT_SOURCE_DIR}/src")\nset(C "${WHERE}/_ffi.c")\n'
                          'python_add_library(_ffi MODULE ${sabi} WITH_SOABI "${C}")\n',
        "src/_ffi.c": FFI_SOURCE}, [("_ffi", Binding.CFFI, ("src/_ffi.c",), False)]),
    "mypyc": ({
        "setup.py": "from mypyc.build import mypycify\nsetup(ext_modules=mypycify(['--strict', 'pkg/a.py']))\n",
        "pkg/a.py": "x: int = 1\n"}, [("", Binding.MYPYC, ("pkg/a.py",), False)]),
    "hatchling with mypyc": ({
        "pyproject.toml": backend("hatchling.build", "[tool.hatch.build.targets.wheel.hooks.mypyc]\n")},
        [("", Binding.MYPYC, (), False)]),
    "poetry's script": ({
        "pyproject.toml": backend("poetry.core.masonry.api", '[tool.poetry.build]\nscript = "build.py"\n'),
        "build.py": SETUP + 'e = Extension("pkg._a", ["a.c"])\n', "a.c": C_SOURCE},
        [("pkg._a", Binding.C_API, ("a.c",), False)]),
    "pdm with setuptools": ({
        "pyproject.toml": backend("pdm.backend", "[tool.pdm.build]\nrun-setuptools = true\n"),
        "setup.py": SETUP + 'setup(ext_modules=[Extension("pkg._a", ["a.c"])])\n', "a.c": C_SOURCE},
        [("pkg._a", Binding.C_API, ("a.c",), False)]),
}


@pytest.mark.newest
@pytest.mark.parametrize("case", CASES)
def test_modules_are_found_by_what_builds_them(tmp_path, case):
    files, expected = CASES[case]
    found = written(tmp_path, files)
    assert [(each.name, each.binding, each.sources, each.optional) for each in found.modules] == expected
    assert found.any


def test_c_that_cffi_made_is_not_searched(tmp_path):
    files, _ = CASES["CFFI, whose C is there"]
    (source,) = written(tmp_path, files).sources
    assert (source.binding, source.declared, source.remarks) == (Binding.CFFI, True, ())
    assert source.declare.startswith("build it with CFFI 2.0")


@pytest.mark.parametrize(("file", "text", "lines"), [
    ("setup.py", SETUP + "e = Extension('a', ['a.c'], py_limited_api=True,\n  define_macros=[('Py_LIMITED_API', 1)])\n"
                         "setup(ext_modules=[e], options={'bdist_wheel': {'py_limited_api': 'cp312'}})\n", (3, 4, 5)),
    ("setup.py", SETUP + "# py_limited_api=True\nsetup(ext_modules=[Extension('a', ['a.c'])])\n", ()),
    ("setup.cfg", "[bdist_wheel]\npy_limited_api = cp312\n", (2,)),
    ("pyproject.toml", "[tool.distutils.bdist_wheel]\npy-limited-api = 'cp312'\n", (2,)),
    ("pyproject.toml", "[tool.scikit-build]\nwheel.py-api = 'cp312'\n", (2,)),
    ("meson.build", "py.extension_module('a', 'a.c',\n  limited_api: '3.12')\n", (2,)),
    ("CMakeLists.txt", "python_add_library(a MODULE USE_SABI 3.12 a.c)\n", (1,)),
    ("Cargo.toml", "[dependencies]\npyo3 = { version = '0.26', features = ['abi3-py312'] }\n", (2,))])
def test_places_that_ask_for_the_limited_api(tmp_path, file, text, lines):
    assert written(tmp_path, {"a.pyx": "", file: text}).limited == tuple(
        Place(file=file, line=line) for line in lines)


@pytest.mark.parametrize("files", [
    {"pyproject.toml": backend("setuptools.build_meta"), "setup.py": "from setuptools import setup\nsetup()\n"},
    {"setup.py": SETUP + "setup(ext_modules=[])\n"},
    {"pyproject.toml": backend("hatchling.build"), "tests/a.c": C_SOURCE},
    {"pyproject.toml": backend("maturin", '[tool.maturin]\nbindings = "bin"\n'), "Cargo.toml": "[package]\n"},
    {"pyproject.toml": backend("flit_core.buildapi"), "setup.py": SETUP + "setup(ext_modules=[Extension('a', [])])\n"},
    {"pyproject.toml": backend("flit_core.buildapi"), "pkg/a.c": C_SOURCE},
    {"pyproject.toml": "not toml [", "setup.py": "print 'of Python 2'\n"},
])
def test_project_without_any(tmp_path, files):
    found = written(tmp_path, files)
    assert (found.any, found.modules, found.sources) == (False, (), ())


@pytest.mark.parametrize(("question", "elsewhere"), [
    ("sys.platform == 'win32'", True), ("os.name == 'nt'", True), ("sys.platform.startswith('win')", True),
    ("platform.system() in ('Windows', 'Darwin')", True), ("not sys.platform != 'win32'", True),
    ("sys.platform == 'win32' and DEBUG", True), ("sys.implementation.name == 'pypy'", True),
    ("sys.version_info[0] == 2", True), ("sys.version_info.major < 3", True), ("sys.version_info < (3,)", False),
    ("sys.version_info >= (4, 0)", True), ("sys.version_info >= (2, 7)", False), ("sys.version_info.major == 3", False),
    # Nobody knows, so one that is not built is missed.
    ("not PYPY", False), ("sys.version_info >= (3, 15)", False), ("os.environ.get('FAST')", False),
    ("sys.platform != 'win32'", False), ("sys.platform != 'win32' or DEBUG", False), ("sys.platform == NAME", False),
])
def test_module_of_another_system_is_known_as_that(tmp_path, question, elsewhere):
    code = f"{SETUP}ext = []\nif {question}:\n    ext.append(Extension('pkg._a', ['a.c']))\n"
    (module,) = written(tmp_path, {"setup.py": code}).modules
    assert module.condition == (question if elsewhere else "")


def test_else_of_this_system_is_another_system(tmp_path):
    code = f"{SETUP}ext = [Extension('a', ['a.c'])] if os.name == 'posix' else [Extension('b', ['b.c'])]\n"
    assert [(each.name, each.condition) for each in written(tmp_path, {"setup.py": code}).modules] == [
        ("a", ""), ("b", "not (os.name == 'posix')")]


def test_build_script_is_read_and_not_run(tmp_path):
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\n{SETUP}setup(ext_modules=[Extension('a', ['a.c'])])\n"
    assert written(tmp_path, {"setup.py": code}).any
    assert not (tmp_path / "ran").exists()


def test_constants_made_of_themselves_end(tmp_path):
    code = SETUP + "A = B + B\nB = A + A\nE = [*E, *E]\nsetup(ext_modules=[Extension(A, E)])\n"
    assert [each.name for each in written(tmp_path, {"setup.py": code}).modules] == [""]


def test_hook_of_its_own_may_make_more(tmp_path):
    files = {"pyproject.toml": backend("hatchling.build", "[tool.hatch.build.hooks.custom]\n"),
             "hatch_build.py": "build_data['pure_python'] = False\n"}
    assert written(tmp_path, files).unsure == ("only a build shows what hatch_build.py compiles",)


def test_what_a_source_includes_is_read_with_it(tmp_path):
    pytest.importorskip("tree_sitter")
    found = written(tmp_path, {
        "setup.py": SETUP + "setup(ext_modules=[Extension('a', ['src/a.c'])])\n",
        "src/a.c": f'#include "cache.h"\n#include "../../outside.h"\nT methods[] = {{f}};\n{C_SOURCE}',
        "src/cache.h": "static int hits;\nint f(void) { return ++hits; }\n",
        "src/other.c": C_SOURCE})
    assert [each.file for each in found.sources] == ["src/a.c", "src/cache.h"]
    assert [each.what for each in found.sources[1].remarks] == ["hits"]


GENERATED = "/* Generated by Cython 3.3.0 */\n#define __Pyx_FREETHREADING_COMPATIBLE Py_MOD_GIL_USED\n#else\n{}"


def test_c_that_cython_made_is_told_by_its_pyx(tmp_path):
    found = written(tmp_path, {
        "setup.py": SETUP + "setup(ext_modules=[Extension('pkg._a', ['pkg/_a.c'])])\n",
        "pkg/_a.c": GENERATED.format("static int no;\n"),
        "pkg/_a.pyx": '# cython: freethreading_compatible = True\ninclude "_part.pyx"\n',
        "pkg/_part.pyx": "cdef int hits = 0\ndef f():\n    global hits\n    hits += 1\n"})
    assert [(each.file, each.language, each.defines, each.declared, len(each.remarks)) for each in found.sources] == [
        ("pkg/_a.pyx", "Cython", True, True, 0), ("pkg/_part.pyx", "Cython", False, False, 1)]


@pytest.mark.parametrize("said", ["USED", "NOT_USED"])
def test_c_that_cython_made_tells_alone(tmp_path, said):
    found = written(tmp_path, {
        "setup.py": SETUP + "setup(ext_modules=[Extension('pkg._a', ['a.c'])])\n",
        "a.c": GENERATED.format(f"#define __Pyx_FREETHREADING_COMPATIBLE Py_MOD_GIL_{said}\n")})
    assert [(each.binding, each.declared) for each in found.sources] == [(Binding.CYTHON, said == "NOT_USED")]


def test_question_that_only_the_build_can_answer_is_kept(tmp_path):
    code = (f"import os\n{SETUP}FAST = os.getenv('FAST')\next = []\nif FAST:\n    if more():\n"
            "        ext.append(Extension('a', []))\n    else:\n        ext.append(Extension('b', []))\n"
            "ext.append(Extension('c', []))\n")
    assert [(each.name, each.question, each.condition) for each in written(tmp_path, {"setup.py": code}).modules] == [
        ("a", "FAST and more()", ""), ("b", "FAST and not (more())", ""), ("c", "", "")]


@pytest.mark.parametrize(("before", "asks"), [
    ("FAST = os.getenv('APP_FAST', '0') == '1'\n", ("APP_FAST",)), ("FAST = 'APP_FAST' in os.environ\n", ("APP_FAST",)),
    ("FAST = False\nif environ.get('APP_FAST'):\n    FAST = True\n", ("APP_FAST",)),
    ("FAST = os.environ['APP_FAST']\n", ("APP_FAST",)), ("FAST = settings.get('APP_FAST')\n", ())])
def test_variables_of_the_environment_that_decide_are_known(tmp_path, before, asks):
    code = f"import os\n{SETUP}{before}ext = []\nif FAST:\n    ext.append(Extension('a', []))\n"
    (module,) = written(tmp_path, {"setup.py": code}).modules
    assert (module.question, module.variables) == ("FAST", asks)


def test_number_that_another_part_of_a_module_stores_anew_is_state(tmp_path):
    found = written(tmp_path, {
        "setup.py": SETUP + "setup(ext_modules=[Extension('pkg._a', ['pkg/_a.pyx'])])\n",
        "pkg/_a.pyx": 'include "_part.pxi"\ndef f():\n    global hits\n    hits += 1\n',
        "pkg/_part.pxi": "cdef int hits = 0\ncdef int most = 9\n"})
    assert [(each.file, [remark.what for remark in each.remarks]) for each in found.sources] == [
        ("pkg/_a.pyx", ["hits"]), ("pkg/_part.pxi", [])]


@pytest.mark.parametrize(("named", "modules"), [("python", ["_core"]), ("${FOLDER}", ["_core", "_other"])])
def test_others_sources_beside_are_not_the_projects(tmp_path, named, modules):
    found = written(tmp_path, {
        "pyproject.toml": backend("scikit_build_core.build"), "CMakeLists.txt": f"add_subdirectory({named})\n",
        "python/CMakeLists.txt": "pybind11_add_module(_core core.cpp)\n",
        "vendored/python/CMakeLists.txt": "pybind11_add_module(_other other.cpp)\n"})
    assert [each.name for each in found.modules] == modules


@pytest.mark.parametrize(("file", "text", "binding"), [
    ("pkg/a.c", C_SOURCE, Binding.C_API), ("pkg/a.pyx", "x = 1\n", Binding.CYTHON),
    ("pkg/a.cpp", "PYBIND11_MODULE(a, m) {}\n", Binding.PYBIND11),
    ("pkg/a.cpp", "NB_MODULE(a, m) {}\n", Binding.NANOBIND), ("src/lib.rs", "#[pymodule]\nfn a() {}\n", Binding.PYO3)])
def test_source_that_no_configuration_names_is_found(tmp_path, file, text, binding):
    found = written(tmp_path, {"setup.py": "from mine import kwargs\nsetup(**kwargs)\n", file: text})
    assert [(each.name, each.binding, each.file, each.sources) for each in found.modules] == [
        ("", binding, file, (file,))]


@pytest.mark.parametrize("file", ["pkg/lib.c", "pkg/work.f90", "pkg/api.i", "zig/main.zig"])
def test_what_some_compiler_may_make_a_module_of_is_looked_at_when_built(tmp_path, file):
    found = written(tmp_path, {"setup.py": "from mine import kwargs\nsetup(**kwargs)\n", file: "whatever\n"})
    assert found.any
    assert (found.modules, found.unsure) == ((), (f"only a build shows what is made of {file}",))


def test_entry_of_pyproject_has_its_line(tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[project]\nname = 'pkg._b'\n[tool.setuptools]\next-modules = [\n    {name = 'pkg._a', sources = ['a.c']},\n"
        '    {name = "pkg._b", sources = ["b.c"]},\n]\n')
    assert [(each.name, each.line) for each in find_extensions(tmp_path).modules] == [("pkg._a", 5), ("pkg._b", 6)]


@pytest.mark.parametrize(("given", "flags"), [
    ('define_macros=[("A", "1"), ("B", None)]', ("-DA=1", "-DB")),
    ('define_macros=[("A", version()), ("B", VALUE)]', ("-DB=2",)),      # what is computed is not known
    ("define_macros=MACROS + [('C', '3')], undef_macros=['NDEBUG']", ("-DM=1", "-DC=3", "-UNDEBUG")),
    ("define_macros=EITHER", ()),                                         # one of two, and which is not known
    ('extra_compile_args=["-O3", "-DA=1", "-D", "-UB"]', ("-DA=1", "-UB")),
])
def test_macros_that_setup_py_gives_the_preprocessor(tmp_path, given, flags):
    found = written(tmp_path, {"a.c": C_SOURCE, "setup.py": (
        f"{SETUP}VALUE = '2'\nMACROS = [('M', '1')]\nEITHER = [('W', '1')]\nif x():\n    EITHER = [('X', '1')]\n"
        f'setup(ext_modules=[Extension("pkg.a", ["a.c"], {given})])\n')})
    assert [each.flags for each in found.modules] == [flags]


@pytest.mark.parametrize(("given", "possible"), [
    ("[('A', '1')]", ()), ("GIVEN", ("-DTHREE", "-DOTHER")), ("GIVEN + [('A', '1')]", ("-DTHREE", "-DOTHER", "-DA")),
    ("made()", ("-DTHREE", "-DOTHER")), ("[*GIVEN]", ("-DTHREE", "-DOTHER"))])
def test_macros_that_setup_py_may_give_are_each_tried(tmp_path, given, possible):
    found = written(tmp_path, {"a.c": C_SOURCE, "setup.py": (
        f"{SETUP}GIVEN = []\nif sys.version_info.major == 2:\n    GIVEN.append(('TWO', '1'))\n"
        "elif sys.version_info.major == 3:\n    GIVEN.append(('THREE', '1'))\nif x():\n    GIVEN += [('OTHER', '')]\n"
        f'setup(ext_modules=[Extension("pkg.a", ["a.c"], define_macros={given})])\n')})
    assert [{*each.possible} for each in found.modules] == [{*possible}]


def test_macros_that_a_table_gives_the_preprocessor(tmp_path):
    found = written(tmp_path, {"a.c": C_SOURCE, "pyproject.toml": (
        '[[tool.setuptools.ext-modules]]\nname = "pkg.a"\nsources = ["a.c"]\ndefine-macros = [["A", "1"], ["B"]]\n'
        'undef-macros = ["C"]\nextra-compile-args = ["-DD", "-g"]\n')})
    assert [each.flags for each in found.modules] == [("-DA=1", "-DB", "-UC", "-DD")]
