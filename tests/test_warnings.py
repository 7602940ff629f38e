"""Which warnings fail a test: those that our code causes, not what a dependency does to itself."""

import warnings

import pytest

pytestmark = pytest.mark.newest


def warn_from(module, category=DeprecationWarning):
    """Warn as a line of `module` does."""
    warnings.warn_explicit("old", category, filename=f"{module}.py", lineno=1, module=module, registry={})


@pytest.mark.parametrize("module", ["gilscope", "gilscope.toolkit.cli", "tests.test_cli", "tests.conftest", "__main__"])
@pytest.mark.parametrize("category", [DeprecationWarning, UserWarning, SyntaxWarning])
def test_warning_of_our_code_is_an_error(module, category):
    with pytest.raises(category, match="old"):
        warn_from(module, category)


def test_warning_for_our_call_of_a_dependency_is_an_error():
    def deprecated():
        warnings.warn("call something newer", DeprecationWarning, stacklevel=2)

    with pytest.raises(DeprecationWarning, match="newer"):
        deprecated()


def test_warning_inside_of_a_dependency_is_shown():
    with warnings.catch_warnings(record=True) as shown:   # with the filters of pyproject.toml
        warn_from("hypothesis.internal.entropy")
    assert [each.category for each in shown] == [DeprecationWarning]


@pytest.mark.parametrize("module", ["asyncio.base_events", "hypothesis"])
def test_resource_left_open_is_an_error_wherever_it_is_noticed(module):
    with pytest.raises(ResourceWarning):
        warn_from(module, ResourceWarning)


@pytest.mark.parametrize("category", [
    pytest.PytestUnraisableExceptionWarning, pytest.PytestUnhandledThreadExceptionWarning])
def test_error_that_nobody_could_catch_is_an_error(category):
    with pytest.raises(category):
        warn_from("_pytest.unraisableexception", category)
