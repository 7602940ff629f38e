"""gilscope measures what CPython's ways to run in parallel are worth, and finds data races.

`gilscope.race` checks a piece of a program for data races: `with gilscope.race.watch() as report:` and
`@gilscope.race.checked`.  `gilscope.SubinterpreterExecutor` runs calls in interpreters with a GIL each.  Everything
else is in the command `gilscope`.  The folders beside this file are links to `toolkit`, `workloads` and `runners` of
the repository: only one name is installed, which shadows no package of a user.

PYTEST_DONT_REWRITE: a program checked by `gilscope race` may be pytest, which would warn that this is imported already.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope import race
    from gilscope.runners.executor import SubinterpreterExecutor

__all__ = ["SubinterpreterExecutor", "__version__", "race"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # Every measured process, worker and interpreter imports this package, and so does each pytest with the plugin.
    if name == "race":
        import gilscope.race  # noqa: PLC0415

        return gilscope.race
    if name == "SubinterpreterExecutor":
        from gilscope.runners.executor import SubinterpreterExecutor  # noqa: PLC0415

        return SubinterpreterExecutor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
