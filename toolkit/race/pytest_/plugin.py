"""`pytest --race`: every test is checked for data races of its own, and a race fails it.

Pytest imports this module in every environment that has gilscope, so without --race it does nothing, imports nothing.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "gilscope_race_checks"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --race and what goes with it."""
    group = parser.getgroup("race", "data races (gilscope)")
    group.addoption(
        "--race", action="store_true", dest="gilscope_race",
        help="Check every test for data races, also for those that did no harm. A race fails the test.")
    group.addoption(
        "--race-notes", action="store_true", dest="gilscope_race_notes",
        help="Also show, at the end, what is unordered but harmless.")
    group.addoption(
        "--race-include", metavar="GLOB", action="append", default=[], dest="gilscope_race_include",
        help="Also check modules that match GLOB, of the standard library or of installed packages; may be repeated.")
    group.addoption(
        "--race-core", choices=("c", "python"), default="", dest="gilscope_race_core",
        help="Use this core (default: c where it can be built).")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before any conftest.py is imported, so that it is checked, too."""
    if early_config.known_args_namespace.gilscope_race:
        _begin(early_config, early_config.known_args_namespace)


def pytest_configure(config: pytest.Config) -> None:
    """Begin now where the plugin came too late to do so earlier."""
    if config.option.gilscope_race:
        _begin(config, config.option)


def _begin(config: pytest.Config, options: Any) -> None:
    if config.pluginmanager.has_plugin(NAME):
        return
    from gilscope.toolkit.race.pytest_.checks import begin

    config.pluginmanager.register(begin(config, options), NAME)
