# ruff: noqa: D100  a docstring would become the program's
# The first file of a checked process.  Its arguments end with this file, the spool folder, the first entry of sys.path,
# and the folder for our compiled modules.
# It imports the gilscope that it is part of, even if the build has another one installed, and leaves the rest to
# `main`.  It removes its names before the program starts.  Older Pythons must be able to parse it.
import sys


def _import_main():  # type: ignore[no-untyped-def]  # noqa: ANN202  a module
    if sys.version_info < (3, 12) or sys.implementation.name != "cpython":
        sys.stderr.write("gilscope: %s is %s %d.%d; the race checker needs CPython 3.12 or newer\n" % (  # noqa: UP031
            (sys.executable, sys.implementation.name, *sys.version_info[:2])))
        open(sys.argv[-3] + "/refused", "w").close()   # or the exit code would be taken for the program's
        raise SystemExit(2)
    # Ctrl-C before the program begins must show no traceback of ours.
    signal = __import__("_signal")
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    importlib, external = sys.modules["_frozen_importlib"], sys.modules["_frozen_importlib_external"]
    file, _, entry, cache = sys.argv[-4:]
    if not sys.flags.safe_path:
        sys.path[0] = entry
    kept = sys.dont_write_bytecode, sys.pycache_prefix
    if sys.dont_write_bytecode:
        # Compiling our modules would double the start.  `main` restores both settings.
        sys.dont_write_bytecode, sys.pycache_prefix = False, cache
    folder = file.rsplit("/", 4)[0]
    spec = external.spec_from_file_location("gilscope", folder + "/__init__.py", submodule_search_locations=[folder])
    package = sys.modules["gilscope"] = importlib.module_from_spec(spec)
    spec.loader.exec_module(package)
    main = __import__("gilscope.toolkit.race.child.main", fromlist=["main"])
    main.caching, main.interruptible = kept, interruptible  # type: ignore[attr-defined]  # of `main`
    return main


_import_main().main(sys.argv[-3])  # type: ignore[no-untyped-call]  # nor any type to import here
