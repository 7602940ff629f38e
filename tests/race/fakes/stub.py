"""A core that does what each op must do natively and writes down which ops ran."""

import builtins
import contextlib

from gilscope.toolkit.race.loading.hook import link
from gilscope.toolkit.race.rewrite import compile_rewritten
from gilscope.toolkit.race.site import OP_PREFIX


class Proxy:
    """Passes items and attributes on, recording each."""

    __slots__ = ("_made",)

    def __init__(self, made):
        object.__setattr__(self, "_made", made)

    def __getitem__(self, key):
        return object.__getattribute__(self, "_made")[0][key]

    def __setitem__(self, key, value):
        object.__getattribute__(self, "_made")[0][key] = value

    def __delitem__(self, key):
        del object.__getattribute__(self, "_made")[0][key]

    def __getattribute__(self, name):
        return getattr(object.__getattribute__(self, "_made")[0], name)

    def __setattr__(self, name, value):
        setattr(object.__getattribute__(self, "_made")[0], name, value)

    def __delattr__(self, name):
        delattr(object.__getattribute__(self, "_made")[0], name)


class Site:
    """What the core makes of a SiteInfo; identity decides, as for any constant of free-threaded code."""

    def __init__(self, info, number):
        self.info = info
        self.number = number


class StubCore:
    """The Core protocol as far as code that runs under rewriting needs it."""

    name = "Stub"

    def __init__(self):
        self.log = []      # SiteInfo of each op that ran
        self.ops = {name.removeprefix("op_"): self._recording(getattr(self, name))
                    for name in dir(self) if name.startswith("op_")}
        self.ops |= {"token": object, "slice_": slice, "begin": lambda: 0, "locals_": self._locals,
                     "locking": lambda lock, _method="": lock}

    def _recording(self, function):
        def op(*arguments):
            site = next(argument for argument in arguments if type(argument) is Site)
            self.log.append(site.info)
            return function(*arguments)
        return op

    @staticmethod
    def _locals(found):
        if isinstance(found, list):
            return [name for name in found if not name.startswith(OP_PREFIX)]
        return {name: value for name, value in found.items() if not name.startswith(OP_PREFIX)}

    def op_attr_read(self, owner, site): return owner
    def op_attr_write(self, owner, site): return owner
    def op_attr_update(self, owner, site): return owner
    def op_attr_proxy(self, owner, site): return Proxy((owner,))
    def op_attr_store(self, value, owner, site): setattr(owner, site.info.key, value)
    def op_item_read(self, container, key, site): return container[key]
    def op_item_write(self, value, container, key, site): container[key] = value
    def op_item_delete(self, container, key, site): del container[key]
    def op_item_proxy(self, container, site): return Proxy((container,))
    def op_global_read(self, value, site): return value
    def op_global_write(self, value, site): return value
    def op_global_update(self, value, site): return value
    def op_cell_read(self, value, token, site): return value
    def op_cell_write(self, value, token, site): return value
    def op_cell_update(self, value, token, site): return value
    def op_method(self, container, site): return container
    def op_contains(self, key, container, site): return key in container
    def op_size(self, container, site): return container
    def op_iterate(self, iterable, site): return iterable
    def op_advance(self, iterator, site): return iterator
    def op_dynamic(self, function, site, *arguments): return function(*arguments)
    def op_enter(self, site): return None
    def op_reads(self, position, value, site): return value
    def op_writes(self, position, value, site): return value

    def site(self, info, number):
        return Site(info, number)

    def mute(self):
        return 0

    def restore(self, level):
        return None

    def busy(self):
        return contextlib.nullcontext()


@contextlib.contextmanager
def in_builtins(core):
    """Have the core's ops among the builtins."""
    names = {OP_PREFIX + name: op for name, op in core.ops.items()}
    vars(builtins).update(names)
    try:
        yield core
    finally:
        for name in names:
            del vars(builtins)[name]


def run(source, namespace=None, path="program.py"):
    """Run the rewritten source; return its namespace and the sites of the ops that ran."""
    code, infos = compile_rewritten(source, path)
    namespace = {"__name__": "program"} if namespace is None else namespace
    with in_builtins(StubCore()) as core:
        exec(link(code, infos, core), namespace)
    return namespace, core.log


def sites(source, path="program.py"):
    """Return the sites of the rewritten source."""
    return compile_rewritten(source, path)[1]


def shown(source, *ops):
    """Return "op text" for each site, or for those of some ops."""
    return [f"{info.op} {info.text}".strip() for info in sites(source) if not ops or info.op in ops]
