/* The operations of the machine that reads a pickle on its stack, and the reading of arguments.
 * Every length is compared with the bytes that remain. */
#include "pickle_machine.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

Status pickle_machine_refuse(const PickleMachine *m, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (char *c = text; *c; ++c)
        if (iscntrl((unsigned char)*c)) *c = '?';
    return fail(ERR_DATA, "%s: byte %lld of its pickle: %s", m->pickle->path,
                (long long)(m->at - m->begin), text);
}

void indices_push(Indices *list, int value)
{
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->at = mem_resize(list->at, (size_t)list->room * sizeof *list->at);
    }
    list->at[list->count++] = value;
}

/* ---- values ---- */

PickleValue *pickle_machine_value(const PickleMachine *m, int i)
{
    return &m->pickle->value[i];
}

Status pickle_machine_push(PickleMachine *m, PickleKind kind, PickleValue **value)
{
    Pickle *p = m->pickle;
    if (p->count == PICKLE_VALUES)
        return pickle_machine_refuse(m, "more values than a state_dict has");
    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 256;
        p->value = mem_resize(p->value, (size_t)p->room * sizeof *p->value);
    }
    p->value[p->count] = (PickleValue){.kind = kind};
    indices_push(&m->stack, p->count);
    *value = &p->value[p->count++];
    return OK;
}

void pickle_add_item(PickleValue *value, int item)
{
    if (value->count == value->room) {
        value->room = value->room ? 2 * value->room : 2;
        value->item = mem_resize(value->item, (size_t)value->room * sizeof *value->item);
    }
    value->item[value->count++] = item;
}

int pickle_machine_above_mark(const PickleMachine *m)
{
    return m->stack.count - (m->marks.count ? m->marks.at[m->marks.count - 1] : 0);
}

Status pickle_machine_pop(PickleMachine *m, int *value)
{
    if (pickle_machine_above_mark(m) < 1)
        return pickle_machine_refuse(m, "an operation finds no value");
    *value = m->stack.at[--m->stack.count];
    return OK;
}

Status pickle_machine_pop_mark(PickleMachine *m, int *first)
{
    if (m->marks.count == 0) return pickle_machine_refuse(m, "an operation finds no mark");
    *first = m->marks.at[--m->marks.count];
    return OK;
}

Status pickle_machine_move(PickleMachine *m, int first, PickleKind kind)
{
    int count = m->stack.count - first, base = m->marks.count ? m->marks.at[m->marks.count - 1] : 0;
    if (first - 1 < base || (kind == PICKLE_DICT && count % 2))
        return pickle_machine_refuse(m, "an operation finds other values than it needs");
    PickleValue *into = pickle_machine_value(m, m->stack.at[first - 1]);
    if (into->kind != kind && into->kind != PICKLE_OTHER)
        return pickle_machine_refuse(m, "values are added to an object that holds none");
    for (int i = first; into->kind == kind && i < m->stack.count; ++i)
        pickle_add_item(into, m->stack.at[i]);
    m->stack.count = first;
    return OK;
}

/* ---- arguments ---- */

Status pickle_machine_bytes(PickleMachine *m, uint64_t count, const uint8_t **bytes)
{
    if (count > (uint64_t)(m->end - m->at)) return pickle_machine_refuse(m, "it ends too early");
    *bytes = m->at;
    m->at += count;
    return OK;
}

Status pickle_machine_number(PickleMachine *m, int bytes, uint64_t *value)
{
    const uint8_t *at = NULL;
    TRY(pickle_machine_bytes(m, (uint64_t)bytes, &at));
    *value = 0;
    for (int i = bytes - 1; i >= 0; --i) *value = *value << 8 | at[i];
    return OK;
}

Status pickle_machine_line(PickleMachine *m, const char **text, int64_t *bytes)
{
    const uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (!end) return pickle_machine_refuse(m, "it ends too early");
    *text = (const char *)m->at;
    *bytes = end - m->at;
    m->at = end + 1;
    return OK;
}
