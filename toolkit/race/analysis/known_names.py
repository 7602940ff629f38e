"""Names that the analysis treats specially for other reasons than their effects, which `race/effects.py` has."""

import ast

from gilscope.toolkit.race.effects import Fact, builtins_with, methods_with

ENVIRON = "environ"      # os.environ, the object of the standard library that programs change
DYNAMIC = frozenset({"getattr", "setattr", "delattr", "hasattr"})
# Methods of objects outside of the project: no getters or setters of rewritten code.
FOREIGN_METHODS = frozenset({
    *dir(str), *dir(bytes), *dir(int), "acquire", "release", "locked", "wait", "wait_for", "notify", "notify_all",
    "is_set", "join", "start", "is_alive", "cancel", "cancelled", "result", "done", "submit", "shutdown", "map",
    "task_done", "read", "readline", "readlines", "write", "writelines", "flush", "seek", "tell", "fileno", "debug",
    "info", "warning", "error", "exception", "critical", "log", "send", "recv", "sendall", "close", "exists", "mkdir",
}) - {"count", "index", "find", "replace"}
ITEM_METHODS = {"__getitem__": 1, "__setitem__": 2, "__delitem__": 1}    # explicit calls -> number of arguments
# Calls of these return another value each time, or remove what they return, so their result is no memo.
UNREPEATABLE = frozenset({
    "next", "id", "object", "input", "open", "iter", "random", "randint", "randrange", "choice", "choices", "shuffle",
    "sample", "uniform", "gauss", "uuid1", "uuid4", "token_hex", "token_bytes", "token_urlsafe", "urandom",
    "getrandbits", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "thread_time", "now", "utcnow", "today", "get_ident", "get_native_id", "current_thread", "current_task", "getpid",
    "pop", "popleft", "popitem", "get_nowait", "recv", "read", "readline", "send", "acquire", "__next__",
})
NAMESPACES = frozenset({"locals", "vars", "dir"})
# Calls that wait for no other thread: attributes read before them need no second op after them.
QUIET_METHODS = methods_with(Fact.QUIET) | {"startswith", "endswith", "strip", "lower", "upper", "format"}
# Calls that return a new object, which no other thread can have.
FRESH_CALLS = builtins_with(Fact.FRESH)
FRESH_METHODS = frozenset({
    "split", "rsplit", "splitlines", "partition", "rpartition", "encode", "decode", "strip", "lower", "upper",
    "readlines", "glob", "iterdir", "rglob", "most_common", "group", "groups", "finditer", "findall",
})
# Displays are new each time; the compiler must see them unchanged, since it warns of some operations on them.
LITERALS = (
    ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.JoinedStr, ast.FormattedValue, ast.Lambda,
    *(getattr(ast, name) for name in ("TemplateStr", "Interpolation") if hasattr(ast, name)),
)
INITIALIZERS = frozenset({"__init__", "__post_init__", "__new__", "__setstate__"})
