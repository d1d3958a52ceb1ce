/* The stack, marks and memo of the machine that reads a pickle, and the arguments of its
 * operations. Private to pickle.c and pickle_machine.c. */
#ifndef WEFT_CHECKPOINT_PICKLE_MACHINE_H
#define WEFT_CHECKPOINT_PICKLE_MACHINE_H

#include "pickle.h"

/* PICKLE_VALUES: largest number of values in the tree. PICKLE_MEMO: largest number of entries in
 * the memo. */
enum { PICKLE_VALUES = 1 << 22, PICKLE_MEMO = 1 << 22 };

/* A growing list of indices. */
typedef struct Indices {
    int count, room;
    /* owned */
    int *at;
} Indices;
void indices_push(Indices *list, int value);

typedef struct PickleMachine {
    /* the tree that is built; borrowed */
    Pickle *pickle;
    /* begin and end of the pickle's bytes, and the next byte to read (`at`); borrowed */
    const uint8_t *begin, *at, *end;
    /* indices of the values on the stack */
    Indices stack;
    /* for each mark, the number of values that were on the stack when it was set */
    Indices marks;
    /* indices of the values that the pickle may use again, by number; -1: none */
    Indices memo;
    /* number of values that fill_dict has copied so far */
    int64_t copied;
    /* true once operation STOP has ended the pickle */
    bool stopped;
} PickleMachine;

/* Fails with ERR_DATA and the position in the pickle. */
Status pickle_machine_refuse(const PickleMachine *m, const char *fmt, ...) BASE_PRINTF(2, 3);
PickleValue *pickle_machine_value(const PickleMachine *m, int i);
/* Pushes a new value. *value is valid until the next push. */
Status pickle_machine_push(PickleMachine *m, PickleKind kind, PickleValue **value);
void pickle_add_item(PickleValue *value, int item);
/* Returns the number of values above the last mark. */
int pickle_machine_above_mark(const PickleMachine *m);
/* Pops the topmost value above the last mark. */
Status pickle_machine_pop(PickleMachine *m, int *value);
/* Removes the last mark; the values above it begin at index *first of the stack. */
Status pickle_machine_pop_mark(PickleMachine *m, int *first);
/* Moves the values from index `first` of the stack on into the container below them, which must be
 * of this kind. If it is of kind OTHER instead, the values are dropped. */
Status pickle_machine_move(PickleMachine *m, int first, PickleKind kind);

/* Reads `count` bytes that follow an operation. *bytes: borrowed from the pickle. */
Status pickle_machine_bytes(PickleMachine *m, uint64_t count, const uint8_t **bytes);
/* Reads an unsigned number of `bytes` bytes that follows an operation. */
Status pickle_machine_number(PickleMachine *m, int bytes, uint64_t *value);
/* Reads a line that follows an operation. *text: borrowed, without the line break. */
Status pickle_machine_line(PickleMachine *m, const char **text, int64_t *bytes);

#endif
