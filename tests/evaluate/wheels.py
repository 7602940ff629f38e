"""Wheels made here, for installers that are given no index."""

import zipfile


def tag(build):
    """Return the tag of a wheel for a build on this kind of machine, whatever its C library."""
    number = build.minor.replace(".", "")
    return f"cp{number}-cp{number}{'t' if build.free_threaded else ''}-linux_x86_64"


def make_wheel(folder, name, version, build, files, needs=()):
    """Write a wheel of a build; a value of `files` is source text or the path of a compiled file."""
    path = folder / f"{name}-{version}-{tag(build)}.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        for inside, content in files.items():
            wheel.writestr(inside, content if isinstance(content, str) else content.read_bytes())
        needed = "".join(f"Requires-Dist: {each}\n" for each in needs)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag(build)}\n")
        wheel.writestr(f"{info}/RECORD", "".join(f"{inside},,\n" for inside in files))
    return path
