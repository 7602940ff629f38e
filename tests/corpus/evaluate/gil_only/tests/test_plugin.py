import sysconfig
import unittest

import plugin


class Plugin(unittest.TestCase):
    def test_file_name(self):
        multiarch, suffix = sysconfig.get_config_var("MULTIARCH"), sysconfig.get_config_var("EXT_SUFFIX")
        if not multiarch or multiarch not in suffix:
            self.skipTest("no such suffix on this system")
        assert plugin.file_name("fast") == f"fast{suffix}"
