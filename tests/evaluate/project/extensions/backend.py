"""A build backend of a test project's own (PEP 517): compiles `pkg/_c.c` by the compiler at hand, downloads nothing.

What the compiler refuses it leaves out where the project says "optional", as setuptools does, in its words.
"""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

TAG = "py3-none-any"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Write the wheel of the project in the current folder."""
    root = Path("src") if Path("src").is_dir() else Path()
    files = {f"pkg/{path.name}": path.read_bytes() for path in sorted((root / "pkg").glob("*.py"))}
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    print("building 'pkg._c' extension", flush=True)
    include = f"-I{sysconfig.get_path('include')}"
    command = ["cc", "-shared", "-fPIC", "-O0", include, f"{root}/pkg/_c.c", "-o", "made.so"]
    if subprocess.run(command, check=False).returncode == 0:
        files[f"pkg/_c{suffix}"] = Path("made.so").read_bytes()
    elif "optional" in Path("pyproject.toml").read_text(encoding="utf-8"):
        print("building extension \"pkg._c\" failed: command 'cc' failed with exit code 1", file=sys.stderr, flush=True)
    else:
        raise SystemExit("error: command 'cc' failed with exit code 1")
    info = "made-1.0.dist-info"
    files |= {f"{info}/METADATA": b"Metadata-Version: 2.1\nName: made\nVersion: 1.0\n",
              f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode()}
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    name = f"made-1.0-{TAG}.whl"
    with zipfile.ZipFile(Path(wheel_directory, name), "w") as wheel:
        for inside, content in files.items():
            wheel.writestr(inside, content)
        wheel.writestr(f"{info}/RECORD", record)
    return name
