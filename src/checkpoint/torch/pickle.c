/* Interprets Python's pickles (PEP 307, 3154, 574) as far as a state_dict needs them:
 *
 *     bytes -> operation -> stack of values      marks: where a list of arguments begins
 *                              |                 memo:  values to be used again, by number
 *                              v
 *                      the value that remains is the tree
 *
 * No code is run: a call becomes a value of the tree, and operations that no state_dict needs have
 * no function in `operations`. Every length is compared with the bytes that remain, and
 * PICKLE_VALUES and PICKLE_MEMO bound the number of values. */
#include "pickle_machine.h"

#include <string.h>

typedef struct Operation {
    const char *name;
    /* argument: a number by which operations with the same function differ (see the table) */
    Status (*run)(PickleMachine *m, int argument);
    int argument;
} Operation;

static Status op_skip(PickleMachine *m, int bytes)
{
    const uint8_t *skipped;
    return pickle_machine_bytes(m, (uint64_t)bytes, &skipped);
}

static Status op_proto(PickleMachine *m, int unused)
{
    uint64_t version;
    (void)unused;
    TRY(pickle_machine_number(m, 1, &version));
    return version <= 5 ? OK : pickle_machine_refuse(m, "a protocol later than 5");
}

static Status op_mark(PickleMachine *m, int unused)
{
    (void)unused;
    indices_push(&m->marks, m->stack.count);
    return OK;
}

/* Pushes a value that has only a kind: NONE, an empty container, or a value that is not read. */
static Status op_plain(PickleMachine *m, int kind)
{
    PickleValue *value;
    return pickle_machine_push(m, (PickleKind)kind, &value);
}

static Status op_float(PickleMachine *m, int bytes)
{
    TRY(op_skip(m, bytes));
    return op_plain(m, PICKLE_OTHER);
}

static Status op_bool(PickleMachine *m, int truth)
{
    PickleValue *value;
    TRY(pickle_machine_push(m, PICKLE_BOOL, &value));
    value->whole = truth;
    return OK;
}

/* Pushes an integer: BININT is signed, its shorter forms are not. */
static Status op_whole(PickleMachine *m, int bytes)
{
    uint64_t number = 0;
    PickleValue *value;
    TRY(pickle_machine_number(m, bytes, &number));
    TRY(pickle_machine_push(m, PICKLE_WHOLE, &value));
    value->whole = bytes == 4 ? (int64_t)(int32_t)(uint32_t)number : (int64_t)number;
    return OK;
}

/* Pushes LONG1 or LONG4: a length, and a two's complement number of `length` bytes. */
static Status op_long(PickleMachine *m, int bytes_of_length)
{
    uint64_t length = 0;
    const uint8_t *bytes = NULL;
    PickleValue *value;
    TRY(pickle_machine_number(m, bytes_of_length, &length));
    TRY(pickle_machine_bytes(m, length, &bytes));
    TRY(pickle_machine_push(m, length <= 8 ? PICKLE_WHOLE : PICKLE_OTHER, &value));
    if (length == 0 || length > 8) return OK;
    uint64_t number = bytes[length - 1] & 0x80 ? UINT64_MAX : 0;
    for (int i = (int)length - 1; i >= 0; --i) number = number << 8 | bytes[i];
    value->whole = (int64_t)number;
    return OK;
}

/* Pushes a text, or a str of Python 2, which may be text or bytes. */
static Status op_text(PickleMachine *m, int bytes_of_length)
{
    uint64_t length = 0;
    const uint8_t *bytes = NULL;
    PickleValue *value;
    TRY(pickle_machine_number(m, bytes_of_length, &length));
    TRY(pickle_machine_bytes(m, length, &bytes));
    TRY(pickle_machine_push(m, PICKLE_TEXT, &value));
    value->text = (const char *)bytes;
    value->bytes = (int64_t)length;
    return OK;
}

static Status op_bytes(PickleMachine *m, int bytes_of_length)
{
    uint64_t length = 0;
    const uint8_t *bytes = NULL;
    TRY(pickle_machine_number(m, bytes_of_length, &length));
    TRY(pickle_machine_bytes(m, length, &bytes));
    return op_plain(m, PICKLE_OTHER);
}

/* Replaces the stack's values from index `first` on by a tuple with the same values. */
static Status push_tuple(PickleMachine *m, int first)
{
    int count = m->stack.count - first;
    int *item = count ? mem_new((size_t)count * sizeof *item) : NULL;
    for (int i = 0; i < count; ++i) item[i] = m->stack.at[first + i];
    m->stack.count = first;
    PickleValue *value;
    Status st = pickle_machine_push(m, PICKLE_TUPLE, &value);
    if (st != OK) mem_free(&item);
    if (st != OK) return st;
    value->item = item;
    value->count = value->room = count;
    return OK;
}

static Status op_tuple(PickleMachine *m, int count)
{
    if (pickle_machine_above_mark(m) < count)
        return pickle_machine_refuse(m, "an operation finds no value");
    return push_tuple(m, m->stack.count - count);
}

static Status op_tuple_of_mark(PickleMachine *m, int unused)
{
    int first = 0;
    (void)unused;
    TRY(pickle_machine_pop_mark(m, &first));
    return push_tuple(m, first);
}

/* Does APPEND or SETITEM: adds one value, or a key and a value, to a container. */
static Status op_add(PickleMachine *m, int kind)
{
    int count = kind == PICKLE_DICT ? 2 : 1;
    if (pickle_machine_above_mark(m) < count + 1)
        return pickle_machine_refuse(m, "an operation finds no value");
    return pickle_machine_move(m, m->stack.count - count, (PickleKind)kind);
}

static Status op_add_all(PickleMachine *m, int kind)
{
    int first = 0;
    TRY(pickle_machine_pop_mark(m, &first));
    return pickle_machine_move(m, first, (PickleKind)kind);
}

static Status op_pop(PickleMachine *m, int unused)
{
    int value = 0;
    (void)unused;
    return pickle_machine_pop(m, &value);
}

static Status op_pop_mark(PickleMachine *m, int unused)
{
    int first = 0;
    (void)unused;
    TRY(pickle_machine_pop_mark(m, &first));
    m->stack.count = first;
    return OK;
}

static Status remember(PickleMachine *m, uint64_t number)
{
    if (pickle_machine_above_mark(m) < 1)
        return pickle_machine_refuse(m, "an operation finds no value");
    if (number >= PICKLE_MEMO) return pickle_machine_refuse(m, "an impossible memo number");
    while ((uint64_t)m->memo.count <= number) indices_push(&m->memo, -1);
    m->memo.at[number] = m->stack.at[m->stack.count - 1];
    return OK;
}

static Status op_put(PickleMachine *m, int bytes)
{
    uint64_t number = 0;
    TRY(pickle_machine_number(m, bytes, &number));
    return remember(m, number);
}

static Status op_memoize(PickleMachine *m, int unused)
{
    (void)unused;
    return remember(m, (uint64_t)m->memo.count);
}

static Status op_get(PickleMachine *m, int bytes)
{
    uint64_t number = 0;
    TRY(pickle_machine_number(m, bytes, &number));
    if (number >= (uint64_t)m->memo.count || m->memo.at[number] < 0)
        return pickle_machine_refuse(m, "a memo that was never filled");
    indices_push(&m->stack, m->memo.at[number]);
    return OK;
}

/* ---- names and calls ---- */

static Status push_name(PickleMachine *m, const char *module, int64_t module_bytes,
                        const char *leaf, int64_t leaf_bytes)
{
    char *full = mem_format("%.*s.%.*s", (int)(module_bytes < 200 ? module_bytes : 200), module,
                            (int)(leaf_bytes < 200 ? leaf_bytes : 200), leaf);
    const PickleName *name = m->pickle->names;
    while (name->name && strcmp(name->name, full) != 0) ++name;
    PickleValue *value = NULL;
    Status st = OK;
    if (name->name) {
        st = pickle_machine_push(m, PICKLE_NAME, &value);
        if (st == OK) value->name = name;
    } else {
        m->pickle->refused_as_unsafe = true;
        st = pickle_machine_refuse(
            m, "it names %s, which tensors do not need and weft does not run", full);
    }
    mem_free(&full);
    return st;
}

static Status op_name(PickleMachine *m, int unused)
{
    const char *module = NULL, *leaf = NULL;
    int64_t module_bytes = 0, leaf_bytes = 0;
    (void)unused;
    TRY(pickle_machine_line(m, &module, &module_bytes));
    TRY(pickle_machine_line(m, &leaf, &leaf_bytes));
    return push_name(m, module, module_bytes, leaf, leaf_bytes);
}

static Status op_name_of_stack(PickleMachine *m, int unused)
{
    int leaf = 0, module = 0;
    (void)unused;
    TRY(pickle_machine_pop(m, &leaf));
    TRY(pickle_machine_pop(m, &module));
    PickleValue l = *pickle_machine_value(m, leaf), w = *pickle_machine_value(m, module);
    if (l.kind != PICKLE_TEXT || w.kind != PICKLE_TEXT)
        return pickle_machine_refuse(m, "a name that is no text");
    return push_name(m, w.text, w.bytes, l.text, l.bytes);
}

/* Fills a dictionary from OrderedDict([(key, value), ...]). */
static Status fill_dict(PickleMachine *m, PickleValue *dict, const PickleValue *arguments)
{
    if (arguments->count == 0) return OK;
    const PickleValue *list = pickle_machine_value(m, arguments->item[0]);
    if (list->kind != PICKLE_LIST && list->kind != PICKLE_TUPLE) return OK;
    m->copied += list->count;
    if (m->copied > PICKLE_VALUES)
        return pickle_machine_refuse(m, "more values than a state_dict has");
    for (int i = 0; i < list->count; ++i) {
        const PickleValue *pair = pickle_machine_value(m, list->item[i]);
        bool good = pair->kind == PICKLE_LIST || pair->kind == PICKLE_TUPLE;
        if (!good || pair->count != 2)
            return pickle_machine_refuse(m, "a dictionary of other than pairs");
        pickle_add_item(dict, pair->item[0]);
        pickle_add_item(dict, pair->item[1]);
    }
    return OK;
}

/* Does REDUCE or NEWOBJ: a call of a listed name becomes the value that the name's role
 * determines. */
static Status op_call(PickleMachine *m, int unused)
{
    int arguments = 0, called = 0;
    PickleValue *value;
    (void)unused;
    TRY(pickle_machine_pop(m, &arguments));
    TRY(pickle_machine_pop(m, &called));
    if (pickle_machine_value(m, called)->kind != PICKLE_NAME ||
        pickle_machine_value(m, arguments)->kind != PICKLE_TUPLE)
        return pickle_machine_refuse(m, "it calls something that is no name");
    const PickleName *name = pickle_machine_value(m, called)->name;
    switch (name->role) {
    case PICKLE_MAKES_DICT:
        TRY(pickle_machine_push(m, PICKLE_DICT, &value));
        return fill_dict(m, value, pickle_machine_value(m, arguments));
    case PICKLE_MAKES_CALL:
        TRY(pickle_machine_push(m, PICKLE_CALL, &value));
        value->name = name;
        pickle_add_item(value, arguments);
        return OK;
    case PICKLE_MAKES_OTHER:
        return op_plain(m, PICKLE_OTHER);
    }
    return OK;
}

/* Does BUILD: drops an object's attributes. A dictionary's attributes (OrderedDict's _metadata) are
 * not needed, and other objects are not read. */
static Status op_build(PickleMachine *m, int unused)
{
    int state;
    (void)unused;
    TRY(pickle_machine_pop(m, &state));
    if (pickle_machine_above_mark(m) < 1)
        return pickle_machine_refuse(m, "an operation finds no value");
    const PickleValue *object = pickle_machine_value(m, m->stack.at[m->stack.count - 1]);
    if (object->kind == PICKLE_DICT || object->kind == PICKLE_OTHER) return OK;
    return pickle_machine_refuse(m, "it sets attributes of an object that may have none");
}

static Status op_persistent(PickleMachine *m, int unused)
{
    int identifier = 0;
    PickleValue *value;
    (void)unused;
    TRY(pickle_machine_pop(m, &identifier));
    TRY(pickle_machine_push(m, PICKLE_PERSISTENT, &value));
    pickle_add_item(value, identifier);
    return OK;
}

static Status op_stop(PickleMachine *m, int unused)
{
    (void)unused;
    if (m->stack.count != 1 || m->marks.count != 0)
        return pickle_machine_refuse(m, "it ends with other than one value");
    m->pickle->root = m->stack.at[0];
    m->stopped = true;
    return OK;
}

static const Operation operations[256] = {
    [0x80] = {"PROTO", op_proto, 0},
    [0x95] = {"FRAME", op_skip, 8},
    ['('] = {"MARK", op_mark, 0},
    ['N'] = {"NONE", op_plain, PICKLE_NONE},
    ['}'] = {"EMPTY_DICT", op_plain, PICKLE_DICT},
    [']'] = {"EMPTY_LIST", op_plain, PICKLE_LIST},
    [')'] = {"EMPTY_TUPLE", op_plain, PICKLE_TUPLE},
    [0x8f] = {"EMPTY_SET", op_plain, PICKLE_OTHER},
    ['G'] = {"BINFLOAT", op_float, 8},
    [0x88] = {"NEWTRUE", op_bool, 1},
    [0x89] = {"NEWFALSE", op_bool, 0},
    ['K'] = {"BININT1", op_whole, 1},
    ['M'] = {"BININT2", op_whole, 2},
    ['J'] = {"BININT", op_whole, 4},
    [0x8a] = {"LONG1", op_long, 1},
    [0x8b] = {"LONG4", op_long, 4},
    ['X'] = {"BINUNICODE", op_text, 4},
    [0x8c] = {"SHORT_BINUNICODE", op_text, 1},
    [0x8d] = {"BINUNICODE8", op_text, 8},
    ['T'] = {"BINSTRING", op_text, 4},
    ['U'] = {"SHORT_BINSTRING", op_text, 1},
    ['B'] = {"BINBYTES", op_bytes, 4},
    ['C'] = {"SHORT_BINBYTES", op_bytes, 1},
    [0x8e] = {"BINBYTES8", op_bytes, 8},
    [0x96] = {"BYTEARRAY8", op_bytes, 8},
    ['t'] = {"TUPLE", op_tuple_of_mark, 0},
    [0x85] = {"TUPLE1", op_tuple, 1},
    [0x86] = {"TUPLE2", op_tuple, 2},
    [0x87] = {"TUPLE3", op_tuple, 3},
    ['a'] = {"APPEND", op_add, PICKLE_LIST},
    ['e'] = {"APPENDS", op_add_all, PICKLE_LIST},
    ['s'] = {"SETITEM", op_add, PICKLE_DICT},
    ['u'] = {"SETITEMS", op_add_all, PICKLE_DICT},
    [0x90] = {"ADDITEMS", op_add_all, PICKLE_OTHER},
    ['0'] = {"POP", op_pop, 0},
    ['1'] = {"POP_MARK", op_pop_mark, 0},
    ['q'] = {"BINPUT", op_put, 1},
    ['r'] = {"LONG_BINPUT", op_put, 4},
    [0x94] = {"MEMOIZE", op_memoize, 0},
    ['h'] = {"BINGET", op_get, 1},
    ['j'] = {"LONG_BINGET", op_get, 4},
    ['c'] = {"GLOBAL", op_name, 0},
    [0x93] = {"STACK_GLOBAL", op_name_of_stack, 0},
    ['R'] = {"REDUCE", op_call, 0},
    [0x81] = {"NEWOBJ", op_call, 0},
    ['b'] = {"BUILD", op_build, 0},
    ['Q'] = {"BINPERSID", op_persistent, 0},
    ['.'] = {"STOP", op_stop, 0},
    /* operations that are refused; the message has their names */
    ['i'] = {"INST", NULL, 0},
    ['o'] = {"OBJ", NULL, 0},
    [0x92] = {"NEWOBJ_EX", NULL, 0},
    [0x82] = {"EXT1", NULL, 0},
    [0x83] = {"EXT2", NULL, 0},
    [0x84] = {"EXT4", NULL, 0},
    ['P'] = {"PERSID", NULL, 0},
    ['2'] = {"DUP", NULL, 0},
    ['d'] = {"DICT", NULL, 0},
    ['l'] = {"LIST", NULL, 0},
    ['I'] = {"INT", NULL, 0},
    ['L'] = {"LONG", NULL, 0},
    ['F'] = {"FLOAT", NULL, 0},
    ['S'] = {"STRING", NULL, 0},
    ['V'] = {"UNICODE", NULL, 0},
    ['g'] = {"GET", NULL, 0},
    ['p'] = {"PUT", NULL, 0},
    [0x91] = {"FROZENSET", NULL, 0},
    [0x97] = {"NEXT_BUFFER", NULL, 0},
    [0x98] = {"READONLY_BUFFER", NULL, 0},
};

static Status run(PickleMachine *m)
{
    while (!m->stopped) {
        if (m->at == m->end) return pickle_machine_refuse(m, "it ends too early");
        const Operation *o = &operations[*m->at];
        if (!o->name) return pickle_machine_refuse(m, "no operation of a pickle");
        if (!o->run) {
            m->pickle->refused_as_unsafe = true;
            return pickle_machine_refuse(m, "the operation %s, which no state_dict needs", o->name);
        }
        ++m->at;
        TRY(o->run(m, o->argument));
    }
    return m->at == m->end ? OK : pickle_machine_refuse(m, "bytes follow its end");
}

Status pickle_read(Pickle *pickle, const char *path, const PickleName *names, const uint8_t *bytes,
                   size_t length)
{
    *pickle = (Pickle){.path = path, .names = names};
    PickleMachine m = {.pickle = pickle, .begin = bytes, .at = bytes, .end = bytes + length};
    Status st = run(&m);
    mem_free(&m.stack.at);
    mem_free(&m.marks.at);
    mem_free(&m.memo.at);
    return st;
}

void pickle_fini(Pickle *pickle)
{
    for (int i = 0; i < pickle->count; ++i) mem_free(&pickle->value[i].item);
    mem_free(&pickle->value);
    pickle->count = 0;
}

bool pickle_is_text(const PickleValue *value, const char *text)
{
    size_t bytes = strlen(text);
    return value->kind == PICKLE_TEXT && value->bytes == (int64_t)bytes &&
           !memcmp(value->text, text, bytes);
}
