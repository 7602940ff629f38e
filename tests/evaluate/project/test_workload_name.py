"""A workload that is not there is refused before anything is installed."""

import pytest

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.evaluate.project.discovery import find_project
from gilscope.toolkit.evaluate.project.workload.name_check import refuse_lone_options, refuse_misnamed
from gilscope.toolkit.evaluate.project.workload.rounds import UserWorkload
from gilscope.toolkit.evaluate.request import EvaluationRequest


@pytest.fixture
def project(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\nversion = '1'\n")
    (tmp_path / "src/shop").mkdir(parents=True)
    (tmp_path / "src/shop/__init__.py").write_text("from .all import *\n")
    (tmp_path / "src/shop/orders.py").write_text("import json\n\n\ndef price():\n    pass\n\n\nasync def pay(): ...\n")
    (tmp_path / "load.py").write_text("import shop\n")
    return find_project(tmp_path)


@pytest.mark.parametrize("text", [
    "shop.orders:price", "shop.orders:pay", "load.py",
    "shop:anything",        # the star may bring it
    "shop.orders:json.dumps",
    "numpy.linalg:norm",    # not the project's: it is looked for when it is imported
])
def test_what_may_be_there_passes(project, text):
    refuse_misnamed(text, project)


@pytest.mark.parametrize(("text", "complaint"), [
    ("nope.py", r"there is no such script$"),
    ("shop.orders.price", r"no such script; a function is named module:function, like shop.orders:price$"),
    ("shop.prices:price", r"shop has no module shop.prices$"),
    ("shop.orders:prize", r"orders.py has no prize; did you mean shop.orders:price\?$"),
    ("shop.orders:quux", r"orders.py has no quux$"),
    ("shop.orders:", r"write module:function"),
    (":price", r"write module:function"),
    ("shop/orders:price", r"write module:function"),
])
def test_what_cannot_be_there_is_refused(project, text, complaint):
    with pytest.raises(ToolkitError, match=complaint):
        refuse_misnamed(text, project)


@pytest.mark.parametrize(("definition", "needed"), [
    ("def load(n): ...", "n"), ("async def load(a, /, b, *, c, d=1): ...", "a, b, c"),
    ("def load(n=1, *rest, k=2, **more): ...", ""), ("@given\ndef load(n): ...", ""),
    ("if fast:\n    def load(n): ...", ""), ("def load(n): ...\ndef load(): ...", ""), ("load = other\n", ""),
])
def test_function_that_cannot_be_called_without_arguments_is_refused(project, definition, needed):
    (project.root / "load.py").write_text(f"{definition}\n")
    if needed:
        with pytest.raises(ToolkitError, match=f"called without arguments, and load needs {needed}; name a function"):
            refuse_misnamed("load:load", project)
    else:
        refuse_misnamed("load:load", project)


@pytest.mark.parametrize(("text", "needed"), [
    ("load:Load.plain", "self, n"), ("load:Load.shared", "n"), ("load:Load.alone", "n"),
    ("load:Load.ready", ""), ("load:Load.given", ""),
    ("load:imported", "a, b"), ("load:renamed", "a, b"), ("shop:priced", "n"), ("load:looping", ""),
])
def test_methods_and_imported_functions_are_known_before_anything_is_measured(project, text, needed):
    (project.root / "load.py").write_text(
        "from other import imported, imported as renamed\nfrom circle import looping\n\n\nclass Load:\n"
        "    def plain(self, n): ...\n    @classmethod\n    def shared(cls, n): ...\n    @staticmethod\n"
        "    def alone(n): ...\n    @staticmethod\n    def ready(n=1): ...\n    @given\n    def given(n): ...\n")
    (project.root / "other.py").write_text("def imported(a, b): ...\n")
    (project.root / "circle.py").write_text("from load import looping\n")
    (project.root / "src/shop/__init__.py").write_text("from .orders import priced\n")
    (project.root / "src/shop/orders.py").write_text("def priced(n): ...\n")
    if needed:
        with pytest.raises(ToolkitError, match=f"and {text.partition(':')[2]} needs {needed}; name a function"):
            refuse_misnamed(text, project)
    else:
        refuse_misnamed(text, project)


@pytest.mark.parametrize(("text", "payloads", "complaint"), [
    ("load:load", "load:orders", None),
    ("load:load", "load:order", r"--payloads load:order: .*load.py has no order"),
    ("load:load", "orders", r"--payloads orders: write module:name"),
    ("load:load", "shop.prices:all", r"--payloads shop.prices:all: shop has no module shop.prices$"),
    ("load:load load:orders", None, r"write module:function"),   # it has an option
])
def test_payloads_of_a_function_are_looked_for(project, text, payloads, complaint):
    (project.root / "load.py").write_text("orders = [1, 2]\n\n\ndef load(n): ...\n")
    if complaint is None:
        refuse_misnamed(text, project, payloads)
    else:
        with pytest.raises(ToolkitError, match=complaint):
            refuse_misnamed(text, project, payloads)


@pytest.mark.parametrize("workload", ["load.py", None])
@pytest.mark.parametrize(("options", "complaint"), [
    ({"payloads": "load:orders"}, r"--payloads load:orders is for a function: name it as --workload module:function"),
    ({"calls": 3}, r"--calls 3 is for a function: name it as --workload module:function"),
])
def test_payloads_and_calls_are_for_a_function(tmp_path, workload, options, complaint):
    with pytest.raises(ToolkitError, match=complaint):
        refuse_lone_options(EvaluationRequest(path=tmp_path, workload=workload, **options))
    refuse_lone_options(EvaluationRequest(path=tmp_path, workload="load:load", **options))


def test_request_repeats_the_payloads_and_the_calls(tmp_path):
    request = EvaluationRequest(path=tmp_path, workload="load:load", payloads="load:orders", calls=100)
    assert request.called == "load:load load:orders"
    assert request.command().endswith("--workload load:load --payloads load:orders --calls 100")
    assert UserWorkload.of(request.called, tmp_path) == UserWorkload(kind="function", name=request.called)
