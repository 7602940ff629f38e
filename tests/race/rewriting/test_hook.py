"""Project modules are rewritten as they are imported, others are not; the cache believes nothing that is damaged."""

import os
import subprocess
import sys
import textwrap
import traceback
import warnings
from pathlib import Path

import pytest

from gilscope.toolkit.race.loading import cache, hook
from gilscope.toolkit.race.loading.hook import link
from gilscope.toolkit.race.rewrite import compile_rewritten
from tests.conformance.builds import ROOT
from tests.patience import PATIENCE
from tests.race.fakes.stub import StubCore, in_builtins


@pytest.fixture
def core(tmp_path, monkeypatch):
    """Install the hook for what lies under tmp_path, with a cache of its own."""
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)
    core = StubCore()
    core.unrewritable = []
    undo = hook.install(core, lambda name, path: path.startswith(str(tmp_path)),
                        lambda path, reason: core.unrewritable.append((Path(path).name, reason)))
    yield core
    undo()
    for name in set(sys.modules) - known:
        if name.endswith("_of_hook"):
            del sys.modules[name]


def write(folder, name, text):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def ran(core):
    return [f"{info.op} {info.text}" for info in core.log]


def test_project_modules_are_rewritten(core, tmp_path):
    write(tmp_path, "jobs_of_hook.py", """
        class Job:
            pass
        def work(job):
            job.n = 1
            job.n += 1
            return job.n
    """)
    import jobs_of_hook
    assert jobs_of_hook.work(jobs_of_hook.Job()) == 2
    assert ran(core) == ["attr_write job.n", "attr_update job.n", "attr_read job.n"]
    assert jobs_of_hook.__spec__.origin == jobs_of_hook.__file__ == str(tmp_path / "jobs_of_hook.py")


def test_second_process_finds_it_in_the_cache(tmp_path):
    write(tmp_path, "jobs.py", "def work(x):\n    x.n = 1\n")
    code = textwrap.dedent("""
        import sys
        sys.path[:0] = [sys.argv[1], sys.argv[2]]
        from tests.race.fakes.stub import StubCore
        for name in ("ast", "gilscope.toolkit.race.rewrite", "gilscope.toolkit.race.analysis.scopes"):
            sys.modules.pop(name, None)
        from gilscope.toolkit.race.loading import hook
        core = StubCore()
        hook.install(core, lambda name, path: name == "jobs")
        import jobs
        jobs.work(core)
        print([info.op for info in core.log], "gilscope.toolkit.race.rewrite" in sys.modules)
    """)
    environment = {**os.environ, "GILSCOPE_CACHE": str(tmp_path / "cache")}
    seen = [subprocess.run([sys.executable, "-c", code, str(ROOT), str(tmp_path)], env=environment, check=True,
                           capture_output=True, text=True, timeout=PATIENCE).stdout.strip() for _ in range(2)]
    assert seen == ["['attr_write'] True", "['attr_write'] False"]


def test_start_of_a_checked_program_imports_little():
    code = ("import sys; before = set(sys.modules); import gilscope.toolkit.race.child.main; "
            "print(sorted({'ast', 're', 'inspect', 'typing', 'dataclasses', 'tokenize', 'enum', 'contextlib', "
            "'gilscope.toolkit.race.rewrite'} & (set(sys.modules) - before)))")
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True,
                          timeout=PATIENCE, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("damage", [
    lambda content: b"", lambda content: content[:-1], lambda content: content[:40] + b"?" + content[41:],
    lambda content: b"gilscope-race-0\n" + content[16:],
])
def test_a_damaged_entry_counts_as_none(tmp_path, monkeypatch, damage):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    source = b"x = 1\n"
    cache.save(source, "a.py", compile(source, "a.py", "exec"), [])
    assert cache.load(source, "a.py") is not None
    (entry,) = Path(cache.folder()).iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    assert cache.load(source, "a.py") is None


def test_an_entry_belongs_to_its_source_path_and_flavour(tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    cache.save(b"x = 1\n", "a.py", compile("x = 1", "a.py", "exec"), [])
    assert cache.load(b"x = 2\n", "a.py") is None
    assert cache.load(b"x = 1\n", "b.py") is None
    assert cache.load(b"x = 1\n", "a.py", "pytest") is None


def test_the_cache_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "MOST_ENTRIES", 8)
    for number in range(30):
        cache.save(b"%d" % number, "a.py", compile("1", "a.py", "exec"), [])
        assert len(list(Path(cache.folder()).iterdir())) <= 8
    assert cache.load(b"29", "a.py") is not None


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GILSCOPE_CACHE", str(tmp_path / "file"))
    cache.save(b"x", "a.py", compile("x", "a.py", "exec"), [])
    assert cache.load(b"x", "a.py") is None


def test_a_module_that_cannot_be_rewritten_runs_and_is_named(core, tmp_path, monkeypatch):
    from gilscope.toolkit.race import rewrite
    write(tmp_path, "odd_of_hook.py", "x = [1]\n")

    def fail(*_args, **_keywords):
        raise RecursionError("too deep")

    monkeypatch.setattr(rewrite, "compile_rewritten", fail)
    import odd_of_hook
    assert odd_of_hook.x == [1]
    assert core.unrewritable == [("odd_of_hook.py", "RecursionError: too deep")]


def test_syntax_errors_are_those_of_python(core, tmp_path):
    path = write(tmp_path, "wrong_of_hook.py", "x = (\n")
    with pytest.raises(SyntaxError, match="was never closed") as caught:
        import wrong_of_hook  # noqa: F401
    assert caught.value.filename == str(path)
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files == [__file__]      # importlib's frames are left out, and so are ours
    assert core.unrewritable == []


def test_an_error_of_a_module_shows_no_frame_of_ours(core, tmp_path):
    path = write(tmp_path, "raising_of_hook.py", "def f(x):\n    return x.a\nf(1)\n")
    with pytest.raises(AttributeError) as caught:
        import raising_of_hook  # noqa: F401
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files == [__file__, str(path), str(path)]


def test_a_script_warns_of_dubious_syntax_each_time(core, tmp_path):
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            hook.code_for_script(str(tmp_path / "s.py"), b"x = 1 is 1\n", core)
        assert [one.category for one in caught] == [SyntaxWarning]


def test_encodings_are_those_of_the_source(core, tmp_path):
    code = hook.code_for_script(str(tmp_path / "s.py"), "# coding: latin-1\nx = 'é'\ny = [x]\n".encode("latin-1"), core)
    namespace = {}
    exec(code, namespace)
    assert namespace["x"] == "é"


def test_what_counts_as_project_code(tmp_path):
    is_project = hook.project_filter(include=["yaml", "yaml.*", "toolkit.*"])
    assert is_project("app", str(tmp_path / "app.py"))
    assert is_project("yaml.loader", "/usr/lib/python3/dist-packages/yaml/loader.py")
    assert not is_project("attr", str(tmp_path / ".venv/lib/python3.13/site-packages/attr/__init__.py"))
    assert not is_project("queue", str(Path(os.__file__).with_name("queue.py")))
    assert not is_project("gilscope.toolkit.race.loading.hook", hook.__file__)     # not even with --include
    installed = tmp_path / "site-packages" / "tool" / "main.py"
    assert not hook.project_filter(str(tmp_path))("tool.main", str(installed))
    for source in ("pyproject.toml", "src/tool/main.py"):
        (tmp_path / source).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source).touch()
    assert hook.project_filter(str(tmp_path))("tool.main", str(installed))
    assert not is_project("tool.main", str(installed))


def test_finalizers_at_exit_still_find_the_operations(tmp_path):
    write(tmp_path, "jobs.py", """
        import sys
        class Job:
            def __init__(self, out):
                self.n, self.out, self.me = 1, out, self
            def __del__(self):
                self.n += 1
                self.out(1, b"done %d" % self.n)
        import os
        job = Job(os.write)
    """)
    code = ("import sys; sys.path[:0] = sys.argv[1:3]; from tests.race.fakes.stub import StubCore;"
            "from gilscope.toolkit.race.loading import hook;"
            "hook.install(StubCore(), hook.project_filter()); import jobs")
    done = subprocess.run([sys.executable, "-c", code, str(ROOT), str(tmp_path)], capture_output=True, text=True,
                          timeout=PATIENCE, check=True, env={**os.environ, "GILSCOPE_CACHE": str(tmp_path / "cache")})
    assert (done.stdout, done.stderr) == ("done 2", "")


def test_retired_operations_are_all_there_and_do_what_the_program_asks():
    from gilscope.toolkit.race.loading.shutdown_ops import operations
    from gilscope.toolkit.race.site import OPS
    from tests.race.rewriting import test_rewrite

    class Retired(StubCore):
        def __init__(self):
            super().__init__()
            self.ops = operations()

    assert set(operations()) == set(OPS)
    for text in test_rewrite.PROGRAMS.values():
        plain, core = {"__name__": "program"}, Retired()
        exec(compile(text, "program.py", "exec", dont_inherit=True), plain)
        with in_builtins(core):
            namespace = {"__name__": "program"}
            exec(link(*compile_rewritten(text, "program.py"), core), namespace)
        assert repr(namespace["result"]) == repr(plain["result"])
