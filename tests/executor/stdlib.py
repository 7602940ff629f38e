"""Run the standard library's own tests of executors on SubinterpreterExecutor: `python -m tests.executor.stdlib`.

Those of CPython 3.14 and newer, from its package `test`, are taken as they are; LEFT_OUT says which are not, and why.
The last line is JSON: the number of tests that ran, and the names of those that failed.
"""

import importlib
import json
import sys
import unittest

from gilscope import SubinterpreterExecutor
from tests.executor.tasks import Event

LEFT_OUT = {
    # They run a program that imports the class from concurrent.futures.
    "test_hang_gh83386", "test_hang_gh94440", "test_interpreter_shutdown", "test_submit_after_interpreter_shutdown",
}
MIXINS = {"executor": "ExecutorTest", "test_as_completed": "AsCompletedTests", "test_shutdown": "ExecutorShutdownTest",
          "test_wait": "WaitTests"}


class Ours:
    """What their tests expect of the class that they are mixed into."""

    executor_type = SubinterpreterExecutor
    worker_count = 3

    def setUp(self):
        self.executor = self.executor_type(self.worker_count)

    def tearDown(self):
        self.executor.shutdown()

    def create_event(self):
        return Event()


def theirs():
    """Yield their tests."""
    for module, name in MIXINS.items():
        mixin = getattr(importlib.import_module(f"test.test_concurrent_futures.{module}"), name)
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(type(name, (Ours, mixin, unittest.TestCase), {})):
            if test.id().rpartition(".")[2] not in LEFT_OUT:
                yield test


if __name__ == "__main__":
    result = unittest.TextTestRunner().run(unittest.TestSuite(theirs()))
    print(json.dumps([result.testsRun, [test.id() for test, _ in result.failures + result.errors]]))
    sys.exit(not result.wasSuccessful())
