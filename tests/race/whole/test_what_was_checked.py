"""What `gilscope race` and `pytest --race` check, say that they checked, and do if that is nothing."""

import json
import os
import py_compile
import shutil
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE
from tests.race.whole.test_command_runs import environment, on_a_terminal, words

TILL = """
    import os
    import threading
    lock = threading.Lock()
    class Till:
        sold = 0
    def sell():
        {guard}
            Till.sold += 1
    def both():
        reading, writing = os.pipe()    # one comes after the other, but not by what is looked at
        first = lambda: (sell(), open(writing, "wb", 0).write(b"."))
        second = lambda: (open(reading, "rb", 0).read(1), sell())
        threads = [threading.Thread(target=target) for target in (first, second)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """
RACY, CLEAN = (textwrap.dedent(TILL).format(guard=guard) for guard in ("if True:", "with lock:"))
RUN = "from acme.till import both\nboth()\n"
TEST = "from acme.till import both\ndef test_both():\n    both()\n"
BACKEND = """
    import zipfile
    def build_wheel(folder, *_):
        with zipfile.ZipFile(f"{folder}/corner_shop-1-py3-none-any.whl", "w") as wheel:
            wheel.write("code/till.py", "acme/till.py")
            info = "corner_shop-1.dist-info"
            wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: corner-shop\\nVersion: 1\\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
            wheel.writestr(f"{info}/RECORD", "acme/till.py,,\\n")
        return "corner_shop-1-py3-none-any.whl"
    """


@pytest.fixture
def project(tmp_path):
    """The folder of a project whose package has another name, and an empty folder of installed packages."""
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / "pyproject.toml").write_text("[project]\nname = 'Corner.Shop'\nversion = '1'\n")
    (root / "run.py").write_text(RUN)
    (root / "tests" / "test_till.py").write_text(TEST)
    (tmp_path / "site-packages").mkdir()
    return root


def install(project, text, kind="copied"):
    """Put the project's package where Python finds it."""
    site = project.parent / "site-packages"
    if kind == "built":   # by pip, from a source whose place says nothing about the package
        (project / "code").mkdir()
        (project / "code" / "till.py").write_text(text)
        (project / "backend.py").write_text(textwrap.dedent(BACKEND))
        with (project / "pyproject.toml").open("a") as file:
            file.write("[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n")
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(site),
                        str(project)], check=True, timeout=PATIENCE)
        return
    source = project / "src" / "acme"
    source.mkdir(parents=True)
    (source / "till.py").write_text(text)
    if kind == "editable":
        (site / "corner.pth").write_text(f"{source.parent}\n")
    elif kind == "zipped":
        with zipfile.ZipFile(site / "shop.zip", "w") as archive:
            archive.mkdir("acme")
            archive.write(source / "till.py", "acme/till.py")
    elif kind == "compiled":
        py_compile.compile(str(source / "till.py"), cfile=str(site / "acme" / "till.pyc"), doraise=True)
    elif kind == "copied":
        shutil.copytree(source, site / "acme")


def paths(project):
    site = project.parent / "site-packages"
    return os.pathsep.join(map(str, [ROOT, site, site / "shop.zip"]))


def race(project, python, *options, program=("run.py",)):
    """Run a program of the project where what is in the folder of installed packages can be imported."""
    code = f"import site; site.addsitedir({str(project.parent / 'site-packages')!r})\n"
    (project.parent / "start").mkdir(exist_ok=True)
    (project.parent / "start" / "sitecustomize.py").write_text(code)
    return subprocess.run(
        words(*options, *program, python=python), cwd=project, capture_output=True, text=True, timeout=PATIENCE,
        check=False, env=environment(PYTHONPATH=os.pathsep.join([str(project.parent / "start"), paths(project)])))


def check_tests(project, *options):
    """Run the project's tests under `pytest --race`; return what is printed, and the exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "gilscope.toolkit.race.pytest_.plugin",
         "--race", *options], cwd=project, capture_output=True, text=True, timeout=PATIENCE, check=False,
        env={**os.environ, "PYTHONPATH": paths(project), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    return done.stdout + done.stderr, done.returncode


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("kind", ["built", "copied", "editable"])
def test_project_is_checked_wherever_it_is_installed(kind, python, project):
    install(project, RACY, kind)
    done = race(project, python)
    assert (done.stdout, done.returncode) == ("", 66), done.stderr
    assert "DATA RACE on Till.sold" in done.stderr
    assert done.stderr.startswith("gilscope race: checked 2 files of Corner.Shop; 1 data race")


@pytest.mark.builds("gil", "free")
@pytest.mark.parametrize("kind", ["built", "copied", "editable"])
def test_line_says_what_was_checked_unless_quiet(kind, python, project):
    install(project, CLEAN, kind)
    done = race(project, python)
    said = "gilscope race: checked 2 files of Corner.Shop; no race in what this run did\n"
    assert (done.stderr, done.returncode) == (said, 0)
    done = race(project, python, "-q")
    assert (done.stderr, done.returncode) == ("", 0)


@pytest.mark.parametrize(("kind", "reason"), [
    ("zipped", "site-packages/shop.zip/acme/till.py is in an archive"),
    ("compiled", "site-packages/acme/till.pyc has no source file")])
@pytest.mark.parametrize("options", [(), ("-q",)])
def test_project_without_readable_source_is_no_success(kind, reason, options, project):
    install(project, RACY, kind)
    done = race(project, sys.executable, *options)
    assert done.returncode == 3
    assert "gilscope race: nothing of Corner.Shop was checked but run.py: " in done.stderr
    assert reason in done.stderr


def test_extension_module_alone_is_no_success(project):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    (project / "run.py").write_text("import acme\n")
    source = project / "acme.c"
    source.write_text('#include <Python.h>\nstatic struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "acme"};\n'
                      "PyMODINIT_FUNC PyInit_acme(void) { return PyModule_Create(&module); }\n")
    include, suffix = subprocess.run(
        [sys.executable, "-c", "import sysconfig as s; print(s.get_path('include'), s.get_config_var('EXT_SUFFIX'))"],
        check=True, capture_output=True, text=True).stdout.split()
    site = project.parent / "site-packages"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(site / f"acme{suffix}")],
                   check=True)
    (site / "corner_shop-1.dist-info").mkdir()
    (site / "corner_shop-1.dist-info" / "RECORD").write_text(f"acme{suffix},,\n")
    done = race(project, sys.executable)
    assert (done.returncode, f"acme{suffix} is compiled\n" in done.stderr) == (3, True), done.stderr


def test_run_without_the_projects_code_is_no_success(project):
    other = project.parent / "site-packages" / "lamp.py"
    other.write_text("print('on')\n")
    done = race(project, sys.executable, program=("-m", "lamp"))
    assert (done.stdout, done.returncode) == ("on\n", 3)
    assert f"nothing of Corner.Shop was checked: none of its code ran under {sys.executable}" in done.stderr
    other.write_text("raise SystemExit(7)\n")
    assert race(project, sys.executable, program=("-m", "lamp")).returncode == 7
    done = race(project, sys.executable, "--include", "lamp", program=("-m", "lamp"))
    assert (done.returncode, "checked 1 other file; no race" in done.stderr) == (7, True)


def test_script_is_code_of_the_user_even_among_the_tests(project):
    (project / "tests" / "run.py").write_text("print('done')\n")
    done = race(project, sys.executable, program=("tests/run.py",))
    assert (done.stderr, done.returncode) == (
        "gilscope race: checked 1 file of Corner.Shop; no race in what this run did, in which only one thread ran\n", 0)


MULTIPROCESSING = """
    import multiprocessing
    def child():
        pass
    if __name__ == "__main__":
        process = multiprocessing.get_context("{}").Process(target=child)
        process.start()
        process.join()
    """
POSIX_SPAWN = 'import os; os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)'


@pytest.mark.parametrize(("program", "said"), [
    (MULTIPROCESSING.format("spawn"), ", not child processes (spawn, forkserver)"),
    (MULTIPROCESSING.format("forkserver"), ", not child processes (spawn, forkserver)"),
    (MULTIPROCESSING.format("fork"), ""),
    ("import subprocess; subprocess.run(['true'])", ", not child processes (subprocess)"),
    (POSIX_SPAWN, ", not child processes (subprocess)"),
    ("import os; os.system('true')", ", not child processes (subprocess)"),
    ("import platform; platform.processor()", None),    # which runs uname
], ids=["spawn", "forkserver", "fork", "subprocess", "posix_spawn", "system", "none"])
def test_child_processes_that_run_unchecked_are_named(program, said, tmp_path):
    (tmp_path / "prog.py").write_text(textwrap.dedent(program))
    done = subprocess.run([sys.executable, "-P", "-m", "gilscope", "race", "prog.py"], cwd=tmp_path, text=True,
                          capture_output=True, check=False, timeout=PATIENCE, env=environment())
    alone = ", in which only one thread ran" if said is None else ""     # a child may have had more
    assert done.stderr == f"gilscope race: checked prog.py{said or ''}; no race in what this run did{alone}\n"


THREADED = """
import queue, threading
{}
def work():
    from lamp import light
    light()
threads = [threading.Thread(target=work) for _ in range({})]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
NOT_LAMP = ", not lamp ({} 'lamp*')"
END = "; no race in what this run did\n"


@pytest.mark.parametrize(("imports", "threads", "options", "said"), [
    ("", 2, (), f"1 file of Corner.Shop{NOT_LAMP.format('--include')}{END}"),      # bulb is lamp's own affair
    ("if False: from .bulb import x", 2, (), f"1 file of Corner.Shop{NOT_LAMP.format('--include')}{END}"),
    ("import bulb", 0, (), f"1 file of Corner.Shop{END.rstrip()}, in which only one thread ran\n"),
    ("", 2, ("--include", "lamp*"), f"1 file of Corner.Shop and 1 other file, not bulb (--include 'bulb*'){END}"),
    ("", 2, ("--include", "dim*", "--include", "queue"),
     f"1 file of Corner.Shop and 1 other file{NOT_LAMP.format('--include')}, no file of 'dim*'{END}"),
])
def test_installed_packages_that_threads_use_are_named(imports, threads, options, said, project):
    site = project.parent / "site-packages"
    (site / "lamp.py").write_text("import bulb\ndef light(): bulb.glow()\n")
    (site / "bulb.py").write_text("def glow(): pass\n")
    (project / "run.py").write_text(THREADED.format(imports, threads))
    done = race(project, sys.executable, *options)
    assert (done.returncode, done.stderr) == (0, f"gilscope race: checked {said}")


def test_pattern_that_matches_nothing_is_named_when_nothing_was_checked(project):
    (project.parent / "site-packages" / "lamp.py").write_text("")
    done = race(project, sys.executable, "--include", "dim*", program=("-m", "lamp"))
    assert (done.returncode, done.stderr.endswith("; no file of 'dim*'\n")) == (3, True), done.stderr


@pytest.mark.parametrize("active", [True, False])
def test_lack_of_an_active_environment_is_the_likely_reason(active, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    variables = {name: value for name, value in environment().items() if name != "VIRTUAL_ENV"}
    done = subprocess.run([sys.executable, "-m", "gilscope", "race", "-m", "this"], cwd=tmp_path, text=True,
                          capture_output=True, check=False, timeout=PATIENCE,
                          env={**variables, **({"VIRTUAL_ENV": sys.prefix} if active else {})})
    assert done.returncode == 3
    reason = f"none of its code ran under {sys.executable}{'' if active else '; no environment is active'}"
    assert done.stderr == f"gilscope race: nothing of shop was checked: {reason}\n"


def test_folder_without_a_project_has_no_installed_code(project):
    install(project, RACY)
    (project / "pyproject.toml").unlink()
    done = race(project, sys.executable)
    said = "gilscope race: checked run.py, not acme (--include 'acme*'); no race in what this run did\n"
    assert (done.stderr, done.returncode) == (said, 0)


def test_json_names_the_checked_files_in_place_of_the_line(project):
    install(project, CLEAN)
    done = race(project, sys.executable, "--json")
    assert done.returncode == 0
    assert [Path(path).name for path in json.loads(done.stderr)["checked"]] == ["run.py", "till.py"]


def test_line_comes_on_a_terminal_as_well(tmp_path):
    shown, code = on_a_terminal(tmp_path, "print('ready')\n", b"")
    said = "gilscope race: checked script.py; no race in what this run did, in which only one thread ran"
    assert (code, shown.splitlines()[-1]) == (0, said)


@pytest.mark.parametrize("options", [(), ("-n2", "-p", "xdist.plugin")], ids=["alone", "xdist"])
@pytest.mark.parametrize(("kind", "text", "code", "said"), [
    ("built", RACY, 1, "gilscope race: checked 1 file of Corner.Shop and 1 test file; 1 finding\n"),
    ("built", CLEAN, 0, "gilscope race: checked 1 file of Corner.Shop and 1 test file; no race in what this run did\n"),
    ("zipped", RACY, 1, "gilscope race: nothing of Corner.Shop was checked but 1 test file: "),
])
def test_tests_of_an_installed_project(kind, text, code, said, options, project):
    if options:
        pytest.importorskip("xdist")
    install(project, text, kind)
    shown, ended = check_tests(project, *options)
    assert (ended, said in shown) == (code, True), shown
    assert ("DATA RACE on Till.sold" in shown) == (code == 1 and kind == "built")


def test_collecting_tests_checks_none(project):
    (project / "tests" / "test_till.py").write_text("def test_it(): pass\n")
    shown, code = check_tests(project, "--collect-only")
    assert (code, "gilscope race" in shown) == (0, False)
    assert check_tests(project)[1] == 1


def test_line_is_left_out_of_the_quietest_test_run(project):
    install(project, CLEAN)
    shown, code = check_tests(project, "-q")   # the second one
    assert (code, "gilscope race" in shown) == (0, False)
