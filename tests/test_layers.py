"""Who may import whom: the layers of the architecture, checked on the syntax trees."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("toolkit", "workloads", "runners")

# From the top down; a part imports from lines below its own.  Parts of one line do not know each other.
LAYERS = (
    ("toolkit.__main__",),
    ("toolkit.cli",),
    ("toolkit.commands",),
    ("toolkit.evaluate",),
    ("toolkit.experiments",),
    ("toolkit.measure", "toolkit.gil", "toolkit.race", "toolkit.report", "toolkit.publish"),
    ("toolkit.store", "toolkit.table", "toolkit.builds"),
    ("toolkit.stats",),
    ("toolkit.model", "toolkit.units"),
    ("toolkit.errors",),
    ("toolkit",),   # its version
)
# What runs before anything is installed stands beside the layers and knows only what needs no package.
BESIDE = {"toolkit.bootstrap": ("toolkit.builds", "toolkit.errors")}
ONLY_IMPORTERS = dict.fromkeys(
    ("workloads", "runners"), ("toolkit.measure", "toolkit.experiments", "toolkit.evaluate", "toolkit.commands"))
ONLY_PLACES = {"pyperf": ("toolkit.measure.frame", "toolkit.store"), "rich": ("toolkit.report", "toolkit.commands"),
               "shtab": ("toolkit.cli",), "matplotlib": ("toolkit.report.plots",),
               "psutil": ("toolkit.experiments.programs.pinning",)}


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for folder in OURS for path in sorted((ROOT / folder).rglob("*.py"))}


def imports(path):
    """Return what a module imports when it runs: not what only a type checker reads."""
    return imports_of(path.read_text(encoding="utf-8"))


def imports_of(source):
    tree = ast.parse(source)
    conditions = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    unseen = {id(node) for condition in conditions if "TYPE_CHECKING" in ast.unparse(condition.test)
              for branch in condition.body for node in ast.walk(branch)}
    found = set()
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {resolved(name) for name in found}


def resolved(name):
    """Return the module of "module.name": the longest part of it that is a module of ours."""
    while name.partition(".")[0] in OURS and name not in SOURCES and "." in name:
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


TOOLKIT = [module for module in SOURCES if within(module, "toolkit") and module not in BESIDE]


def test_every_module_of_the_toolkit_has_a_layer():
    assert {module for module in TOOLKIT if part_of(module) == "toolkit"} == {"toolkit"}


@pytest.mark.parametrize("module", TOOLKIT)
def test_imports_come_from_layers_below(module):
    own = part_of(module)
    for name in imports(SOURCES[module]):
        if within(name, "toolkit") and part_of(name) != own:
            assert level_of(part_of(name)) > level_of(own), f"{module} imports {name}"


@pytest.mark.parametrize("module", BESIDE)
def test_what_stands_beside_the_layers_knows_little(module):
    for name in imports(SOURCES[module]):
        if within(name, "toolkit") and name not in {"toolkit", module}:
            assert any(within(name, part) for part in BESIDE[module]), f"{module} imports {name}"


@pytest.mark.parametrize("module", TOOLKIT)
def test_workloads_and_runners_are_imported_by_measure_and_commands_alone(module):
    for name in imports(SOURCES[module]):
        for package, allowed in ONLY_IMPORTERS.items():
            if within(name, package):
                assert any(within(module, part) for part in allowed), f"{module} imports {name}"


@pytest.mark.parametrize("module", [module for module in SOURCES if not within(module, "toolkit")])
def test_workloads_and_runners_know_neither_each_other_nor_the_toolkit(module):
    own = module.partition(".")[0]
    for name in imports(SOURCES[module]):
        assert name.partition(".")[0] not in {*OURS} - {own}, f"{module} imports {name}"


@pytest.mark.parametrize("module", SOURCES)
def test_packages_are_imported_in_their_places_alone(module):
    for name in imports(SOURCES[module]):
        for package, allowed in ONLY_PLACES.items():
            if within(name, package):
                assert any(within(module, part) for part in allowed), f"{module} imports {name}"


def test_statistics_know_the_nouns_alone():
    for module, path in SOURCES.items():
        if within(module, "toolkit.stats"):
            ours = {name for name in imports(path) if name.partition(".")[0] in OURS}
            assert all(within(name, "toolkit.stats") or name == "toolkit.model" for name in ours), module


def test_package_of_a_task_or_runner_imports_nothing():
    # Each worker imports it: what stands here, every worker pays for.
    assert [imports(SOURCES[package]) for package in ("workloads", "runners")] == [set(), set()]


@pytest.mark.parametrize(("source", "expected"), [
    ("import toolkit.store", {"toolkit.store"}),
    ("from toolkit import store", {"toolkit.store"}),
    ("from toolkit import __version__", {"toolkit"}),
    ("from toolkit.store import Store", {"toolkit.store"}),
    ("def f():\n    import toolkit.store", {"toolkit.store"}),
    ("if TYPE_CHECKING:\n    import toolkit.store\nelse:\n    import json", {"json"}),
    ("if typing.TYPE_CHECKING:\n    from toolkit.store import Store", set()),
])
def test_imports_are_found(source, expected):
    assert imports_of(source) == expected
