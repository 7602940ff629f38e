"""Who may import whom: the layers of the architecture, checked on the syntax trees."""

import ast
import functools
import graphlib
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parents[1]
OURS = ("toolkit", "workloads", "runners")

# From the top down; a part imports from lines below its own.  Parts of one line do not know each other.
LAYERS = (
    ("gilscope.toolkit.cli",),
    ("gilscope.toolkit.commands",),
    ("gilscope.toolkit.evaluate", "gilscope.toolkit.experiments", "gilscope.toolkit.site", "gilscope.toolkit.fleet"),
    ("gilscope.toolkit.scale",),
    ("gilscope.toolkit.hammer",),
    ("gilscope.toolkit.measure", "gilscope.toolkit.gil", "gilscope.toolkit.gil_guard", "gilscope.toolkit.race",
     "gilscope.toolkit.report", "gilscope.toolkit.publish", "gilscope.toolkit.children"),
    ("gilscope.toolkit.store", "gilscope.toolkit.stats", "gilscope.toolkit.builds", "gilscope.toolkit.redaction",
     "gilscope.toolkit.keyed_store", "gilscope.toolkit.programs"),
    ("gilscope.toolkit.concurrency_models", "gilscope.toolkit.model", "gilscope.toolkit.metrics",
     "gilscope.toolkit.units", "gilscope.toolkit.cores", "gilscope.toolkit.errors", "gilscope.toolkit.escaping",
     "gilscope.toolkit.temporary", "gilscope.toolkit.processes", "gilscope.toolkit.bounded_reading",
     "gilscope.toolkit.records", "gilscope.toolkit.file_locks", "gilscope.toolkit.user_dirs",
     "gilscope.toolkit.own_files"),
    ("gilscope.toolkit",),
    ("gilscope",),   # its version; imports the public names when they are asked for
)
# What runs before anything is installed stands beside the layers and knows only what needs no package.
BESIDE = {"gilscope.toolkit.make_venv": ("gilscope.toolkit.builds", "gilscope.toolkit.errors",
                                         "gilscope.toolkit.processes", "gilscope.toolkit.records",
                                         "gilscope.toolkit.file_locks", "gilscope.toolkit.user_dirs")}
USERS = tuple(f"gilscope.toolkit.{part}" for part in ("measure", "experiments", "evaluate", "commands"))
ONLY_IMPORTERS = {
    "gilscope.workloads": USERS,
    # Reports and pages run no model; what they show of one, its order, colour and effort, has one door.
    "gilscope.runners": (*USERS, "gilscope.toolkit.concurrency_models"),
}
ONLY_PLACES = {
    "pyperf": ("gilscope.toolkit.measure.child.base", "gilscope.toolkit.store"),
    "rich": ("gilscope.toolkit.report", "gilscope.toolkit.commands"),
    "shtab": ("gilscope.toolkit.cli",),
    "matplotlib": ("gilscope.toolkit.report.figures.plots",),
    "psutil": ("gilscope.toolkit.experiments.affinity.pinning",),
    "jinja2": ("gilscope.toolkit.site.page",),
    "dask": ("gilscope.toolkit.fleet", "gilscope.runners.dask_"),
    "distributed": ("gilscope.toolkit.fleet", "gilscope.runners.dask_"),
}
# Modules that run in other processes than gilscope's own: everything that they reach, and the packages among it.
# docs/design.md has the table for readers.
OTHER_PROCESSES = {
    "a measured process": (
        ("gilscope.toolkit.measure.child",),
        ("gilscope.toolkit.measure.child", "gilscope.toolkit.cores", "gilscope.toolkit.escaping",
         "gilscope.toolkit.processes", "gilscope.toolkit.records", "gilscope.toolkit.units", "gilscope.workloads",
         "gilscope.runners"),
        {"pyperf", "aiohttp", "numpy", "urllib3", "dask", "distributed"}),
    "a checked program": (
        ("gilscope.toolkit.race.child.main",),
        ("gilscope.toolkit.race", "gilscope.toolkit.builds", "gilscope.toolkit.errors", "gilscope.toolkit.escaping",
         "gilscope.toolkit.file_locks", "gilscope.toolkit.own_files", "gilscope.toolkit.processes",
         "gilscope.toolkit.programs", "gilscope.toolkit.user_dirs",
         # The installer, if the core comes from a wheel:
         "gilscope.toolkit.temporary", "gilscope.toolkit.records", "gilscope.toolkit.units",
         "gilscope.toolkit.bounded_reading", "gilscope.race", "gilscope.runners"),   # these two only on demand
        {"_pytest"}),
    "a process that `gilscope scale` measures": (
        ("gilscope.toolkit.scale.child.zygote",),
        ("gilscope.toolkit.scale.child", "gilscope.toolkit.measure.child.calls", "gilscope.toolkit.race",
         "gilscope.toolkit.hammer.calls", "gilscope.toolkit.hammer.targets",
         "gilscope.toolkit.builds", "gilscope.toolkit.cores", "gilscope.toolkit.errors", "gilscope.toolkit.escaping",
         "gilscope.toolkit.file_locks", "gilscope.toolkit.own_files", "gilscope.toolkit.processes",
         "gilscope.toolkit.programs", "gilscope.toolkit.user_dirs",
         # The installer, if the core comes from a wheel:
         "gilscope.toolkit.temporary", "gilscope.toolkit.records", "gilscope.toolkit.units",
         "gilscope.toolkit.bounded_reading", "gilscope.race", "gilscope.runners",
         "gilscope.toolkit.measure.child.user_code"),
        {"_pytest"}),
    "a test run with --gil=off": (
        ("gilscope.toolkit.gil_guard.plugin",),
        ("gilscope.toolkit.gil_guard", "gilscope.toolkit.bounded_reading", "gilscope.toolkit.errors",
         "gilscope.toolkit.escaping", "gilscope.toolkit.keyed_store", "gilscope.toolkit.own_files",
         "gilscope.toolkit.records",
         "gilscope.toolkit.temporary", "gilscope.toolkit.units", "gilscope.toolkit.user_dirs"),
        {"_pytest", "packaging", "pytest"}),
    "a process that calls C code from threads": (
        ("gilscope.toolkit.hammer.child",),
        ("gilscope.toolkit.hammer", "gilscope.toolkit.children", "gilscope.toolkit.processes"),
        {"_interpreters", "_xxsubinterpreters"}),
    "a child of evaluate": (
        ("gilscope.toolkit.children.child", "gilscope.toolkit.evaluate.packages.import_child",
         "gilscope.toolkit.evaluate.packages.slots_child", "gilscope.toolkit.evaluate.packages.pip_child",
         "gilscope.toolkit.evaluate.project.interpreter_child"),
        ("gilscope.toolkit.children", "gilscope.toolkit.evaluate.packages",
         "gilscope.toolkit.evaluate.project", "gilscope.toolkit.gil_guard.extension_loads",
         "gilscope.toolkit.builds.package_installer", "gilscope.toolkit.cores",
         "gilscope.toolkit.escaping", "gilscope.toolkit.measure.child.refusal", "gilscope.toolkit.processes",
         "gilscope.toolkit.temporary"),
        # One private module by its two names, of 3.13 and of 3.12: the oldest Python lists neither as its own.
        {"_interpreters", "_xxsubinterpreters", "pip"}),
}
# Files in a project's own process, loaded by their path: nothing of gilscope may be in `sys.modules` there.
ALONE = ("toolkit/gil_guard/extension_loads.py", "toolkit/gil_guard/code_under_test.py",
         "toolkit/gil_guard/witness/sitecustomize.py", "toolkit/evaluate/project/suite/witness/gilscope_at_once.py")
ABOVE = {"gilscope": ("gilscope.toolkit.race",),            # asked for by name, when somebody asks
         "gilscope.toolkit.race": ("gilscope.toolkit.race.watching",)}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for folder in OURS for path in sorted((ROOT / "gilscope" / folder).rglob("*.py"))}
SOURCES |= {module_name(path): path for path in sorted((ROOT / "gilscope").glob("*.py"))}


@functools.cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path):
    """Return what a module imports when it runs: not what only a type checker reads."""
    return imports_of(parsed(path))


def imports_of_all(modules):
    """Yield (module, what it imports) of those modules."""
    return ((module, name) for module in modules for name in imports(SOURCES[module]))


def imports_of(tree, *, types=False):
    """Return what a tree imports, with `types` also what only a type checker reads."""
    found, queue = set(), [tree]
    while queue:
        node = queue.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.If) and not types and getattr(node.test, "id", "") == "TYPE_CHECKING":
            queue += node.orelse
        else:   # no expression has a statement in it
            queue += [child for part in ("body", "orelse", "handlers", "finalbody", "cases")
                      for child in getattr(node, part, ())]
    return {resolved(name) for name in found}


def resolved(name):
    """Return the module of "module.name": the longest part of it that is a module of ours."""
    while within(name, "gilscope") and name not in SOURCES and "." in name:
        name = name.rpartition(".")[0]
    return name


def within(module, part):
    return module == part or module.startswith(part + ".")


def part_of(module):
    """Return the part that `module` belongs to: the longest name that it is or is below."""
    found = [part for layer in LAYERS for part in layer if within(module, part)]
    return max(found, key=len)


def level_of(part):
    return next(level for level, layer in enumerate(LAYERS) if part in layer)


def reachable(modules):
    """Return the modules of ours that `modules` import, at any depth, also inside of functions."""
    reached, queue = set(), [*modules]
    while queue:
        if (module := queue.pop()) not in reached:
            reached.add(module)
            queue += [name for name in imports(SOURCES[module]) if name in SOURCES]
    return reached


TOOLKIT = [module for module in SOURCES if within(module, "gilscope.toolkit") and module not in BESIDE]


def test_every_module_of_the_toolkit_has_a_layer():
    assert {module for module in TOOLKIT if part_of(module) == "gilscope.toolkit"} == {"gilscope.toolkit"}


def test_imports_come_from_layers_below():
    assert not [f"{module} imports {name}" for module, name in imports_of_all(TOOLKIT)
                if within(name, "gilscope.toolkit") and part_of(name) != part_of(module)
                and level_of(part_of(name)) <= level_of(part_of(module))]


@pytest.mark.parametrize("module", BESIDE)
def test_what_stands_beside_the_layers_knows_little(module):
    for name in imports(SOURCES[module]):
        if within(name, "gilscope.toolkit") and name not in {"gilscope.toolkit", module}:
            assert any(within(name, part) for part in BESIDE[module]), f"{module} imports {name}"


@pytest.mark.parametrize("process", OTHER_PROCESSES)
def test_other_processes_reach_few_parts_and_packages(process):
    entries, parts, packages = OTHER_PROCESSES[process]
    reached = reachable([module for module in SOURCES if any(within(module, entry) for entry in entries)])
    assert not [module for module in reached
                if not any(within(module, part) or within(part, module) for part in parts)]
    names = {name.partition(".")[0] for module in reached for name in imports(SOURCES[module])}
    assert names - set(sys.stdlib_module_names) - {"gilscope"} <= packages


@pytest.mark.parametrize("file", ALONE)
def test_files_in_a_projects_process_import_the_standard_library_and_pytest_alone(file):
    names = {name.partition(".")[0] for name in imports(ROOT / file)}
    assert names <= {*sys.stdlib_module_names, "pytest"}   # which runs the tests that they watch


def test_workloads_and_runners_are_imported_by_measure_and_commands_alone():
    assert not [f"{module} imports {name}" for module, name in imports_of_all(TOOLKIT)
                for package, allowed in ONLY_IMPORTERS.items()
                if within(name, package) and not any(within(module, part) for part in allowed)]


def test_workloads_and_runners_know_neither_each_other_nor_the_toolkit():
    below = [module for module in SOURCES if within(module, "gilscope.workloads") or within(module, "gilscope.runners")]
    assert not [f"{module} imports {name}" for module, name in imports_of_all(below)
                if within(name, "gilscope") and not within(name, ".".join(module.split(".")[:2]))]


def test_packages_are_imported_in_their_places_alone():
    assert not [f"{module} imports {name}" for module, name in imports_of_all(SOURCES)
                for package, allowed in ONLY_PLACES.items()
                if within(name, package) and not any(within(module, part) for part in allowed)]


def test_statistics_know_the_nouns_alone():
    for module, path in SOURCES.items():
        if within(module, "gilscope.toolkit.stats"):
            ours = {name for name in imports(path) if within(name, "gilscope")}
            assert all(within(name, "gilscope.toolkit.stats") or name == "gilscope.toolkit.model"
                       for name in ours), module


def test_folders_are_never_imported_by_their_own_names():
    # Only `gilscope` is installed: a module of a user's may have any other name.
    mention = re.compile(rf"^\s*(from|import)\b.*(?<![.\w])({'|'.join(OURS)})\b", re.MULTILINE)   # perhaps in a string
    paths = [path for folder in (*OURS, "gilscope", "tests") for path in (ROOT / folder).rglob("*.py")
             if not path.is_relative_to(ROOT / "tests" / "corpus")   # what is checked there is other people's code
             and mention.search(path.read_text(encoding="utf-8"))]
    assert not [f"{path} imports {name}" for path in paths for name in imports(path)
                if name.partition(".")[0] in OURS]


def test_package_of_a_task_or_runner_imports_nothing():
    # Each worker imports it: what stands here, every worker pays for.
    assert [imports(SOURCES[package]) for package in ("gilscope.workloads", "gilscope.runners")] == [set(), set()]


@functools.cache
def everything_imported(path):
    """Return what a module imports, also what only a type checker reads."""
    return imports_of(parsed(path), types=True)


def floors(needs):
    """Return entries floor by floor, the lowest first; those that need each other raise CycleError."""
    sorter = graphlib.TopologicalSorter(needs)
    sorter.prepare()
    found = []
    while ready := sorter.get_ready():
        found.append(ready)
        sorter.done(*ready)
    return found


def test_no_module_needs_one_that_needs_it():
    # Types included: what two files say of each other belongs into one, or into a third.
    needs = {module: {name for name in everything_imported(path) if name in SOURCES} - {module, *ABOVE.get(module, ())}
             for module, path in SOURCES.items()}
    assert floors(needs)


def needs_within(package):
    """Return which entries of a package, files and folders, need which others of it, types included."""
    def entry(module):
        if module == package:
            return "__init__"
        return module.removeprefix(f"{package}.").partition(".")[0] if within(module, package) else None

    needs = {}
    for module, path in SOURCES.items():
        if own := entry(module):
            # What every module imports by being in the package is no floor of it.
            found = {entry(name) for name in everything_imported(path) - {*ABOVE.get(module, ())}}
            needs.setdefault(own, set()).update(found - {None, own, "__init__"})
    return needs


@pytest.mark.parametrize("package", sorted(
    name for name, path in SOURCES.items() if path.name == "__init__.py" and name != "gilscope"))
def test_entries_of_a_folder_do_not_need_each_other(package):
    assert floors(needs_within(package)) is not None


# Ways to start a process, and the files that use one: the supervised ones, those in CONTRIBUTING's table of exceptions,
# and programs that run in processes of other builds, which gilscope's supervisor ends with them.
STARTS = {"subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call", "subprocess.check_output",
          "os.posix_spawn", "os.posix_spawnp", "os.fork", "os.forkpty", "os.system", "os.popen"}
STARTERS = {
    "toolkit/processes/supervised.py", "toolkit/processes/lifeline.py", "toolkit/processes/forks.py",
    "toolkit/processes/helper_process.py", "toolkit/measure/measured_process.py", "toolkit/programs/foreground.py",
    "toolkit/race/confirm/confirm.py",
    "toolkit/evaluate/packages/pip_child.py", "toolkit/evaluate/packages/slots_child.py",
    "toolkit/evaluate/project/interpreter_child.py", "toolkit/gil_guard/causes.py",
    "toolkit/experiments/lost_updates/program.py", "toolkit/measure/child/program.py"}


def test_processes_are_started_where_they_end_with_gilscope():
    found = {str(path.relative_to(ROOT)) for part in OURS for path in (ROOT / part).rglob("*.py")
             for node in ast.walk(parsed(path)) if isinstance(node, ast.Call) and ast.unparse(node.func) in STARTS}
    assert found <= STARTERS
    assert len(found) > len(STARTERS) // 2
