"""Reuses a scratch function per rule set; a rule set that nobody holds is compiled anew."""
import threading
import weakref

_rules = weakref.WeakValueDictionary()
compiled = 0


def compile_rules(n):
    ns = {}
    exec(f"def rule(x):\n    return x * {n} % 101", ns)
    return ns.pop("rule")


def held():
    return len(_rules)


def once(n):
    rule = compile_rules(n)
    mine = threading.get_ident(), n
    _rules[mine] = rule
    value = sum(rule(i) for i in range(2000))
    del rule
    if mine in _rules:
        raise RuntimeError("somebody still holds the rules")
    return value
