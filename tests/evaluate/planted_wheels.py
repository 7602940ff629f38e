"""Sets of wheels that each have one thing wrong, the codes that this must be called, and repairs of some of them."""

import io
import tarfile
import zipfile
from dataclasses import dataclass, field

LINUX = "linux_x86_64"
CLASSIFIER = "Classifier: Programming Language :: Python :: Free Threading :: 2 - Beta\n"
GIL_BYTES, FREE_BYTES = b"\0_Py_Dealloc\0", b"\0_Py_DecRefShared\0"   # what compiled code of each kind refers to


@dataclass
class WheelKit:
    """Write wheels into a folder, from one library of each build."""

    folder: object
    minor: str                   # "14"
    libraries: dict              # "314" and "314t": bytes of the library of all variants
    name: str = "thing"
    told: dict = field(default_factory=dict)

    @property
    def gil(self):
        return f"3{self.minor}"

    @property
    def free(self):
        return f"3{self.minor}t"

    def module(self, kind, name, extra=b"", *, suffix=None, folder=None):
        """Return path and content of an extension file of a build."""
        end = suffix if suffix is not None else f".cpython-{kind}-x86_64-linux-gnu"
        return {f"{folder or self.name}/{name}{end}.so": self.libraries[kind] + extra}

    def package(self, kind, *modules, text=None, **how):
        """Return the files of a package whose `__init__` imports these extension modules."""
        files = {f"{self.name}/__init__.py": text if text is not None else "".join(
            f"import {self.name}.{each}\n" for each in modules)}
        for each in modules:
            files |= self.module(kind, each, **how)
        return files

    def wheel(self, tag, files, metadata="", *, written=None, version="1.0", name=None, told_name=None):
        """Write a wheel with this tag; `written` is the tag in its WHEEL."""
        name = name or self.name
        info = f"{name}-{version}.dist-info"
        path = self.folder / f"{name}-{version}-{tag}.whl"
        text = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {told_name or name}\nVersion: {version}\n{metadata}",
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {written or tag}\n",
            f"{info}/RECORD": "".join(f"{inside},,\n" for inside in files)}
        with zipfile.ZipFile(path, "w") as archive:
            for inside, content in (files | text).items():
                # Without the time, so that equal sets share their environments.
                archive.writestr(zipfile.ZipInfo(inside), content)
        return path

    def both(self, gil_files, free_files, metadata="", platform=LINUX):
        """Write the wheel of each build."""
        self.wheel(f"cp{self.gil}-cp{self.gil}-{platform}", gil_files, metadata)
        self.wheel(f"cp{self.gil}-cp{self.free}-{platform}", free_files, metadata)

    def sdist(self):
        """Write an sdist."""
        text = f"Metadata-Version: 2.1\nName: {self.name}\nVersion: 1.0\n".encode()
        with tarfile.open(self.folder / f"{self.name}-1.0.tar.gz", "w:gz") as archive:
            entry = tarfile.TarInfo(f"{self.name}-1.0/PKG-INFO")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))

    # What most sets have: the wheel of the build with the GIL, and a good one without.
    def good_gil(self, *modules, **how):
        return self.package(self.gil, *(modules or ("multi_best",)), **how)

    def good_free(self, *modules, **how):
        return self.package(self.free, *(modules or ("multi_best",)), **how)


def good(kit):
    kit.both(kit.good_gil(), kit.good_free(), CLASSIFIER)


def turns_on(module):
    return lambda kit: kit.both(kit.good_gil(module), kit.good_free(module), CLASSIFIER)


def only_gil(kit):
    kit.wheel(f"cp{kit.gil}-cp{kit.gil}-{LINUX}", kit.good_gil())


def sdist_only(kit):
    only_gil(kit)
    kit.sdist()


def abi3_only(kit):
    kit.wheel(f"cp310-abi3-{LINUX}", kit.good_gil(suffix=".abi3"))


def abi3_and_free(kit):
    abi3_only(kit)
    kit.wheel(f"cp{kit.gil}-cp{kit.free}-{LINUX}", kit.good_free())


def abi3_over_free_file(kit):
    kit.wheel(f"cp310-abi3-{LINUX}", kit.good_free())


def abi3_over_one_version(kit):
    kit.wheel(f"cp310-abi3-{LINUX}", kit.good_gil())
    kit.wheel(f"cp{kit.gil}-cp{kit.free}-{LINUX}", kit.good_free())


def free_file_in_pure_wheel(kit):
    kit.wheel("py3-none-any", kit.good_free())


def gil_file_in_free_wheel(kit):
    kit.both(kit.good_gil(), kit.package(kit.gil, "multi_best", text=FALLBACK))


FALLBACK = "try:\n    from thing import multi_best\nexcept ImportError:\n    multi_best = None\n"


def abi3_in_free_wheel(kit):
    kit.both(kit.good_gil(), kit.package(kit.gil, "multi_best", suffix=".abi3"))


def only_named_abi3(kit):
    kit.both(kit.good_gil(), kit.good_free(suffix=".abi3", extra=FREE_BYTES))


def pure_beside_gil(kit):
    only_gil(kit)
    kit.wheel("py3-none-any", {"thing/__init__.py": ""})


def lost_module(kit):
    kit.both(kit.good_gil("multi_best", "multi_own", text=FALLBACK), kit.good_free(text=FALLBACK))


def both_modules(kit):
    # The other one declares that it needs no GIL.
    kit.both(kit.good_gil("multi_best", "multi_free", text=FALLBACK), kit.good_free("multi_best", "multi_free",
                                                                                   text=FALLBACK))


def classified_without_wheel(kit):
    kit.wheel(f"cp{kit.gil}-cp{kit.gil}-{LINUX}", kit.good_gil(), CLASSIFIER)


def other_tags_inside(kit):
    kit.wheel(f"cp{kit.gil}-cp{kit.gil}-{LINUX}", kit.good_gil())
    kit.wheel(f"cp{kit.gil}-cp{kit.free}-{LINUX}", kit.good_free(), written=f"cp{kit.gil}-cp{kit.gil}-{LINUX}")


def crashes(kit):
    kit.both(kit.good_gil(), kit.good_free("crashing"))


def refuses_python(kit):
    kit.both(kit.good_gil(), kit.good_free(), f"Requires-Python: <3.{kit.minor}\n")


def mac_only(kit):
    good(kit)
    files = {"thing/__init__.py": "", f"thing/multi_best.cpython-{kit.gil}-darwin.so": b"PyInit_multi_best\0"}
    kit.wheel(f"cp{kit.gil}-cp{kit.gil}-macosx_11_0_arm64", files, CLASSIFIER)


def mac_both(kit):
    mac_only(kit)
    files = {"thing/__init__.py": "", f"thing/multi_best.cpython-{kit.free}-darwin.so": FREE_BYTES}
    kit.wheel(f"cp{kit.gil}-cp{kit.free}-macosx_11_0_arm64", files, CLASSIFIER)


def windows_lacks_module(kit):
    good(kit)
    for kind, modules in ((kit.gil, ("one", "two")), (kit.free, ("one",))):
        kit.wheel(f"cp{kit.gil}-cp{kind}-win_amd64", {"thing/__init__.py": ""} | {
            f"thing/{each}.cp{kind}-win_amd64.pyd": b"" for each in modules}, CLASSIFIER)


def metadata_differs(kit):
    kit.wheel(f"cp{kit.gil}-cp{kit.gil}-{LINUX}", kit.good_gil(), CLASSIFIER)
    kit.wheel(f"cp{kit.gil}-cp{kit.free}-{LINUX}", kit.good_free(), f"{CLASSIFIER}Requires-Python: >=3.{kit.minor}\n")


def compiled_with_gil(kit):
    kit.both(kit.good_gil(extra=GIL_BYTES), kit.good_free(extra=GIL_BYTES))


def compiled_for_each(kit):
    kit.both(kit.good_gil(extra=GIL_BYTES), kit.good_free(extra=FREE_BYTES))


def other_machine(kit):
    files = {"thing/__init__.py": FALLBACK, **kit.module(
        kit.free, "multi_best", suffix=f".cpython-{kit.free}-aarch64-linux-gnu")}
    kit.both(kit.good_gil(text=FALLBACK), files)


def damaged_among_good(kit):
    good(kit)
    (kit.folder / f"thing-1.0-cp{kit.gil}-cp{kit.free}-win_amd64.whl").write_bytes(b"PK no zip at all")


def needs_one_that_turns_it_on(kit):
    kit.both(kit.good_gil(), kit.good_free(), "Requires-Dist: other\n")
    other = WheelKit(kit.folder, kit.minor, kit.libraries, name="other")
    turns_on("multi_used")(other)


def newer_libc(kit):
    kit.both(kit.good_gil(), kit.good_free(), platform="manylinux_2_99_x86_64")


def untagged(kit):
    kit.wheel(f"py3-none-{LINUX}", kit.good_free(suffix=""))


GIL_ON, CLASSIFIED = "import.turns-gil-on", "metadata.classifier-contradicted"
# What is planted; the codes of findings about the project that are no mere notes; the repair.
SETS = {
    "good": (good, set(), None),
    "both modules": (both_modules, set(), None),
    "gil used": (turns_on("multi_used"), {GIL_ON, CLASSIFIED}, good),
    "single phase": (turns_on("single_plain"), {GIL_ON, CLASSIFIED}, turns_on("single_free")),
    "no slot": (turns_on("multi_plain"), {GIL_ON, CLASSIFIED}, turns_on("multi_free")),
    "only the GIL": (only_gil, {"missing.wheel"}, good),
    "sdist only": (sdist_only, {"missing.wheel-but-sdist"}, good),
    "abi3 only": (abi3_only, {"missing.wheel"}, abi3_and_free),
    "abi3 over a free-threaded file": (
        abi3_over_free_file, {"missing.wheel", "wheel.file-for-another-build"}, abi3_and_free),
    "abi3 over one version": (abi3_over_one_version, {"wheel.tag-too-wide"}, abi3_and_free),
    "free-threaded file in a pure wheel": (
        free_file_in_pure_wheel, {"wheel.extension-in-pure-wheel"}, good),
    "GIL file in a free-threaded wheel": (
        gil_file_in_free_wheel, {"wheel.file-for-another-build", "import.loses-c-code"}, good),
    "abi3 file in a free-threaded wheel": (
        abi3_in_free_wheel, {"wheel.abi3-file-without-gil", "import.cannot-be-imported"}, good),
    "abi3 in name only": (only_named_abi3, {"wheel.abi3-file-without-gil"}, good),
    "pure beside the GIL": (pure_beside_gil, {"missing.c-code", "import.loses-c-code"}, good),
    "lost module": (lost_module, {"import.loses-c-code"}, both_modules),
    "classifier without a wheel": (classified_without_wheel, {"missing.wheel", CLASSIFIED}, good),
    "other tags inside": (other_tags_inside, {"wheel.other-tags-inside"}, good),
    "crashes": (crashes, {"import.crashes"}, good),
    "refuses this Python": (refuses_python, {"missing.wheel", "wheel.no-known-build"}, good),
    "macOS without": (mac_only, {"missing.platform"}, mac_both),
    "Windows lacks a module": (windows_lacks_module, {"missing.c-code"}, None),
    "metadata differs": (metadata_differs, {"metadata.differs"}, good),
    "compiled with the GIL": (compiled_with_gil, {"wheel.compiled-for-another-build"}, compiled_for_each),
    "file of another machine": (
        other_machine, {"wheel.file-for-another-platform", "import.loses-c-code"}, good),
    "damaged among good ones": (damaged_among_good, {"not-an-archive"}, good),
    "needs one that turns it on": (needs_one_that_turns_it_on, {"import.dependency-blocks"}, None),
    "newer C library": (newer_libc, {"missing.wheel"}, good),
    "untagged file": (untagged, {"wheel.untagged-file"}, None),
}
