"""Tells at its import what its process has inherited."""

import os

from standing import tell

tell(os.environ["GILSCOPE_TOLD"])
