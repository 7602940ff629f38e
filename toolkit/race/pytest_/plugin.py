"""`pytest --race`: check each test for data races; a race fails the test.

Pytest imports this module in every environment that has gilscope, so without --race it imports nothing else.
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
        help="Check every test for data races, including those that did no harm this time. A race fails the test.")
    group.addoption(
        "--race-notes", action="store_true", dest="gilscope_race_notes",
        help="Also show unordered accesses that are harmless, at the end. Use it for a review.")
    group.addoption(
        "--race-learn", action="store_true", dest="gilscope_race_learn",
        help="Add an entry for each finding to the suppress list in pyproject.toml, as unreviewed; no finding fails "
        "this run. Use it once, so that from then on only new ones fail; then review each entry and write why.")
    group.addoption(
        "--race-include", metavar="GLOB", action="append", default=[], dest="gilscope_race_include",
        help="Also check modules that match GLOB, in the standard library or in installed packages (default: the "
        "project's own code). Repeatable.")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before any conftest.py is imported, so that it is checked as well."""
    if early_config.known_args_namespace.gilscope_race:
        _begin(early_config, early_config.known_args_namespace)


def pytest_configure(config: pytest.Config) -> None:
    """Begin now if the plugin was loaded too late for the hook above.

    Raises:
        pytest.UsageError: There is nothing to learn from.
    """
    if config.option.gilscope_race:
        _begin(config, config.option)
    elif config.option.gilscope_race_learn:
        raise pytest.UsageError("--race-learn needs --race, which finds what to learn")


def _begin(config: pytest.Config, options: Any) -> None:
    if config.pluginmanager.has_plugin(NAME):
        return
    from gilscope.toolkit.race.pytest_.checks import begin

    config.pluginmanager.register(begin(config, options), NAME)
