"""gilscope: what CPython's ways to run in parallel are worth, in numbers that can be believed.

`gilscope.race` checks a piece of a program for data races: `with gilscope.race.watch() as report:` and
`@gilscope.race.checked`.  The rest is the command `gilscope`.  The folders beside this file are links to `toolkit`,
`workloads` and `runners` of the repository, so that one name is installed and nothing of a user's is shadowed.

PYTEST_DONT_REWRITE: a program checked by `gilscope race` may be pytest, which would warn that this is imported already.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gilscope import race

__all__ = ["__version__", "race"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # Every measured process, worker and interpreter imports this package, and so does each pytest with the plugin.
    if name == "race":
        import gilscope.race  # noqa: PLC0415

        return gilscope.race
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
