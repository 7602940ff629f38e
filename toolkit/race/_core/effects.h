/* Made from toolkit/race/effects.py and terms.py by `python -m gilscope.toolkit.race._core.header`: do not edit it.  */
enum Kind {
    READ = 0, WRITE = 1, ATOMIC = 2, SIZE = 3, ITERATE = 4, GROW = 5, SHRINK = 6, RESHAPE = 7, MISS = 8,
};
enum Flag {
    CONSTANT = 1, TEST = 2, POLL = 4, SPAN_READ = 8, GUARD = 16, VALUE = 32, MULTI = 64, RECHECKED = 128,
    AUGMENTED = 256, DELETE = 512, INIT = 1024, MEMO = 2048, SNAPSHOT = 4096, NEW = 8192, COUNTED = 16384,
    RELIES = 32768, EXPECTED = 65536,
};
enum SideEffect {
    SIDE_TAKE = 1, SIDE_TAKE_IF_POLLED = 2, SIDE_HAND = 4, SIDE_FORGET = 8, SIDE_READ_ITEMS = 16,
    SIDE_READ_VALUES = 32, SIDE_UNORDERED = 64,
};
enum Container {
    CONTAINER_DICT = 1, CONTAINER_SUBCLASS = 2, CONTAINER_ORDERED = 4, CONTAINER_VIEW = 8, CONTAINER_SET = 16,
    CONTAINER_DEQUE = 32,
};
enum Column {
    NO_COLUMN, DICTS, COUNTERS, SETS, SEQUENCES, ARRAYS, QUEUES, N_COLUMNS,
};
enum EffectName {
    NO_EFFECT, EFFECT_SIZE, EFFECT_VIEW, EFFECT_SNAPSHOT, EFFECT_COPY, EFFECT_SHOW, EFFECT_ITERATE, EFFECT_GROW,
    EFFECT_EXTEND, EFFECT_SHRINK, EFFECT_RESHAPE, EFFECT_CLEAR, EFFECT_PUSH, EFFECT_PULL, EFFECT_REWRITE,
    EFFECT_ASK_QUEUE, EFFECT_PUT, EFFECT_TAKE, EFFECT_GET_KEY, EFFECT_SET_DEFAULT, EFFECT_REMOVE_KEY,
    EFFECT_REMOVE_ANY, EFFECT_INSERT_KEYS, EFFECT_COUNT_KEYS, EFFECT_ADD_KEY, EFFECT_DISCARD_KEY,
    EFFECT_INSERT_RIGHT, EFFECT_INSERT_LEFT, EFFECT_EXTEND_RIGHT, EFFECT_EXTEND_LEFT, EFFECT_POP_RIGHT,
    EFFECT_POP_LEFT, EFFECT_REMOVE_VALUE, N_EFFECTS,
};

/* Effects on the container as a whole.  kind: of the access of the structure.  side: enum SideEffect.  */
typedef struct { uint8_t kind, side; } Effect;
static const Effect effects[N_EFFECTS] = {
    [EFFECT_SIZE] = {SIZE, SIDE_TAKE_IF_POLLED},
    [EFFECT_VIEW] = {SIZE, SIDE_TAKE},
    [EFFECT_SNAPSHOT] = {SIZE, SIDE_TAKE | SIDE_READ_ITEMS},
    [EFFECT_COPY] = {SIZE, SIDE_TAKE | SIDE_READ_VALUES},
    [EFFECT_SHOW] = {SIZE, SIDE_TAKE | SIDE_READ_VALUES},
    [EFFECT_ITERATE] = {ITERATE, SIDE_TAKE | SIDE_READ_VALUES},
    [EFFECT_GROW] = {GROW, 0},
    [EFFECT_EXTEND] = {GROW, SIDE_HAND},
    [EFFECT_SHRINK] = {SHRINK, 0},
    [EFFECT_RESHAPE] = {RESHAPE, 0},
    [EFFECT_CLEAR] = {SHRINK, SIDE_FORGET},
    [EFFECT_PUSH] = {RESHAPE, SIDE_HAND},
    [EFFECT_PULL] = {RESHAPE, SIDE_TAKE},
    [EFFECT_REWRITE] = {RESHAPE, SIDE_TAKE | SIDE_HAND},
    [EFFECT_ASK_QUEUE] = {SIZE, SIDE_UNORDERED},
    [EFFECT_PUT] = {GROW, SIDE_UNORDERED},
    [EFFECT_TAKE] = {SHRINK, SIDE_UNORDERED},
};

/* in_steps: enum Container.  */
typedef struct { const char *name; bool removes; uint8_t in_steps, effects[N_COLUMNS]; } Method;
static const Method methods[] = {
    {"add", false, 0, {[SETS] = EFFECT_ADD_KEY}},
    {"append", false, 0, {[SEQUENCES] = EFFECT_INSERT_RIGHT, [ARRAYS] = EFFECT_GROW}},
    {"appendleft", false, 0, {[SEQUENCES] = EFFECT_INSERT_LEFT}},
    {"clear", true, 0, {[DICTS] = EFFECT_CLEAR, [SETS] = EFFECT_CLEAR, [SEQUENCES] = EFFECT_CLEAR,
    [ARRAYS] = EFFECT_CLEAR}},
    {"copy", false, 0, {[DICTS] = EFFECT_COPY, [COUNTERS] = EFFECT_COPY, [SETS] = EFFECT_COPY,
    [SEQUENCES] = EFFECT_COPY}},
    {"count", false, 0, {[SEQUENCES] = EFFECT_SIZE}},
    {"difference_update", false, 0, {[SETS] = EFFECT_SHRINK}},
    {"discard", true, 0, {[SETS] = EFFECT_DISCARD_KEY}},
    {"empty", false, 0, {[QUEUES] = EFFECT_ASK_QUEUE}},
    {"extend", false, 0, {[SEQUENCES] = EFFECT_EXTEND_RIGHT, [ARRAYS] = EFFECT_GROW}},
    {"extendleft", false, 0, {[SEQUENCES] = EFFECT_EXTEND_LEFT}},
    {"full", false, 0, {[QUEUES] = EFFECT_ASK_QUEUE}},
    {"get", true, 0, {[DICTS] = EFFECT_GET_KEY, [QUEUES] = EFFECT_TAKE}},
    {"get_nowait", true, 0, {[QUEUES] = EFFECT_TAKE}},
    {"index", false, 0, {[SEQUENCES] = EFFECT_SIZE}},
    {"insert", false, 0, {[SEQUENCES] = EFFECT_INSERT_RIGHT, [ARRAYS] = EFFECT_GROW}},
    {"intersection_update", false, 0, {[SETS] = EFFECT_SHRINK}},
    {"items", false, CONTAINER_ORDERED, {[DICTS] = EFFECT_VIEW}},
    {"keys", false, 0, {[DICTS] = EFFECT_SIZE}},
    {"move_to_end", false, 0, {[DICTS] = EFFECT_RESHAPE}},
    {"pop", true, 0, {[DICTS] = EFFECT_REMOVE_KEY, [SETS] = EFFECT_REMOVE_ANY, [SEQUENCES] = EFFECT_POP_RIGHT,
    [ARRAYS] = EFFECT_SHRINK}},
    {"popitem", true, 0, {[DICTS] = EFFECT_REMOVE_ANY}},
    {"popleft", true, 0, {[SEQUENCES] = EFFECT_POP_LEFT}},
    {"put", false, 0, {[QUEUES] = EFFECT_PUT}},
    {"put_nowait", false, 0, {[QUEUES] = EFFECT_PUT}},
    {"qsize", false, 0, {[QUEUES] = EFFECT_ASK_QUEUE}},
    {"remove", true, 0, {[SETS] = EFFECT_DISCARD_KEY, [SEQUENCES] = EFFECT_REMOVE_VALUE,
    [ARRAYS] = EFFECT_SHRINK}},
    {"reverse", false, 0, {[SEQUENCES] = EFFECT_RESHAPE, [ARRAYS] = EFFECT_RESHAPE}},
    {"rotate", false, 0, {[SEQUENCES] = EFFECT_RESHAPE}},
    {"setdefault", false, 0, {[DICTS] = EFFECT_SET_DEFAULT}},
    {"shutdown", false, 0, {[QUEUES] = EFFECT_PUT}},
    {"sort", false, 0, {[SEQUENCES] = EFFECT_RESHAPE}},
    {"subtract", false, 0, {[COUNTERS] = EFFECT_COUNT_KEYS}},
    {"symmetric_difference_update", false, 0, {[SETS] = EFFECT_RESHAPE}},
    {"total", false, 0, {[COUNTERS] = EFFECT_ITERATE}},
    {"update", false, 0, {[DICTS] = EFFECT_INSERT_KEYS, [COUNTERS] = EFFECT_COUNT_KEYS,
    [SETS] = EFFECT_INSERT_KEYS}},
    {"values", false, CONTAINER_ORDERED, {[DICTS] = EFFECT_VIEW}},
};
#define METHODS_WITH_STAND_IN(each) \
    each("add") each("append") each("appendleft") each("discard") each("extend") each("extendleft") each("get") \
    each("insert") each("pop") each("popitem") each("popleft") each("remove") each("setdefault") each("subtract") \
    each("update")

/* The effects on the argument of the op `size`, by the key of the site.  in_steps: enum Container.  */
typedef struct { const char *name; uint8_t effect, in_steps; } Function;
static const Function functions[] = {
    {"", EFFECT_SIZE, 0},
    {"&=", EFFECT_RESHAPE, 0},
    {"*=", EFFECT_RESHAPE, 0},
    {"+=", EFFECT_EXTEND, 0},
    {"-=", EFFECT_SHRINK, 0},
    {"^=", EFFECT_RESHAPE, 0},
    {"dict", EFFECT_COPY, CONTAINER_ORDERED | CONTAINER_VIEW},
    {"format", EFFECT_SHOW, CONTAINER_ORDERED | CONTAINER_DEQUE},
    {"frozenset", EFFECT_SNAPSHOT, CONTAINER_SUBCLASS | CONTAINER_ORDERED | CONTAINER_VIEW | CONTAINER_DEQUE},
    {"heapify", EFFECT_REWRITE, 0},
    {"heappop", EFFECT_PULL, 0},
    {"heappush", EFFECT_PUSH, 0},
    {"heappushpop", EFFECT_REWRITE, 0},
    {"heapreplace", EFFECT_REWRITE, 0},
    {"insort", EFFECT_PUSH, 0},
    {"insort_left", EFFECT_PUSH, 0},
    {"insort_right", EFFECT_PUSH, 0},
    {"join", EFFECT_SNAPSHOT, CONTAINER_SUBCLASS | CONTAINER_ORDERED | CONTAINER_DEQUE},
    {"len", EFFECT_SIZE, 0},
    {"list", EFFECT_SNAPSHOT, CONTAINER_SUBCLASS | CONTAINER_ORDERED | CONTAINER_DEQUE},
    {"not", EFFECT_SIZE, 0},
    {"print", EFFECT_SHOW, CONTAINER_ORDERED | CONTAINER_DEQUE},
    {"repr", EFFECT_SHOW, CONTAINER_ORDERED | CONTAINER_DEQUE},
    {"set", EFFECT_SNAPSHOT, CONTAINER_SUBCLASS | CONTAINER_ORDERED | CONTAINER_VIEW | CONTAINER_DEQUE},
    {"shuffle", EFFECT_REWRITE, 0},
    {"sorted", EFFECT_SNAPSHOT, CONTAINER_SUBCLASS | CONTAINER_ORDERED | CONTAINER_DEQUE},
    {"star", EFFECT_SNAPSHOT, CONTAINER_SUBCLASS | CONTAINER_ORDERED | CONTAINER_DEQUE},
    {"str", EFFECT_SHOW, CONTAINER_ORDERED | CONTAINER_DEQUE},
    {"tuple", EFFECT_SNAPSHOT, CONTAINER_DICT | CONTAINER_SUBCLASS | CONTAINER_ORDERED | CONTAINER_VIEW
    | CONTAINER_SET | CONTAINER_DEQUE},
    {"unpack", EFFECT_SNAPSHOT, 0},
    {"|=", EFFECT_EXTEND, 0},
};

#define ATOMIC_DEFAULTDICT_MISSING \
    ((Py_Version >= 0x030D0C00 && Py_Version < 0x030E0000) \
     || (Py_Version >= 0x030E0300 && Py_Version < 0x030F0000) \
     || Py_Version >= 0x030F0000)

static const struct { const char *name, *partner; bool acquires; } lock_pairs[] = {
    {"acquire", "release", true},
    {"lock", "unlock", true},
    {"release", "acquire", false},
    {"unlock", "lock", false},
};
