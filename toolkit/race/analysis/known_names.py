"""Names of builtins, container methods and library functions that the analysis treats specially."""

import ast

from gilscope.toolkit.race.terms import MethodEffect, methods_with

ENVIRON = "environ"      # os.environ, the object of the standard library that programs change
DYNAMIC = frozenset({"getattr", "setattr", "delattr", "hasattr"})
SNAPSHOTS = frozenset({"list", "tuple", "set", "frozenset", "sorted", "dict"})    # copy a container in one step
ITERATING = {"sum": 0, "min": 0, "max": 0, "any": 0, "all": 0, "map": 1, "filter": 1, "zip": 0, "enumerate": 0}
ONE_ITERABLE = frozenset({"sum", "enumerate", "any", "all"})     # arguments after the iterable are no iterables
ONLY_IF_ALONE = frozenset({"min", "max"})      # with several arguments, these are the values themselves
VIEWS = frozenset({"items", "keys", "values"})
SHOWING = frozenset({"print", "str", "repr", "format"})      # these read a whole container
# Functions of the standard library that change their first argument in several steps.
REWRITING = {
    "heapq": frozenset({"heappush", "heappop", "heapify", "heapreplace", "heappushpop"}),
    "bisect": frozenset({"insort", "insort_left", "insort_right"}),
    "random": frozenset({"shuffle"}),
}
# Methods of containers, by the part of the container that they depend on.
SIZE_READS = methods_with(MethodEffect.READS_SIZE)
KEYED_METHODS = frozenset({"append", "appendleft", "add", "remove", "pop", "move_to_end"})
# Methods that change a container, without setdefault and discard, which are correct whatever a check found before.
MUTATORS = methods_with(MethodEffect.CHANGES) - {"setdefault", "discard"}
# Methods of objects outside of the project: no getters or setters of rewritten code.
FOREIGN_METHODS = frozenset({
    *dir(str), *dir(bytes), *dir(int), "acquire", "release", "locked", "wait", "wait_for", "notify", "notify_all",
    "is_set", "join", "start", "is_alive", "cancel", "cancelled", "result", "done", "submit", "shutdown", "map",
    "task_done", "read", "readline", "readlines", "write", "writelines", "flush", "seek", "tell", "fileno", "debug",
    "info", "warning", "error", "exception", "critical", "log", "send", "recv", "sendall", "close", "exists", "mkdir",
}) - {"count", "index", "find", "replace"}
LOCK_METHODS = frozenset({"acquire", "release", "lock", "unlock"})    # as in _core/locking/foreign_locks.c
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
QUIET = frozenset({
    "len", "isinstance", "int", "str", "float", "bool", "repr", "abs", "min", "max", "sum", "range", "sorted", "list",
    "tuple", "dict", "set", "print", "round", "divmod", "ord", "chr", "hash", "id", "type", "enumerate", "zip",
})
QUIET_METHODS = frozenset({
    "append", "appendleft", "add", "setdefault", "items", "keys", "values", "copy", "count", "index", "extend",
    "discard", "insert", "popleft", "remove", "popitem", "startswith", "endswith", "strip", "lower", "upper", "format",
})
# Calls that return a new object, which no other thread can have.
FRESH_CALLS = frozenset({
    "range", "enumerate", "zip", "map", "filter", "sorted", "list", "tuple", "set", "dict", "frozenset", "reversed",
    "str", "bytes", "open", "repr", "input", "dir", "bytearray",
})
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
