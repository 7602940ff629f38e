"""Who had the GIL, who waited meanwhile, and what is a convoy: of made-up records."""

from dataclasses import replace

import pytest

from gilscope.toolkit.gil.holders import find_convoys, find_holders, longest_holds
from gilscope.toolkit.gil.records import CodeLine, SpanKind, SpanTotal, ThreadSpan
from gilscope.toolkit.gil.unfinished_waits import last_seen, with_unfinished
from tests.gil.recorded import make_process, make_site, make_thread

OWN = CodeLine("/home/me/program.py", 12, "work")


def hold(begin, end, site, gil=0):
    return ThreadSpan(SpanKind.HOLD, begin, end, site, 0, 0, None, gil)


def wait(begin, end, site=0, gil=0):
    return ThreadSpan(SpanKind.WAIT, begin, end, site, 1, 1, None, gil)


def test_holders_are_ranked_by_what_they_made_others_wait():
    first, second = find_holders([make_process()])
    assert (first.thread, first.line, first.holds, first.share) == ("thread 1: spin", 6, 5, 0.5)
    assert (first.seconds, first.longest, first.caused) == (0.5, 0.1, 0.5)
    assert [(each.thread, each.seconds) for each in first.waiting] == [("thread 2: spin", pytest.approx(0.5))]
    assert second.thread == "thread 2: spin"
    assert second.longest_at == 0.1


def test_lines_of_a_library_belong_to_the_line_of_the_program_that_called_it():
    sites = (None, *(make_site(line, file="/usr/lib/python3.13/json/decoder.py", function="scan", caller=OWN,
                               held=SpanTotal(1, seconds, seconds, 0.0), caused=caused)
                     for line, seconds, caused in ((361, 0.25, 0.5), (338, 0.5, 0.25))))
    (holder,) = find_holders([make_process(sites=sites, threads=(make_thread(1, []),))])
    assert (holder.file, holder.line, holder.function, holder.share) == ("/home/me/program.py", 12, "work", 1.0)
    assert (holder.holds, holder.seconds, holder.longest) == (2, 0.75, 0.5)
    assert holder.inside == CodeLine("/usr/lib/python3.13/json/decoder.py", 361, "scan")   # where others waited most


def test_a_wait_is_shared_out_among_the_holds_that_it_lasted_through():
    sites = (None, make_site(3, held=SpanTotal(1, 0.3, 0.3, 0.0), caused=0.3),
             make_site(4, thread=2, held=SpanTotal(1, 0.2, 0.2, 0.0), caused=0.2))
    threads = (make_thread(0, [wait(0.1, 0.5), wait(0.0, 1.0, gil=1)], main=True),
               make_thread(1, [hold(0.0, 0.3, 1)]), make_thread(2, [hold(0.3, 0.5, 2)]))
    first, second = find_holders([make_process(sites=sites, threads=threads)])
    assert [each.seconds for each in first.waiting] == [pytest.approx(0.2)]      # of the same GIL alone
    assert [each.seconds for each in second.waiting] == [pytest.approx(0.2)]
    longest = longest_holds([make_process(sites=sites, threads=threads)])
    assert sorted((each.line, each.begin, each.seconds) for each in longest) == [
        (3, pytest.approx(0.1), pytest.approx(0.2)), (4, pytest.approx(0.3), pytest.approx(0.2))]


def test_others_wait_for_a_hold_since_the_first_of_them_does():
    sites = (None, make_site(3, held=SpanTotal(1, 0.5, 0.5, 0.0), caused=0.7))
    threads = (make_thread(0, [wait(0.1, 0.5)], main=True), make_thread(1, [hold(0.0, 0.5, 1)]),
               make_thread(2, [wait(0.2, 0.5)]))
    (found,) = longest_holds([make_process(sites=sites, threads=threads)])
    assert (found.begin, found.seconds) == (pytest.approx(0.1), pytest.approx(0.4))


def test_nobody_held_what_nobody_waited_for():
    threads = (make_thread(0, [hold(0.0, 1.0, 1)], main=True),)
    process = make_process(sites=(None, make_site(3)), threads=threads)
    assert find_holders([process]) == ()
    assert longest_holds([process]) == ()


def convoy(waits=20, made_to=0, parks=0, held=0.0001, lasted=0.005):
    """Return a process of which one thread waits `waits` times, and has the GIL for `held` seconds after each."""
    turn = lasted + held
    begins = [number * turn for number in range(waits)]
    spans = [span for begin in begins
             for span in (wait(begin, begin + lasted), hold(begin + lasted, begin + turn, 2))]
    spans += [ThreadSpan(SpanKind.SWITCH, 0.9, 0.91, 0, 0, 0, None, 0)] * made_to
    spans += [ThreadSpan(SpanKind.PARK, 0.9, 0.91, 0, 0, 0, None, 0)] * parks
    holds = [hold(begin, begin + lasted, 1) for begin in begins]
    sites = (None, make_site(6, held=SpanTotal(waits, waits * lasted, lasted, 0.0), caused=waits * lasted),
             make_site(9, thread=2))
    return make_process(sites=sites, threads=(make_thread(0, [], main=True), make_thread(1, holds),
                                              make_thread(2, spans, entry="io", end=waits * turn)))


def test_convoy_costs_its_waits_times_the_switch_interval():
    process = convoy()
    (found,) = find_convoys([process], find_holders([process]))
    assert (found.thread, found.waits, found.interval) == ("thread 2: io", 20, 0.005)
    assert found.cost == pytest.approx(0.1)
    assert (found.holder.thread, found.holder.line) == ("thread 1: spin", 6)


@pytest.mark.parametrize("changes", [
    {"held": 0.004},      # it computes as long as the others
    {"made_to": 10},      # it has to be asked for the GIL
    {"parks": 10},        # it gives the GIL away for locks, not for I/O
    {"waits": 5},         # too few to tell
    {"lasted": 0.002},    # it does not wait for the switch interval
    {"lasted": 0.02},     # the holder does not hand the GIL over when it is asked
])
def test_threads_that_share_the_gil_are_no_convoy(changes):
    process = convoy(**changes)
    assert not find_convoys([process], find_holders([process]))


def test_what_the_holder_waits_for_a_core_does_not_end_a_convoy():
    process = convoy(lasted=0.02)
    main, holder, sender = process.threads
    without_core = replace(process, threads=(main, replace(holder, cpu=0.1, run_queue=0.3), sender))
    assert [found.waits for found in find_convoys([without_core], ())] == [20]


def test_no_convoy_where_the_switch_interval_is_not_known_or_waits_are_few_beside_its_life():
    process = convoy()
    assert not find_convoys([replace(process, switch_interval=None)], ())
    long_lived = tuple(replace(thread, end=20.0) for thread in process.threads)
    assert not find_convoys([replace(process, threads=long_lived)], ())


def killed():
    """Return a process that was killed while its thread 1 had the GIL, for which its main thread waited."""
    threads = (make_thread(0, [], main=True, ended=False, unfinished=(SpanKind.WAIT, 0.25), unfinished_at=1),
               make_thread(1, [], ended=False, unfinished=(SpanKind.HOLD, 0.0), unfinished_at=2))
    sites = (None, make_site(3, thread=0), make_site(6))
    return make_process(ended=False, threads=threads, sites=sites)


def test_hold_that_a_kill_cut_off_counts_up_to_the_last_that_was_seen():
    (holder,) = find_holders([with_unfinished(killed())])
    assert (holder.thread, holder.line, holder.seconds, holder.caused) == ("thread 1: spin", 6, 0.75, 0.75)
    assert [(each.thread, each.seconds) for each in holder.waiting] == [("main", 0.75)]


def test_last_that_was_seen_of_killed_threads():
    assert [(each.thread, each.kind, each.place.line, each.seconds) for each in last_seen([killed()])] == [
        ("main", SpanKind.WAIT, 3, 0.75), ("thread 1: spin", SpanKind.HOLD, 6, 0.75)]
    alone = replace(killed(), threads=killed().threads[1:])
    assert last_seen([alone]) == ()     # nobody waited for it
    ended = make_process()
    assert last_seen([ended]) == ()
    assert with_unfinished(ended) == ended
