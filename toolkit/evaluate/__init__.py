"""Can a project move to a build without a GIL, to subinterpreters or processes, and what is in the way?

Nothing of a project or package is ever imported in our own process: `children` starts processes of the builds.
"""
