"""What several experiments repeat; each says its own headline by `dataclasses.replace`."""

from __future__ import annotations

from gilscope.toolkit.experiments.base import Source

BEAZLEY = Source(
    title="Inside the Python GIL", author="David Beazley", year=2009, url="http://www.dabeaz.com/python/GIL.pdf",
    headline="24.6 s sequential, 45.5 s with 2 threads, 38.0 s with one core off (100,000,000 decrements)",
)
SKVORTSOV = Source(
    title="Python behind the scenes #13: the GIL and its effects on Python multithreading", author="Victor Skvortsov",
    year=2021, url="https://tenthousandmeters.com/blog/"
    "python-behind-the-scenes-13-the-gil-and-its-effects-on-python-multithreading/",
    headline="6.52 to 6.59 s for 1 to 8 threads",
)
