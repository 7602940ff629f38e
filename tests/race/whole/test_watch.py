"""`gilscope.toolkit.race.watch` and `checked`: a piece of a program is checked, and nothing before or after it."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.conformance.builds import ROOT
from tests.patience import PATIENCE

pytestmark = pytest.mark.builds("gil", "free")

BANK = """
    import functools
    import threading

    class Account:
        kind = "current"
        def __init__(self):
            self.balance = 0
        def deposit(self):
            self.balance += 1
        @property
        def doubled(self):
            self.balance += 1
            return self.balance
        @staticmethod
        def add(account):
            account.balance += 1
        @classmethod
        def make(cls):
            return cls()

    def loud(function):
        @functools.wraps(function)
        def call(*arguments):
            return function(*arguments)
        return call

    @loud
    def decorated(account):
        account.balance += 1

    total = 0
    def count():
        global total
        total += 1

    def both(function, *arguments):
        threads = [threading.Thread(target=function, args=arguments) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(threads)
    """
HEAD = """
    import sys, threading
    import bank, gilscope.toolkit.race
    from bank import Account, both
    from gilscope.toolkit.race import checked, watch
    """


@pytest.fixture
def run(python, tmp_path):
    def run(body):
        (tmp_path / "bank.py").write_text(textwrap.dedent(BANK))
        (tmp_path / "script.py").write_text(textwrap.dedent(HEAD) + textwrap.dedent(body))
        done = subprocess.run([python, "-W", "error", "script.py"], cwd=tmp_path, capture_output=True, text=True,
                              timeout=PATIENCE, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


def test_race_of_the_block_is_in_the_report(run):
    assert run("""
        with watch() as report:
            both(Account().deposit)
        for race in report.races:
            print(race.kind, race.base, race.first.place.line)
        print("DATA RACE on Account.balance" in str(report))
        """) == "lost update Account.balance 10\nTrue\n"


@pytest.mark.parametrize("call", [
    "both(Account().deposit)", "both(getattr, Account(), 'doubled')", "both(Account.add, Account())",
    "both(bank.decorated, Account())", "both(Account.make().deposit)", "both(bank.count)",
])
def test_functions_of_every_sort_are_rewritten(call, run):
    assert run(f"""
        with watch() as report:
            {call}
        print(len(report.races) >= 1)
        """) == "True\n"


def test_outside_of_the_block_nothing_is_looked_for(run):
    assert run("""
        code, lock = Account.deposit.__code__, threading.Lock
        both(Account().deposit)
        with watch() as report:
            both(Account)
        print(report.races, Account.deposit.__code__ is code, threading.Lock is lock)
        both(Account().deposit)
        print(report.races)
        """) == "() True True\n()\n"


def test_module_imported_in_the_block_works_on_after_it(run, tmp_path):
    (tmp_path / "late.py").write_text(
        "seen = {}\n\ndef see(name):\n    seen[name] = seen.get(name, 0) + 1\n    return seen\n")
    assert run("""
        with watch() as report:
            import late
            both(late.see, "a")
        print(len(report.races) >= 1, late.see("b")["b"])
        with watch() as report:
            both(late.see, "a")
        print(len(report.races) >= 1)
        """) == "True 1\nTrue\n"


def test_function_that_is_not_what_its_file_says_stays_as_it_is(run):
    assert run("""
        with open(bank.__file__) as file:
            text = file.read()
        with open(bank.__file__, "w") as file:
            file.write(text.replace("self.balance += 1", "self.balance += 100"))
        account = Account()
        with watch():
            account.deposit()
            account.deposit()
        print(account.balance)
        """) == "2\n"


def test_closure_made_in_the_block_works_on_after_it(run):
    assert run("""
        def counter():
            total = 0
            def add():
                nonlocal total
                total += 1
                return total
            return add
        def numbers():
            for number in [1, 2, 3]:
                yield number
        with watch():
            add = counter()
            some = numbers()
            print(add(), next(some))
        print(add(), next(some))
        """) == "1 1\n2 2\n"


def test_what_happened_between_two_blocks_pairs_with_nothing(run):
    assert run("""
        account = Account()
        thread = threading.Thread(target=account.deposit)
        with watch() as first:
            thread.start()
            both(Account)
        thread.join()
        with watch() as second:
            other = threading.Thread(target=account.deposit)
            other.start()
            other.join()
            both(Account)
        print(first.races, second.races)
        """) == "() ()\n"


def test_own_functions_of_the_script_are_rewritten_too(run):
    assert run("""
        hits = 0
        def hit():
            global hits
            hits += 1
        with watch() as report:
            both(hit)
        print([race.variable for race in report.races])
        """).startswith("['global hits in script.py")


def test_report_can_be_read_meanwhile(run):
    assert run("""
        with watch() as report:
            both(Account().deposit)
            print(len(report.races))
        """) == "1\n"


def test_each_block_has_its_own_report(run):
    assert run("""
        reports = []
        for _ in range(3):
            with watch() as report:
                both(Account().deposit)
            reports.append(report)
        print([len(report.races) for report in reports])
        """) == "[1, 1, 1]\n"


def test_nothing_is_raised_unless_asked_for(run):
    assert run("""
        with watch(raises=True):
            both(Account)
        try:
            with watch(raises=True):
                both(Account().deposit)
        except gilscope.toolkit.race.RaceError as error:
            print("Account.balance" in str(error), len(error.report.races), isinstance(error, AssertionError))
        """) == "True 1 True\n"


def test_exception_of_the_block_goes_before_a_race(run):
    assert run("""
        try:
            with watch(raises=True) as report:
                both(Account().deposit)
                raise LookupError("mine")
        except LookupError as error:
            print(error, len(report.races), Account.deposit.__code__.co_consts is not None)
        with watch():
            pass
        """) == "mine 1 True\n"


def test_block_within_a_block_is_refused(run):
    assert run("""
        with watch() as report:
            try:
                with watch():
                    print("never")
            except RuntimeError as error:
                print(error)
            both(Account().deposit)
        print(len(report.races))
        """) == "this process is already being checked for races; sessions cannot be nested\n1\n"


def test_decorated_function_is_checked_at_each_call(run):
    assert run("""
        @checked
        def pay(amount, *, times=1):
            "Pay."
            return both(Account().deposit) * amount * times
        print(pay(3, times=2), len(pay.race_report.races), pay.__name__, pay.__doc__)
        print(pay(1), len(pay.race_report.races))
        """) == "12 1 pay Pay.\n2 1\n"


def test_decorated_function_may_raise(run):
    assert run("""
        @checked(raises=True)
        def pay():
            both(Account().deposit)
        try:
            pay()
        except gilscope.toolkit.race.RaceError as error:
            print("raised")
        """) == "raised\n"


def test_coroutine_function_is_checked(run):
    assert run("""
        import asyncio
        @checked
        async def pay():
            account = Account()
            await asyncio.gather(*(asyncio.to_thread(account.deposit) for _ in range(2)))
            return 5
        print(asyncio.run(pay()), len(pay.race_report.races))
        """) == "5 1\n"


def test_generator_is_refused(run):
    assert "is a generator; use `with watch():`" in run("""
        try:
            @checked
            def numbers():
                yield 1
        except TypeError as error:
            print(error)
        """)


def test_suite_of_this_project_leaves_the_package_alone():
    # `gilscope.toolkit.race.watch` is a function whatever was imported before.
    code = "import gilscope.toolkit.race.watching, gilscope.toolkit.race; print(callable(gilscope.toolkit.race.watch))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE,
                           env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert shown.stdout == "True\n"
