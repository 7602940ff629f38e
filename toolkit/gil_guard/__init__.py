"""Watch a run of tests for what turns the GIL on: `pytest --gil=off`, and the test runs of `gilscope evaluate`."""
