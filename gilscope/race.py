"""Check a piece of a program for data races: `with watch() as report:` and `@checked`."""

from gilscope.toolkit.race import RaceError, checked, watch

__all__ = ["RaceError", "checked", "watch"]
