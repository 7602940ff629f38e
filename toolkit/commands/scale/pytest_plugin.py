"""`pytest --scale`: tell of each test whether its call scales over threads.

Pytest imports this module in every environment that has gilscope, so without --scale it imports nothing else.
"""

from __future__ import annotations

import pytest

from gilscope.toolkit.commands.scale import BUDGET

NAME = "gilscope_scaling"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --scale and --scale-budget."""
    group = parser.getgroup("scale", "scaling over threads (gilscope)")
    group.addoption(
        "--scale", action="store_true", dest="gilscope_scale",
        help="On a free-threaded build, also measure for each selected test that passes whether its call scales over "
        "two threads, and show at the end which object is in the way. The call is repeated many thousand times, in "
        "forks of the test process, with the fixtures of the test; it must take less than 0.25 s. A test takes some "
        "seconds, or up to a minute if it does not scale or the machine is busy: select few, with -k. No test fails "
        "because of it.")
    group.addoption(
        "--scale-budget", metavar="TIME", default="", dest="gilscope_scale_budget",
        help=f"With --scale: measure no further test once measuring has taken TIME (default: {BUDGET}). The tests that "
        "were left out are listed. Each worker of pytest-xdist has TIME, in which it also waits for the others.")


def pytest_configure(config: pytest.Config) -> None:
    """Begin if it is asked for."""
    options = config.option
    if not options.gilscope_scale:
        if options.gilscope_scale_budget:
            raise pytest.UsageError("--scale-budget goes with --scale")
        return
    if getattr(options, "gilscope_race", False):
        raise pytest.UsageError("--scale and --race do not go together: --race watches every access of the tests, so "
                                "--scale would measure its checks, not the tests; run pytest once with each")
    from gilscope.toolkit.commands.scale.pytest_scaling import begin

    config.pluginmanager.register(begin(options.gilscope_scale_budget or BUDGET), NAME)
