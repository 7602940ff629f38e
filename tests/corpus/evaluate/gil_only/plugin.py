"""Find the compiled files of plugins."""

import sys
import sysconfig


def file_name(name):
    """Return the name of a plugin's file; forgets that builds without a GIL have a "t" in it."""
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    return f"{name}.cpython-{version}-{sysconfig.get_config_var('MULTIARCH')}.so"
