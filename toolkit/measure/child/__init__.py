"""Code that runs inside measured processes, in the build being measured.

It is kept apart because it imports little: each import adds to the memory and the start-up time of every measured
process.
"""
