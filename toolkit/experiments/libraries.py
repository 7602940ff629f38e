"""The libraries that experiments measure, and what to say where one of them is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.experiments.base import Package

if TYPE_CHECKING:
    from gilscope.toolkit.experiments.base import Setting
    from gilscope.toolkit.model import Build

REQUESTS = Package(requirement="requests>=2.32", module="requests")
AIOHTTP = Package(requirement="aiohttp>=3.13", module="aiohttp")
TORNADO = Package(requirement="tornado>=6.5", module="tornado")
GEVENT = Package(requirement="gevent>=25.4", module="gevent")
SLOW_PARSER = "aiohttp reads HTTP with its parser in pure Python here: there is no wheel with the one in C"
CONTROL = "threads on a free-threaded build run with its GIL turned on."
NO_GREENLETS = "gevent takes part on builds with a GIL: there are no wheels of it for free-threaded builds"


def missing(setting: Setting, build: Build, *packages: Package) -> str | None:
    """Return why `build` lacks one of the packages and how to get it, None when it has them all."""
    for package in packages:
        if package is GEVENT and build.free_threaded:
            return NO_GREENLETS
        if reason := setting.module_reason(build, package.module):
            return (f"{reason}; take a build that {package.module} has a wheel for, or install '{package.requirement}' "
                    "into the environment of this one")
    return None
