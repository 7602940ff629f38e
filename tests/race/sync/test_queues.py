"""Queues: an item comes after what its putter did; two workers around one queue stay unordered."""

import queue

import pytest

from tests.patience import PATIENCE
from tests.race.sync.layer import run
from tests.race.sync.test_primitives import in_turn

KINDS = ["Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"]


@pytest.fixture(params=KINDS)
def make(request, core):
    return getattr(queue, request.param)


def test_put_orders_the_get_of_its_item(core, make):
    items = make()
    run(lambda: (core.write("x"), items.put(1)), lambda: (items.get(timeout=PATIENCE), core.write("x")))
    assert not core.raced


def test_nowait_forms_order_likewise(core, make):
    items = make()
    in_turn(lambda: (core.write("x"), items.put_nowait(1)), lambda: (items.get_nowait(), core.write("x")))
    assert not core.raced


def test_keyword_arguments_order_likewise(core, make):
    items = make()
    in_turn(lambda: (core.write("x"), items.put(item=1)), lambda: (items.get(block=True, timeout=1), core.write("x")))
    assert not core.raced


def test_what_follows_the_put_is_unordered(core, make):
    items = make()
    in_turn(lambda: (items.put(1), core.write("x")), lambda: (items.get(), core.write("x")))
    assert core.raced == {"x"}


def test_two_workers_around_one_queue_are_unordered(core, make):
    items = make()
    items.put(1)
    items.put(2)
    in_turn(*[lambda: (items.get(), core.write("x"), items.qsize(), items.empty())] * 2)
    assert core.raced == {"x"}


def test_two_putters_are_unordered(core, make):
    items = make()
    in_turn(lambda: (core.write("x"), items.put(1)), lambda: (items.put(2), core.write("x")))
    assert core.raced == {"x"}


def test_getter_is_not_ordered_after_other_items(core):
    items = queue.Queue()
    in_turn(lambda: items.put("a"), lambda: (core.write("x"), items.put("b")), lambda: (items.get(), core.write("x")))
    assert core.raced == {"x"}


def test_last_in_is_the_first_out(core):
    items = queue.LifoQueue()
    in_turn(lambda: (core.write("x"), items.put("a")), lambda: items.put("b"), lambda: (items.get(), core.write("x")))
    assert core.raced == {"x"}


def test_one_object_put_often_is_taken_in_turn(core):
    items, item = queue.Queue(), []
    in_turn(lambda: items.put(item), lambda: (core.write("x"), items.put(item)), lambda: (items.get(), core.write("x")))
    assert core.raced == {"x"}


def test_one_object_got_twice_comes_after_both_puts(core, make):
    items = make()
    in_turn(lambda: (core.write("x"), items.put("same")), lambda: (core.write("y"), items.put("same")),
            lambda: (items.get(), items.get(), core.write("x"), core.write("y")))
    assert not core.raced


def test_full_queue_orders_nothing(core):
    items = queue.Queue(1)

    def fill():
        items.put(1)
        core.write("x")
        for put in (items.put_nowait, lambda item: items.put(item, timeout=0.001)):
            with pytest.raises(queue.Full):
                put(2)

    in_turn(fill, lambda: (items.get(), items.put(2), items.get(), core.write("x")))
    assert core.raced == {"x"}


def test_empty_queue_orders_nothing(core, make):
    items = make()

    def get():
        for attempt in (items.get_nowait, lambda: items.get(timeout=0.001)):
            with pytest.raises(queue.Empty):
                attempt()
        core.write("x")

    in_turn(lambda: (items.put(1), core.write("x"), items.get()), get)
    assert core.raced == {"x"}


def test_task_done_orders_join(core):
    items = queue.Queue()
    for item in range(4):
        items.put(item)

    def work():
        for _ in range(2):
            core.write(f"item {items.get()}")
            items.task_done()

    def wait():
        items.join()
        for item in range(4):
            core.write(f"item {item}")

    run(wait, work, work)
    assert not core.raced


def test_too_many_task_done_fail_as_before(core):
    with pytest.raises(ValueError, match="too many times"):
        queue.Queue().task_done()


@pytest.mark.parametrize("see", [lambda q: q.qsize() == 1, lambda q: not q.empty(), lambda q: q.full()],
                         ids=["qsize", "empty", "full"])
@pytest.mark.parametrize("kind", ["Queue", "LifoQueue", "PriorityQueue"])
def test_seeing_an_item_orders_after_its_put(core, see, kind):
    items = getattr(queue, kind)(1)
    in_turn(lambda: (core.write("x"), items.put(1)), lambda: (see(items), core.write("x")))
    assert not core.raced


@pytest.mark.parametrize("see", [lambda q: q.qsize(), lambda q: q.empty()], ids=["qsize", "empty"])
def test_seeing_an_item_in_a_simple_queue_orders(core, see):
    items = queue.SimpleQueue()
    in_turn(lambda: (core.write("x"), items.put(1)), lambda: (see(items), core.write("x")))
    assert not core.raced


def test_program_that_takes_the_mutex_comes_after_the_puts(core):
    items = queue.Queue()

    def look():
        with items.mutex:
            assert list(items.queue) == [1]
        core.write("x")

    in_turn(lambda: (core.write("x"), items.put(1)), look)
    assert not core.raced


def test_program_that_waits_for_all_tasks_itself_comes_after_them(core):
    items = queue.Queue()
    items.put(1)

    def wait():
        with items.all_tasks_done:
            while items.unfinished_tasks:
                items.all_tasks_done.wait(PATIENCE)
        core.write("x")

    run(wait, lambda: (items.get(), core.write("x"), items.task_done()))
    assert not core.raced


def test_items_taken_out_by_hand_leave_nothing_behind(core):
    items = queue.Queue()
    for item in range(100):
        items.put(str(item))
    with items.mutex:
        items.queue.clear()
    items.put("last")
    in_turn(items.get)
    assert items.empty()


@pytest.mark.skipif(not hasattr(queue, "ShutDown"), reason="3.13")
def test_shutdown_orders_those_it_turns_away(core):
    items = queue.Queue()

    def work():
        with pytest.raises(queue.ShutDown):
            items.get(timeout=PATIENCE)
        core.write("x")

    run(work, lambda: (core.write("x"), items.shutdown()))
    assert not core.raced


# -- subclasses ----------------------------------------------------------------------------------------------------


def test_code_of_a_subclass_under_the_mutex_is_ordered_by_it(core):
    class Counted(queue.Queue):
        def _put(self, item):
            core.write("count")
            super()._put(item)

        def _get(self):
            core.write("count")
            return super()._get()

    items = Counted()
    in_turn(lambda: items.put(1), lambda: items.put(2), items.get, items.get)
    assert not core.raced


def test_subclass_with_its_own_store_orders_items(core):
    class Unique(queue.Queue):
        def _init(self, maxsize):
            self.store = set()

        def _qsize(self):
            return len(self.store)

        def _put(self, item):
            self.store.add(item)

        def _get(self):
            return self.store.pop()

    items = Unique()
    in_turn(lambda: (core.write("x"), items.put(1)), lambda: (items.get(), core.write("x")))
    assert not core.raced


def test_subclass_that_overrides_put_orders_items(core):
    class Logged(queue.Queue):
        def put(self, item, *arguments, **named):
            super().put(("logged", item), *arguments, **named)

    items = Logged()
    in_turn(lambda: (core.write("x"), items.put_nowait(1)), lambda: (items.get(), core.write("x")))
    assert not core.raced


def test_comparison_of_waiting_items_comes_after_their_puts(core):
    class Task:
        def __init__(self, name):
            self.name = name
            core.write(name)

        def __lt__(self, other):
            core.write(self.name)
            core.write(other.name)
            return self.name < other.name

    items = queue.PriorityQueue()
    in_turn(lambda: items.put(Task("a")), lambda: items.put(Task("b")), lambda: items.put(Task("c")), items.get)
    assert not core.raced


def test_tasks_behind_a_number_are_not_compared(core):
    class Task:
        pass

    items = queue.PriorityQueue()
    in_turn(lambda: (core.write("x"), items.put((1, Task()))), lambda: (items.put((2, Task())), core.write("x")))
    assert core.raced == {"x"}


def test_simple_queue_is_one_for_isinstance_and_subclasses(core):
    import _queue
    assert isinstance(queue.SimpleQueue(), _queue.SimpleQueue)
    assert queue.SimpleQueue.__name__ == "SimpleQueue"

    class Mine(queue.SimpleQueue):
        def put(self, item):
            super().put(item)

    items = Mine()
    in_turn(lambda: (core.write("x"), items.put(1)), lambda: (items.get(), core.write("x")))
    assert not core.raced


def test_many_threads_lose_no_edge(core):
    items = queue.SimpleQueue()

    def produce(own):
        def put():
            for index in range(50):
                core.write(f"{own} {index}")
                items.put((own, index) if index % 2 else None)
            items.put("end")
        return put

    def consume():
        for _ in range(101):
            item = items.get(timeout=PATIENCE)
            if isinstance(item, tuple):
                core.write("{} {}".format(*item))

    run(produce("a"), produce("b"), consume)
    assert not core.raced
