"""The operations of the atlas.  One more is one more line: `Operation(name, statement, setup)`.

A statement runs many times in each of the threads.  What its setup makes is its data: `shared`, the setup ran once and
all threads use the same objects; `private`, it ran in each thread.  In the statement, functions, classes, modules and
CAPITALS of the setup are globals, as in a program, and other names are local: they are looked up once a call.

A statement must be safe to repeat for ever, alone and with other threads on the same data (the last name that it takes
from a list, another thread may have taken), and must leave nothing behind that grows.
"""

from __future__ import annotations

from dataclasses import dataclass

SHARED, PRIVATE = "shared", "private"
BOTH, ALONE, TOGETHER = (SHARED, PRIVATE), (PRIVATE,), (SHARED,)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the language or the standard library.

    Attributes:
        name: In tables; without "/" and "=".
        statement: One or more lines.
        setup: Lines that make its data; empty: it has none to share.
        imports: Modules, separated by blanks, which threads always share.
        data: Whose the data is; empty: both ways if there is a setup, otherwise each thread's own.
        own: Lines that run in each thread in any case, after the setup: with shared data, the thread's own instance of
            a shared class.
        needs: The oldest Python that has it.
    """

    name: str
    statement: str
    setup: str = ""
    imports: str = ""
    data: tuple[str, ...] = ()
    own: str = ""
    needs: tuple[int, int] = (3, 12)

    @property
    def ways(self) -> tuple[str, ...]:
        """The owners of the data to measure with: `shared`, `private` or both."""
        return self.data or (BOTH if self.setup else ALONE)

    @property
    def preparation(self) -> str:
        """The lines that run before the statement."""
        return "".join(f"import {name}\n" for name in self.imports.split()) + self.setup


POINT = """
class Point:
    kind = 'point'
    limits = [1000, 2000]
    def __init__(self, x=1.5):
        self.x = x
    def move(self, by):
        return by
    @property
    def size(self):
        return 1
    @classmethod
    def origin(cls):
        return 0
    @staticmethod
    def name():
        return 0
    def __getitem__(self, key):
        return key
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 7
    def __lt__(self, other):
        return True
    def __contains__(self, item):
        return True
    def __len__(self):
        return 3
    def __add__(self, other):
        return 4
    def __call__(self):
        return 5
    def __iter__(self):
        return iter(())
    def __enter__(self):
        return 6
    def __exit__(self, *error):
        return None
class Special(Point):
    def move(self, by):
        return super().move(by)
point = Point()
special = Special()
"""
# With it, other attributes are looked up through it, too, where the lookup is not specialized.
DYNAMIC = """
class Dynamic:
    def __getattr__(self, name):
        return 8
dynamic = Dynamic()
"""
SLOTS = "class Slots:\n    __slots__ = ('x',)\n    def __init__(self):\n        self.x = 1.5\nslots = Slots()\n"
FUNCTIONS = """
def same(x):
    return x
def keyword(*, a=1, b=2):
    return a
def several(*args, **kwargs):
    return 0
def numbers():
    for number in range(10):
        yield number
def outer():
    captured = [1]
    def inner():
        return captured
    return inner
inner = outer()
"""
DATACLASS = """
from dataclasses import dataclass
@dataclass
class Row:
    x: int
    y: int
    z: int
row = Row(1, 2, 3)
"""
ENUM = """
from enum import Enum
class Color(Enum):
    RED = 1
    BLUE = 2
"""
RECORD = "record = {'id': 17, 'name': 'gil', 'tags': ['a', 'b'], 'nested': {'x': 1.5, 'ok': True}}\n"
COUNTER = """
class Counter:
    def __init__(self):
        self.i = 0
    def step(self):
        self.i = (self.i + 1) & 127
"""
NUMBERS = "numbers = [float(number) for number in range(20)]\n"
LINES = "text = 'the quick brown fox jumps over the lazy dog'\n"

NAMES = (
    Operation("global, a number read", "NUMBER", "NUMBER = 10.5\n"),
    Operation("global, an instance read", "INSTANCE", POINT + "INSTANCE = Point()\n"),
    Operation("global, a function read", "same", FUNCTIONS),
    Operation("builtin read", "len"),
    Operation("attribute of an instance read", "point.x", POINT),
    Operation("attribute of an instance written", "point.x = 2.5", POINT),
    Operation("attribute in a slot read", "slots.x", SLOTS),
    Operation("attribute of a class read", "Point.kind", POINT),
    Operation("attribute of a class, a list", "Point.limits", POINT),
    Operation("attribute of a class written", "Point.kind = 'other'", POINT),
    Operation("attribute of a module read", "math.pi", imports="math"),
    Operation("property read", "point.size", POINT),
    Operation("__getattr__ called", "dynamic.missing", DYNAMIC),
    Operation("getattr with a default", "getattr(point, 'x', None)", POINT),
    Operation("setattr, names made anew", "setattr(point, f'{prefix}_a', None)", POINT + "prefix = 'prefix'\n"),
    Operation("attribute added and deleted", "new = Point(); new.y = 1; del new.y", POINT),
    Operation("cached_property read", "lazy.value",
              "from functools import cached_property\nclass Lazy:\n    @cached_property\n    def value(self):\n"
              "        return [1]\nlazy = Lazy()\n"),
    Operation("constant, a float", "x = 1.5; x *= 1.01"),
    Operation("constant, a tuple", "7 == (1, 2)"),
    Operation("constant, a text", "7 == 'a string'"),
    Operation("constant, code compiled at run time", "constant()",
              "constant = eval('lambda: (1000003, 2.5)')\nCONSTANT = constant\n"),
    Operation("local of a shared object rebound", "other = point", POINT),
    Operation("isinstance of a class", "isinstance(point, Point)", POINT),
    Operation("isinstance of an abstract class", "isinstance(numbers, Sequence)",
              "from collections.abc import Sequence\n" + NUMBERS),
    Operation("isinstance of a protocol", "isinstance(point, Moving)", POINT +
              "from typing import Protocol, runtime_checkable\n@runtime_checkable\nclass Moving(Protocol):\n"
              "    def move(self, by): ...\n"),
    Operation("import statement of what is imported", "import math"),
)
CALLS = (
    Operation("function called", "same(1)", FUNCTIONS),
    Operation("function of a module called", "MODULE.double(2)",
              "import sys, types\nMODULE = types.ModuleType('own')\n"
              "exec('def double(x): return x + x', MODULE.__dict__)\n"),
    Operation("function with keywords called", "keyword(a=1, b=2)", FUNCTIONS),
    Operation("C function of a module called", "math.cos(0.5)", imports="math"),
    Operation("round, a special method looked up", "round(0.7)"),
    Operation("method called", "point.move(1)", POINT),
    Operation("method of a counter called", "counter.step()", COUNTER + "counter = Counter()\n"),
    Operation("own instance, method called", "counter.step()", COUNTER, own="counter = Counter()", data=TOGETHER),
    Operation("own instance, classmethod called", "point.origin()", POINT, own="point = Point()", data=TOGETHER),
    Operation("own instance, staticmethod called", "point.name()", POINT, own="point = Point()", data=TOGETHER),
    Operation("own instance, attribute written", "point.x = 2.5", POINT, own="point = Point()", data=TOGETHER),
    Operation("own instance, setattr of names made anew", "setattr(point, f'{prefix}_a', None)",
              POINT + "prefix = 'prefix'\n", own="point = Point()", data=TOGETHER),
    Operation("own instance, super called", "special.move(1)", POINT, own="special = Special()", data=TOGETHER),
    Operation("bound method called", "bound(1)", POINT + "bound = point.move\n"),
    Operation("classmethod called", "point.origin()", POINT),
    Operation("staticmethod called", "point.name()", POINT),
    Operation("super called", "special.move(1)", POINT),
    Operation("method of a built-in called", "numbers.count(3.0)", NUMBERS),
    Operation("subscript overloaded", "point[1]", POINT),
    Operation("function defined and called", "def new(x):\n    return x\nnew(1)"),
    Operation("closure created and called", "outer()()", FUNCTIONS),
    Operation("closure called", "INNER()", FUNCTIONS + "INNER = inner\n"),
    Operation("decorated function called", "decorated()",
              "import functools\ndef decorate(function):\n    @functools.wraps(function)\n    def wrapper(*args):\n"
              "        return function(*args)\n    return wrapper\n@decorate\ndef decorated():\n    return 1\n"),
    Operation("instance created", "Point()", POINT),
    Operation("empty instance created", "Empty()", "class Empty:\n    pass\n"),
    Operation("object() created", "object()"),
    Operation("class created", "type('New', (), {})"),
    Operation("partial called", "partial()", "import functools\npartial = functools.partial(max, 1, 2)\n"),
    Operation("lru_cache hit", "cached(1)", "import functools\n@functools.lru_cache\ndef cached(x):\n    return x\n"),
    Operation("singledispatch called", "dispatched(1)",
              "import functools\n@functools.singledispatch\ndef dispatched(x):\n    return x\n@dispatched.register\n"
              "def _(x: int):\n    return x\n"),
    Operation("operator.attrgetter called", "getter(point)",
              POINT + "import operator\ngetter = operator.attrgetter('x')\n"),
    Operation("weakref called", "reference()", POINT + "import weakref\nreference = weakref.ref(point)\n"),
    Operation("weakref created", "weakref.ref(point)", POINT + "import weakref\n"),
    Operation("dataclass created", "Row(x=1, y=2, z=3)", DATACLASS),
    Operation("enum member read", "Color.RED", ENUM),
    Operation("enum member's value read", "Color.RED.value", ENUM),
    Operation("enum looked up by value", "Color(1)", ENUM),
    Operation("namedtuple created", "Pair(1, 2)", "import collections\nPair = collections.namedtuple('Pair', 'x y')\n"),
    Operation("namedtuple field read", "pair.x",
              "import collections\nPair = collections.namedtuple('Pair', 'x y')\npair = Pair(1.5, 2)\n"),
    Operation("typing.get_type_hints", "typing.get_type_hints(Row)", DATACLASS + "import typing\n"),
)
FLOW = (
    Operation("for over range", "for _number in range(10): pass"),
    Operation("for over a list", "for _number in numbers: pass", NUMBERS),
    Operation("for over a tuple of objects", "for _item in items: pass",
              POINT + "items = tuple(Point() for _ in range(10))\n"),
    Operation("for over a dict", "for _key in record: pass", RECORD),
    Operation("for over a set", "for _number in unique: pass", "unique = set(range(300, 320))\n"),
    Operation("for over a text", "for _letter in text: pass", LINES),
    Operation("list comprehension", "[number for number in numbers]", NUMBERS),
    Operation("generator expression summed", "sum(number for number in numbers)", NUMBERS),
    Operation("generator made and run", "for _number in numbers(): pass", FUNCTIONS),
    Operation("coroutine run to its end", "made = work()\ntry:\n    made.send(None)\nexcept StopIteration:\n    pass",
              "async def step():\n    return 1\nasync def work():\n    return await step()\n"),
    Operation("unpacking a tuple", "first, second = pair", "pair = (1.5, 2.5)\n"),
    Operation("match of a dict", "match record:\n    case {'id': int()}:\n        pass", RECORD),
    Operation("with statement", "with point: pass", POINT),
    Operation("with of an instance of its own", "with Point(): pass", POINT),
    Operation("contextmanager entered", "with managed(): pass",
              "import contextlib\n@contextlib.contextmanager\ndef managed():\n    yield\n"),
    Operation("contextlib.ExitStack entered", "with contextlib.ExitStack(): pass", imports="contextlib"),
    Operation("exception raised and caught", "try:\n    raise ValueError\nexcept ValueError:\n    pass"),
    Operation("KeyError of a dict caught", "try:\n    record['none']\nexcept KeyError:\n    pass", RECORD),
    Operation("exception through three frames", "try:\n    third()\nexcept ValueError:\n    pass",
              "def first():\n    raise ValueError\ndef second():\n    first()\ndef third():\n    second()\n"),
    Operation("itertools.chain", "list(itertools.chain(numbers, numbers))", NUMBERS + "import itertools\n"),
    Operation("itertools.count advanced", "next(counter)", "import itertools\ncounter = itertools.count()\n"),
    Operation("map and filter", "list(map(str, filter(None, (0, 1, 2))))"),
    Operation("sorted with a key", "sorted(words, key=len)", "words = 'the quick brown fox jumps'.split()\n"),
    Operation("sum of a list", "sum(numbers)", NUMBERS),
    Operation("functools.reduce", "functools.reduce(operator.add, numbers)", NUMBERS + "import functools, operator\n"),
    Operation("compile of a line", "compile('x = 1', 'x', 'exec')"),
)
ARITHMETIC = (
    Operation("int added, small", "value + 1", "value = 2\n"),
    Operation("int added, large", "value + 1", "value = 10 ** 9\n"),
    Operation("int to text and back", "int(str(value))", "value = 123456\n"),
    Operation("float added", "value + 1.5", "value = 2.5\n"),
    Operation("float formatted", "f'{value:.2f}'", "value = 2.5\n"),
    Operation("math.sqrt and floor", "math.sqrt(2.0); math.floor(2.5)", imports="math"),
    Operation("math.fsum of a list", "math.fsum(numbers)", NUMBERS + "import math\n"),
    Operation("Decimal added", "value + value", "from decimal import Decimal\nvalue = Decimal('1.1')\n"),
    Operation("Decimal created", "Decimal('1.1')", "from decimal import Decimal\n", data=ALONE),
    Operation("Fraction added", "value + value", "from fractions import Fraction\nvalue = Fraction(1, 3)\n"),
    Operation("statistics.mean", "statistics.mean((1, 2, 3))", imports="statistics"),
    Operation("random.random of the module", "random.random()", imports="random"),
    Operation("Random instance, random()", "source.random()", "import random\nsource = random.Random(1)\n"),
    Operation("secrets.token_bytes", "secrets.token_bytes(8)", imports="secrets"),
    Operation("array read", "values[1]", "import array\nvalues = array.array('d', [1.5, 2.5])\n"),
    Operation("memoryview read", "view[1]", "view = memoryview(bytearray(b'abc'))\n"),
)
TEXT = (
    Operation("str compared", "text == other", LINES + "other = text[:-1] + 'g'\n"),
    Operation("str sliced", "text[4:9]", LINES),
    Operation("str searched", "'lazy' in text", LINES),
    Operation("str.split and join", "' '.join(text.split())", LINES),
    Operation("str.encode and decode", "text.encode().decode()", LINES),
    Operation("str.format", "'{} {}'.format(1, 'a')"),
    Operation("f-string", "f'{value} and {value!r}'", "value = 123456\n"),
    Operation("str.translate", "text.translate(table)", LINES + "table = str.maketrans('abc', 'xyz')\n"),
    Operation("bytes sliced and joined", "b''.join((data[1:3], data))", "data = b'abcdefgh' * 4\n"),
    Operation("bytearray appended", "buffer.append(1); buffer.clear()", "buffer = bytearray()\n"),
    Operation("re pattern, match", "pattern.match(text)", LINES + "import re\npattern = re.compile('the (\\\\w+)')\n"),
    Operation("re pattern, search without a match", "pattern.search(text)",
              LINES + "import re\npattern = re.compile('cat')\n"),
    Operation("re pattern, sub", "pattern.sub('x', text)", LINES + "import re\npattern = re.compile('o')\n"),
    Operation("re.match of the module", "re.match('the', text)", LINES + "import re\n"),
    Operation("textwrap.fill", "textwrap.fill(text, 20)", LINES + "import textwrap\n"),
    Operation("string.Template", "template.substitute(x=1)", "import string\ntemplate = string.Template('$x')\n"),
    Operation("unicodedata.normalize", "unicodedata.normalize('NFKD', text)", "import unicodedata\ntext = 'für'\n"),
    Operation("unicodedata.name", "unicodedata.name('a')", imports="unicodedata"),
    Operation("html.escape", "html.escape(text)", "import html\ntext = '<a & b>'\n"),
    Operation("urllib.parse.urlsplit", "parse.urlsplit(address)",
              "from urllib import parse\naddress = 'https://a.org/b?c=d#e'\n"),
    Operation("pathlib joined", "folder / 'b'", "import pathlib\nfolder = pathlib.PurePath('a')\n"),
    Operation("os.path.join and basename", "os.path.basename(os.path.join('a', 'b'))", imports="os"),
    Operation("datetime created and added", "datetime(2026, 1, 2) + day",
              "from datetime import datetime, timedelta\nday = timedelta(days=1)\n"),
    Operation("datetime.now", "datetime.now()", "from datetime import datetime\n", data=ALONE),
    Operation("datetime.strftime", "moment.strftime('%Y-%m-%d')",
              "from datetime import datetime\nmoment = datetime(2026, 1, 2)\n"),
    Operation("datetime.strptime", "datetime.strptime('2026-01-02', '%Y-%m-%d')",
              "from datetime import datetime\n", data=ALONE),
)
CONTAINERS = (
    Operation("list read", "numbers[3]", NUMBERS),
    Operation("list of objects read", "items[1]", POINT + "items = [Point(), Point()]\n"),
    Operation("list written", "numbers[3] = 1.5", NUMBERS),
    Operation("list appended and popped", "numbers.append(1.5); numbers.pop()", NUMBERS),
    Operation("list popped in front and appended", "numbers.append(1.5); numbers.pop(0)", NUMBERS),
    Operation("list created", "[1, 2, 3]"),
    Operation("list copied", "numbers[:]", NUMBERS),
    Operation("len of a list", "len(numbers)", NUMBERS),
    Operation("tuple read", "pair[1]", "pair = (1.5, 2.5)\n"),
    Operation("tuple of objects read", "items[1]", POINT + "items = (Point(), Point())\n"),
    Operation("tuple created", "(value, value)", "value = 10.5\n"),
    Operation("dict read, small value", "record['id']", RECORD),
    Operation("dict read, an object", "table['a']", POINT + "table = {'a': Point()}\n"),
    Operation("dict read with int keys", "table[3]", "table = {number: str(number) for number in range(100)}\n"),
    Operation("dict written, key that exists", "record['id'] = 1", RECORD),
    Operation("dict, key added and removed", "table['b'] = 1; table.pop('b', None)", "table = {'a': 1}\n"),
    Operation("dict, in", "'id' in record", RECORD),
    Operation("dict created", "{'key': 'value'}"),
    Operation("dict copied", "record.copy()", RECORD),
    Operation("set, in", "310 in unique", "unique = set(range(300, 320))\n"),
    Operation("set added and discarded", "unique.add(1); unique.discard(1)", "unique = set(range(300, 320))\n"),
    Operation("frozenset, in", "310 in unique", "unique = frozenset(range(300, 320))\n"),
    Operation("deque appended and popped", "queue.append(1); queue.popleft()",
              "import collections\nqueue = collections.deque([1])\n"),
    Operation("deque read", "queue[0]", "import collections\nqueue = collections.deque([1.5])\n"),
    Operation("Counter counted", "counter['a'] += 1", "import collections\ncounter = collections.Counter()\n"),
    Operation("defaultdict read", "table['a']",
              "import collections\ntable = collections.defaultdict(list)\ntable['a']\n"),
    Operation("OrderedDict read", "table['a']", "import collections\ntable = collections.OrderedDict(a=1.5)\n"),
    Operation("heapq pushed and popped", "heapq.heappushpop(heap, 1.5)", "import heapq\nheap = [1.0, 2.0, 3.0]\n"),
    Operation("bisect of a list", "bisect.bisect(numbers, 7.0)", NUMBERS + "import bisect\n"),
    Operation("copy.copy of a dict", "copy.copy(record)", RECORD + "import copy\n"),
    Operation("copy.deepcopy of a dict", "copy.deepcopy(record)", RECORD + "import copy\n"),
)
FORMATS = (
    Operation("json.dumps", "json.dumps(record)", RECORD + "import json\n"),
    Operation("json.loads", "json.loads(text)", "import json\ntext = '{\"id\": 17, \"tags\": [\"a\", \"b\"]}'\n"),
    Operation("pickle.dumps of a dict", "pickle.dumps(record)", RECORD + "import pickle\n"),
    Operation("pickle.loads of a dict", "pickle.loads(data)", RECORD + "import pickle\ndata = pickle.dumps(record)\n"),
    Operation("struct.pack of the module", "struct.pack('<id', 1, 2.5)", imports="struct"),
    Operation("struct.Struct unpacked", "form.unpack(data)",
              "import struct\nform = struct.Struct('<id')\ndata = form.pack(1, 2.5)\n"),
    Operation("csv read", "list(csv.reader(lines))", "import csv\nlines = ['a,b,c', '1,2,3']\n"),
    Operation("xml.etree parsed", "ElementTree.fromstring('<a><b x=\"1\"/></a>')",
              "from xml.etree import ElementTree\n", data=ALONE),
    Operation("xml.etree searched", "tree.find('b').get('x')",
              "from xml.etree import ElementTree\ntree = ElementTree.fromstring('<a><b x=\"1\"/></a>')\n"),
    Operation("base64, both ways", "base64.b64decode(base64.b64encode(data))",
              "import base64\ndata = b'abcdefgh' * 8\n"),
    Operation("zlib compressed, 256 bytes", "zlib.compress(data)", "import zlib\ndata = b'abcdefgh' * 32\n"),
    Operation("hashlib.sha256, 64 bytes", "hashlib.sha256(data).digest()", "import hashlib\ndata = b'abcdefgh' * 8\n"),
    Operation("hashlib object updated", "digest.update(data)",
              "import hashlib\ndata = b'abcdefgh' * 8\ndigest = hashlib.sha256()\n"),
    Operation("uuid.uuid4", "uuid.uuid4()", imports="uuid"),
    Operation("io.StringIO written and read", "file = io.StringIO(); file.write(text); file.getvalue()",
              LINES + "import io\n"),
    Operation("io.BytesIO rewound and read", "file.seek(0); file.read(4)",
              "import io\nfile = io.BytesIO(b'abcdefgh')\n"),
    Operation("sqlite in memory, a query", "connection.execute('select 1').fetchone()",
              "import sqlite3\nconnection = sqlite3.connect(':memory:', check_same_thread=False)\n"),
)
CONCURRENCY = (
    Operation("Lock, with", "with lock: pass", "import threading\nlock = threading.Lock()\n"),
    Operation("RLock, with", "with lock: pass", "import threading\nlock = threading.RLock()\n"),
    Operation("Semaphore acquired and released", "semaphore.acquire(); semaphore.release()",
              "import threading\nsemaphore = threading.Semaphore(8)\n"),
    Operation("threading.local read", "local.x",
              "import threading\nlocal = threading.local()\nlocal.x = 1\n", data=ALONE),
    Operation("threading.local written and read", "local.x = 10; local.x",
              "import threading\nlocal = threading.local()\n"),
    Operation("Queue, put and get", "tasks.put(1); tasks.get()", "import queue\ntasks = queue.Queue()\n"),
    Operation("SimpleQueue, put and get", "tasks.put(1); tasks.get()", "import queue\ntasks = queue.SimpleQueue()\n"),
    Operation("ContextVar read", "variable.get()",
              "import contextvars\nvariable = contextvars.ContextVar('v', default=1.5)\n"),
    Operation("ContextVar set and reset", "variable.reset(variable.set(2))",
              "import contextvars\nvariable = contextvars.ContextVar('v')\n"),
    Operation("logger.debug, off", "LOGGER.debug('x')",
              "import logging\nLOGGER = logging.getLogger('atlas')\nLOGGER.setLevel(logging.ERROR)\n", data=TOGETHER),
    Operation("time.perf_counter", "time.perf_counter()", imports="time"),
    Operation("time.strftime", "time.strftime('%Y')", imports="time"),
    Operation("os.getpid", "os.getpid()", imports="os"),
    Operation("os.environ read", "os.environ.get('NO_SUCH_NAME')", imports="os"),
    Operation("os.stat of a folder", "os.stat('/')", imports="os"),
    Operation("file written, the null device", "file.write('x')", "file = open('/dev/null', 'w')\n"),
    Operation("inspect.signature", "inspect.signature(same)", FUNCTIONS + "import inspect\n"),
)
AREAS: dict[str, tuple[Operation, ...]] = {
    "names and attributes": NAMES,
    "calls and classes": CALLS,
    "control flow and iteration": FLOW,
    "numbers": ARITHMETIC,
    "text and time": TEXT,
    "containers": CONTAINERS,
    "formats and digests": FORMATS,
    "threads and system": CONCURRENCY,
}
OPERATIONS = {each.name: each for operations in AREAS.values() for each in operations}
