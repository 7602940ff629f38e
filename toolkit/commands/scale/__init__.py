"""`gilscope scale` and `pytest --scale`; the plugin's module is all that pytest imports without --scale."""

BUDGET = "10m"      # of --api on a build, and of the tests of a process
