"""Patterns in which a conflict does no harm: the conditions of the tables of benign conflicts in `classify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.effects import Fact, methods_with
from gilscope.toolkit.race.safe_inspection import same
from gilscope.toolkit.race.terms import AccessKind, Flag, ValueFact
from gilscope.toolkit.race.verdicts.conflict_context import REMOVALS, role_in, tests_and_uses

if TYPE_CHECKING:
    from gilscope.toolkit.race.site import SiteInfo
    from gilscope.toolkit.race.verdicts.conflict_context import ConflictContext, ConflictSide

TWO_VALUED = (True, False, None)     # 0 and 1 are equal to two of them
MAY_FAIL = methods_with(Fact.MAY_FAIL)


# -- construction ---------------------------------------------------------------------------------------------------


def constructs(conflict: ConflictContext) -> bool:
    """Return True if the first access is a constructor's store before it showed the object to anyone."""
    first, second, record = conflict.first, conflict.second, conflict.record
    built = first.site.flags & Flag.INIT and first.kind == AccessKind.WRITE and not second.site.flags & Flag.INIT
    if not built or record.part != "attr" or record.owner.form == "class" or first.site.function.endswith("__new__"):
        return False
    return not conflict.sources.leaks_before(first.site)


# -- double-checked locking -----------------------------------------------------------------------------------------


def double_checks(conflict: ConflictContext) -> bool:
    """Return True if the load is the unlocked test of double-checked locking, and the store is the one it guards."""
    pair = conflict.read_and_write()
    if pair is None:
        return False
    read, write = pair
    if not write.locks or _others_depend(read, conflict) or _takes_value(write.site):
        return False
    within_call = bool(conflict.sites.writers(read.number)) and _tests_under_lock(write.site, conflict)
    return within_call or _tested_twice(write, conflict) or _announced(write, conflict)


def rechecks(conflict: ConflictContext) -> bool:
    """Return True if the write of a span tested again under a lock that the other write holds as well.

    If the other side is a load, what depends on it has to test again, too.
    """
    return any(side.span >= 0 and _tests_under_lock(side.site, conflict) and side.locks
               and (side.locks & other.locks or (other.kind == AccessKind.READ and not _others_depend(other, conflict)))
               for side, other in ((conflict.first, conflict.second), (conflict.second, conflict.first)))


def _tests_under_lock(store: SiteInfo, conflict: ConflictContext) -> bool:
    """Return True if the tests that decide about a store are in one `with` with it, be there one outside or not."""
    tests = [conflict.sites[number] for number in store.partners]
    guarded = bool(tests) and store.flags & Flag.GUARD and all(
        conflict.sources.in_one_with(test, store) for test in tests)
    return bool(guarded or store.flags & Flag.RECHECKED)


def _tested_twice(write: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if the variable is tested before the lock is acquired, in addition to the test under the lock.

    A maximum kept under a lock is tested under it only, so its unlocked readers are not part of the pattern.
    """
    if not write.site.flags & Flag.RECHECKED:
        return False
    before = [conflict.sites[number] for number in write.site.partners]
    before += [site for site in conflict.sites.neighbours(write.number)
               if site.text == write.site.text and site.op.endswith("_read")]
    return any(conflict.sources.before_with(read, write.site) for read in before)


def _others_depend(read: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if a write depends on the read and does not test again under a lock, itself or where it is called."""
    if read.site.flags & Flag.AUGMENTED:
        return True
    return not all(_tests_again(conflict.sites[number], conflict) for number in conflict.sites.writers(read.number))


def _tests_again(site: SiteInfo, conflict: ConflictContext) -> bool:
    if site.op != "writes":
        return bool(site.flags & Flag.RECHECKED)
    called = site.text.partition("(")[0].rpartition(".")[2]
    variables = {side.site.text for side in (conflict.first, conflict.second)}
    stores = [each for each in conflict.sites.all() if each.function.rpartition(".")[2] == called
              and each.text in variables and each.op.endswith(("_write", "_store", "_update"))]
    return bool(stores) and all(_tests_under_lock(each, conflict) for each in stores)


def _announced(write: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if the flag that is tested twice is stored after this write, and never before it."""
    later = False
    for site in conflict.sites.neighbours(write.number):
        if site.flags & Flag.RECHECKED and site.flags & Flag.CONSTANT:
            tested = min((conflict.sites[number].line for number in site.partners), default=site.line)
            if tested < write.site.line < site.line:
                later = True
            elif tested < site.line <= write.site.line:
                return False
    return later


def _takes_value(site: SiteInfo) -> bool:
    """Return True if the stored value comes from an earlier read of the variable."""
    return bool(site.flags & (Flag.AUGMENTED | Flag.VALUE))


def _announces_early(write: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if a flag that readers test is stored in the same function before this write."""
    return any(site.flags & Flag.RECHECKED and site.line < write.site.line
               for site in conflict.sites.neighbours(write.number))


# -- flags ----------------------------------------------------------------------------------------------------------


def is_polled(conflict: ConflictContext) -> bool:
    """Return True if a constant is stored, and the load decides a loop and nothing else."""
    pair = conflict.read_and_write()
    return pair is not None and bool(pair[0].site.flags & Flag.POLL) and _is_flag(*pair, conflict)


def is_tested(conflict: ConflictContext) -> bool:
    """Return True if True, False or None is stored, and the load decides an `if` or what a predicate returns.

    A load into a local that is tested is such a load, too: whatever is tested is also what is used.

    A state with more values than on and off is excluded: it may have to agree with the rest of the object.
    """
    pair = conflict.read_and_write()
    if pair is None or not _is_flag(*pair, conflict) or conflict.sources.literal(pair[1].site) not in TWO_VALUED:
        return False
    return bool(pair[0].site.flags & (Flag.TEST | Flag.SNAPSHOT)) or conflict.sources.decides(pair[0].site)


def stores_same_constant(conflict: ConflictContext) -> bool:
    """Return True if both sides store the same constant, and nothing but a loop that it ends decides about it."""
    sides = conflict.first, conflict.second
    for side in sides:
        if side.kind != AccessKind.WRITE or not side.site.flags & Flag.CONSTANT:
            return False
        if side.site.flags & (Flag.AUGMENTED | Flag.VALUE | Flag.DELETE):
            return False
        if side.site.flags & Flag.GUARD and not _stays_in_loop(side, conflict):
            return False
    values = [conflict.sources.literal(side.site) for side in sides]
    return NO_VALUE not in values and same(*values)


def _is_flag(read: ConflictSide, write: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if a constant is stored, and no write of the reading thread depends on the load."""
    flags = write.site.flags
    if not flags & Flag.CONSTANT or _takes_value(write.site) or flags & Flag.DELETE:
        return False
    if read.site.flags & Flag.AUGMENTED or _announces_early(write, conflict):
        return False
    if tests_and_uses(read.number, write, conflict.sites, conflict.sources):
        return False
    writers = [number for number in conflict.sites.writers(read.number)
               if not (conflict.sites[number].flags & Flag.RECHECKED and write.locks)]
    return all(role_in(read, number, write, conflict) == "plain" for number in writers)


def _stays_in_loop(side: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if only the loop that the store ends decides about the store."""
    reads = [conflict.sites[number] for number in side.site.partners]
    return all(read.flags & Flag.POLL and conflict.sources.in_loop_of(read, side.site) for read in reads)


# -- busy flags -----------------------------------------------------------------------------------------------------


def is_busy_flag(conflict: ConflictContext) -> bool:
    """Return True if a flag is taken by a test and a store under a lock, and given back by one store of its owner.

    The owner is the thread that took it, so the store that gives it back is in the same function, after the one that
    takes it.
    """
    sides = (conflict.first, conflict.second)
    return any(_gives_back(giver, conflict) and (other.number == giver.number or _takes_flag(other, giver, conflict))
               for giver, other in (sides, sides[::-1]))


def is_own(conflict: ConflictContext) -> bool:
    """Return True if threads store themselves, and ask only whether it was they: what another stores is no answer."""
    pair = conflict.read_and_write()
    return pair is not None and conflict.sources.compares_owner(pair[0].site) and conflict.sources.stores_owner(
        pair[1].site)


def _gives_back(side: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if the side is a store of True or False, and its function takes the flag before."""
    return side.kind == AccessKind.WRITE and bool(side.site.flags & Flag.CONSTANT) and any(
        _takes_for(site, side.site, conflict) for site in conflict.sites.neighbours(side.number))


def _takes_flag(side: ConflictSide, giver: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if the side is the test or the store that takes the flag, and holds a lock."""
    numbers = conflict.sites.writers(side.number) if side.kind == AccessKind.READ else [side.number]
    return bool(side.locks) and any(_takes_for(conflict.sites[number], giver.site, conflict) for number in numbers)


def _takes_for(site: SiteInfo, giver: SiteInfo, conflict: ConflictContext) -> bool:
    """Return True if a store takes the flag that `giver` gives back: under a lock, only if a test found it free."""
    guarded_constant = site.flags & Flag.GUARD and site.flags & Flag.CONSTANT
    if site.text != giver.text or site.line >= giver.line or not guarded_constant:
        return False
    tests = [conflict.sites[number] for number in site.partners]
    values = [conflict.sources.literal(store) for store in (site, giver)]
    return all(isinstance(value, bool) for value in values) and values[0] != values[1] and all(
        conflict.sources.in_one_with(test, site) for test in tests)


# -- counters -------------------------------------------------------------------------------------------------------


def is_counted(conflict: ConflictContext) -> bool:
    """Return True if a number only grows, and no write depends on the load.

    Either all writes hold one lock and a loop or predicate asks, or a loop outputs the number again and again.
    """
    pair = conflict.read_and_write()
    if pair is None:
        return False
    read, write = pair
    flags, sources = read.site.flags, conflict.sources
    asks = flags & Flag.POLL or sources.decides(read.site, comparisons=True)
    numbers = any(site.text == read.site.text and site.flags & Flag.AUGMENTED     # its own: they may not come twice
                  for site in conflict.sites.neighbours(read.number))
    harmless = (asks and write.locks & conflict.lockset) or (sources.outputs_in_loop(read.site) and not numbers)
    counts = write.site.flags & Flag.AUGMENTED and write.site.operator == "+="
    return bool(harmless and counts) and not conflict.sites.writers(read.number)


# -- publication ----------------------------------------------------------------------------------------------------


def publishes(conflict: ConflictContext) -> bool:
    """Return True if no write depends on the load of a new object, or of a reference under the lock of all writes."""
    pair = conflict.read_and_write()
    if pair is None:
        return False
    read, write = pair
    dependent = _others_depend(read, conflict) or write.site.flags & (Flag.AUGMENTED | Flag.DELETE | Flag.MULTI)
    new = write.site.flags & Flag.NEW and not conflict.sources.changes_after(write.site) and (
        read.site.flags & (Flag.TEST | Flag.SNAPSHOT) or not conflict.sources.may_be_none(write.site))
    if dependent or read.missed or not (new or write.locks & conflict.lockset):
        return False
    if _announces_early(write, conflict) or conflict.sources.loads_parts(read.site):
        return False
    stored = conflict.record.value if write is conflict.second else conflict.record.present
    if not stored:
        plain = conflict.sources.plain_object(write.site)
        # A number or text is there: then the call makes one, too.
        is_plain = conflict.record.present & ValueFact.PLAIN and not conflict.record.present & ValueFact.NONE
        return bool(plain or (new and plain is None and not is_plain))
    if stored & ValueFact.NONE and write is conflict.first:     # may be the value from before the store
        return conflict.sources.plain_object(write.site) is not False
    return not stored & ValueFact.PLAIN or bool(stored & ValueFact.COLLECTION)


# -- memos ----------------------------------------------------------------------------------------------------------


def is_memo(conflict: ConflictContext) -> bool:
    """Return True if every thread stores an equal, immutable value, or the value that is already stored."""
    acts = _acts(conflict)
    if not acts or conflict.record.part == "structure":
        return False
    if conflict.record.sort == "order" and not _reads_checked(conflict):
        return False
    if any(side.number in conflict.changed for side in acts):
        return False
    if conflict.second.kind == AccessKind.WRITE and conflict.first.kind != AccessKind.READ:
        if _stores_equal(conflict, acts):
            return True
        if not older_than_both(conflict):
            return False
    return _stores_immutable(conflict, acts) and all(
        conflict.sources.memo(side.site) and not side.site.flags & Flag.CONSTANT for side in acts)


def older_than_both(conflict: ConflictContext) -> bool:
    """Return True if the variable may still hold what it held before the first of two stores.

    A store is reported before it is done, so without a GIL both may be under way.  The variable then holds nothing, or
    a typical initial value: None, 0, "", (), a bare `object()`.
    """
    return not conflict.record.present or bool(conflict.record.present & (ValueFact.BARE | ValueFact.FALSE))


def _stores_immutable(conflict: ConflictContext, acts: list[ConflictSide]) -> bool:
    """Return True if the stored value is immutable, or is not there yet and may be."""
    if conflict.second.kind == AccessKind.WRITE:
        return bool(conflict.record.value & ValueFact.PLAIN)
    if not conflict.record.present and conflict.second.kind == AccessKind.READ:
        return not any(conflict.sources.plain_object(side.site) for side in acts)
    return bool(conflict.record.present & ValueFact.PLAIN)


def _stores_equal(conflict: ConflictContext, acts: list[ConflictSide]) -> bool:
    if not conflict.record.same:
        return False
    # `started = True` over True is equal as well, but what follows it was done twice.
    return not any(conflict.sources.made_with_side_effects(side.site) for side in acts) and all(
        not side.site.flags & Flag.CONSTANT or _decides_one(side, conflict) for side in acts)


def _reads_checked(conflict: ConflictContext) -> bool:
    """Return True if there is no load, or it decides about the same act or about nothing."""
    pair = conflict.read_and_write()
    if pair is None:
        return True
    read, write = pair
    if read.site.flags & Flag.AUGMENTED:
        return False
    writers = [conflict.sites[number] for number in conflict.sites.writers(read.number)]
    return bool(write.site.flags & Flag.GUARD) and all(
        writer.flags & Flag.GUARD and conflict.sources.memo(writer) for writer in writers)


# -- acts that cope with an outdated check --------------------------------------------------------------------------


def is_tolerant(conflict: ConflictContext) -> bool:
    """Return True if every act is a removal that fails softly, or a use whose failure is caught."""
    pair = conflict.read_and_other()
    if conflict.record.sort == "order" and pair is not None and pair[1].kind in REMOVALS:
        return not tests_and_uses(pair[0].number, pair[1], conflict.sites, conflict.sources)
    acts = _acts(conflict) if conflict.record.sort == "span" else [conflict.first, conflict.second]
    return bool(acts) and all(_removes(side) and conflict.sources.tolerant(side.site) for side in acts)


def is_idempotent(conflict: ConflictContext) -> bool:
    """Return True if the check decides about nothing but adding the element, which has no effect the second time."""
    acts = _acts(conflict)
    return bool(acts) and all(
        side.site.op == "method" and side.site.key == "add" and _decides_one(side, conflict) for side in acts)


def keeps_key(conflict: ConflictContext) -> bool:
    """Return True if the checks are for a key that no write removes, so that their result stays true."""
    sides = (conflict.first, conflict.second)
    tests = [conflict.sites[side.span] for side in sides if side.span >= 0 and side.span != side.number]
    tests += [side.site for side in sides if side.kind == AccessKind.READ]
    writes = [side for side in sides if side.kind != AccessKind.READ]
    return bool(tests) and all(test.op == "contains" for test in tests) and all(
        _finds_its_key(side, conflict) for side in writes)


def finds_key(conflict: ConflictContext) -> bool:
    """Return True if a test found its key and the store replaces the value: an insertion would have ordered them."""
    pair = conflict.read_and_write()
    if pair is None or pair[0].missed:
        return False
    return pair[0].site.op == "contains" and not pair[1].site.flags & Flag.DELETE


def accepts_absence(conflict: ConflictContext) -> bool:
    """Return True if a lookup found no key and decides about no write: a test, tested, caught or returned."""
    pair = conflict.read_and_write()
    if pair is None or not pair[0].missed or conflict.sites.writers(pair[0].number):
        return False
    site, sources = pair[0].site, conflict.sources
    return bool(site.flags & (Flag.TEST | Flag.SNAPSHOT)) or (
        sources.decides(site) or sources.tolerant(site) or sources.lets_caller_decide(site))


def _acts(conflict: ConflictContext) -> list[ConflictSide]:
    """Return the sides that a check decides about."""
    return [side for side in (conflict.first, conflict.second)
            if side.kind != AccessKind.READ and side.site.flags & Flag.GUARD and not side.site.flags & Flag.AUGMENTED]


def _decides_one(side: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if the check decides about this one statement only."""
    reads = [conflict.sites[number] for number in side.site.partners]
    return bool(reads) and all(conflict.sources.alone_under(read, side.site) for read in reads)


def _removes(side: ConflictSide) -> bool:
    if side.kind == AccessKind.SHRINK or side.site.flags & Flag.DELETE:
        return True
    return side.site.op == "method" and side.site.key in MAY_FAIL


def _finds_its_key(side: ConflictSide, conflict: ConflictContext) -> bool:
    """Return True if the write replaces a value: `d[k] += 1`, or `d[k] = v` under `if k in d`."""
    if side.kind != AccessKind.WRITE or side.site.flags & Flag.DELETE or not conflict.record.owner.strict:
        return False
    if side.site.flags & Flag.AUGMENTED:
        return True
    reads = [conflict.sites[number] for number in side.site.partners]
    return any(read.op == "contains" and conflict.sources.found_there(read, side.site) for read in reads)
