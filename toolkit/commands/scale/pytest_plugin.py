"""`pytest --scale`: tell of each test whether its call scales over threads.

Pytest imports this module in every environment that has gilscope, so without --scale it imports nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest

NAME = "gilscope_scaling"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --scale."""
    group = parser.getgroup("scale", "scaling over threads (gilscope)")
    group.addoption(
        "--scale", action="store_true", dest="gilscope_scale",
        help="On a free-threaded build, also measure for each selected test that passes whether its call scales over "
        "two threads, and show at the end which object is in the way. The call is repeated many thousand times, in "
        "forks of the test process, with the fixtures of the test; it must take less than 0.25 s. A test takes some "
        "seconds, or up to a minute if it does not scale or the machine is busy: select few, with -k. No test fails "
        "because of it.")


def pytest_configure(config: pytest.Config) -> None:
    """Begin if it is asked for."""
    if config.option.gilscope_scale:
        from gilscope.toolkit.commands.scale.pytest_scaling import begin

        config.pluginmanager.register(begin(), NAME)
