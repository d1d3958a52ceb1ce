/* The stack, marks and memo of the machine that reads a pickle, and the arguments of its
 * operations. Private to pickle.c and pickle_machine.c. */
#ifndef WEFT_CHECKPOINT_PICKLE_MACHINE_H
#define WEFT_CHECKPOINT_PICKLE_MACHINE_H

#include "pickle.h"

/* largest number of values in the tree and of entries in the memo */
enum { PICKLE_VALUES = 1 << 22, PICKLE_MEMO = 1 << 22 };

/* A growing list of indices. */
typedef struct Indices {
    int count, room;
    /* owned */
    int *at;
} Indices;
void indices_push(Indices *list, int value);

typedef struct Machine {
    /* borrowed: the tree that is built; begin, end of the pickle's bytes, and `at`, the next byte
     * to read */
    Pickle *pickle;
    const uint8_t *begin, *at, *end;
    /* stack and memo have indices of values; a mark is the number of values on the stack at that
     * time */
    Indices stack, marks, memo;
    /* number of items that calls have copied so far */
    int64_t copied;
    /* true once operation STOP has ended the pickle */
    bool stopped;
} Machine;

/* Fails with ERR_DATA and the position in the pickle. */
Status machine_refuse(const Machine *m, const char *fmt, ...) BASE_PRINTF(2, 3);
PickleValue *machine_value(const Machine *m, int i);
/* Pushes a new value. *value is valid until the next push. */
Status machine_push(Machine *m, PickleKind kind, PickleValue **value);
void pickle_add_item(PickleValue *value, int item);
/* Returns the number of values above the last mark. */
int machine_above_mark(const Machine *m);
/* Pops the topmost value above the last mark. */
Status machine_pop(Machine *m, int *value);
/* Removes the last mark; the values above it begin at index *first of the stack. */
Status machine_pop_mark(Machine *m, int *first);
/* Moves the values from `first` of the stack on into the container below them, which must be of
 * this kind; if it is of kind OTHER instead, the values are dropped. */
Status machine_move(Machine *m, int first, PickleKind kind);

/* Read an argument after an operation: bytes, an unsigned number, a line. */
Status machine_bytes(Machine *m, uint64_t count, const uint8_t **bytes);
Status machine_number(Machine *m, int bytes, uint64_t *value);
Status machine_line(Machine *m, const char **text, int64_t *bytes);

#endif
