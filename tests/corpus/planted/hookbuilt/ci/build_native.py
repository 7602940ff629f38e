import os
import subprocess
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeHook(BuildHookInterface):
    def initialize(self, version, build_data):
        name = "native" + sysconfig.get_config_var("EXT_SUFFIX")
        out = os.path.join(self.root, "hookbuilt", name)
        subprocess.check_call(["gcc", "-shared", "-fPIC", "-O2", "-I" + sysconfig.get_path("include"),
                               os.path.join(self.root, "csrc", "native.c"), "-o", out])
        build_data["force_include"][out] = "hookbuilt/" + name
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
