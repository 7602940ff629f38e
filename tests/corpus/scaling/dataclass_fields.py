"""Every thread reads the fields of one frozen dataclass."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    rate: float
    label: str


SETTINGS = Settings(1.5, "settings of the application")


def f():
    total = 0.0
    for _ in range(100):
        total += SETTINGS.rate
    return total
