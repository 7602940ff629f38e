"""`pytest --gil=off`: fail the first test or import that turns the GIL on.

Pytest imports this module in every environment that has gilscope, so without --gil it imports nothing else.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

NAME = "gilscope_gil_guard"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --gil and --gil-json."""
    group = parser.getgroup("gil", "the GIL on free-threaded builds (gilscope)")
    group.addoption(
        "--gil", choices=("off",), default="", dest="gilscope_gil",
        help="On a free-threaded build, fail the first test or import that turns the GIL on, and name the module and "
        "who imports it. Also count the tests in which a second thread ran the project's code. Use it in CI before "
        "you declare support for free-threading.")
    group.addoption(
        "--gil-json", metavar="FILE", default="", dest="gilscope_gil_json",
        help="With --gil=off: also write what was found as JSON to FILE. Use it in scripts.")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    """Begin before any conftest.py is imported, and check those that are imported now."""
    guard = _begin(early_config, early_config.known_args_namespace)
    result = yield
    if guard is not None:
        guard.check_start()
    return result


def pytest_configure(config: pytest.Config) -> None:
    """Begin now if the plugin was loaded too late for the hook above."""
    guard = _begin(config, config.option)
    if guard is not None:
        guard.check_start()


def _begin(config: pytest.Config, options: Any) -> Any:
    """Return the guard of this process; None without --gil."""
    if not options.gilscope_gil:
        if options.gilscope_gil_json:
            raise pytest.UsageError("--gil-json goes with --gil=off")
        return None
    guard = config.pluginmanager.get_plugin(NAME)
    if guard is None:
        from gilscope.toolkit.gil_guard.guard import begin

        guard = begin(config, options)
        config.pluginmanager.register(guard, NAME)
    return guard
