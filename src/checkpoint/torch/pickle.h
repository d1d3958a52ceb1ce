/* Reads a pickle as a tree of values without running any code: no Python object is made and no
 * function is called. A call appears in the tree as the name of the callee and its arguments, and
 * only names that the caller lists may appear. */
#ifndef WEFT_CHECKPOINT_PICKLE_H
#define WEFT_CHECKPOINT_PICKLE_H

#include "base.h"

/* Result of a call of a listed name: a dictionary, a call in the tree, or a value whose content is
 * not read. */
typedef enum PickleRole { PICKLE_MAKES_DICT = 1, PICKLE_MAKES_CALL, PICKLE_MAKES_OTHER } PickleRole;
typedef struct PickleName {
    /* "torch._utils._rebuild_tensor_v2" */
    const char *name;
    PickleRole role;
    /* the caller's own number for the name; pickle_read does not use it */
    int tag;
} PickleName;

typedef enum PickleKind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_WHOLE,
    PICKLE_TEXT,
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_DICT,
    PICKLE_NAME,
    PICKLE_CALL,
    PICKLE_PERSISTENT,
    /* floats, bytes, sets, large numbers, objects whose content is not read */
    PICKLE_OTHER,
} PickleKind;

/* Values refer to others by their index in Pickle.value. */
typedef struct PickleValue {
    PickleKind kind;
    /* TUPLE, LIST: the values; DICT: keys and values in turn; CALL: the arguments, one TUPLE;
     * PERSISTENT: the identifier. Owned. */
    int count, room;
    int *item;
    /* WHOLE: the number; BOOL: 1 or 0 */
    int64_t whole;
    /* TEXT: borrowed bytes of the pickle, without a terminating zero */
    const char *text;
    int64_t bytes;
    /* NAME, CALL: the row of the caller's list */
    const PickleName *name;
} PickleValue;

typedef struct Pickle {
    /* borrowed; the last row of names has the name NULL */
    const char *path;
    const PickleName *names;
    int count, room;
    /* owned */
    PickleValue *value;
    /* index of the tree's root */
    int root;
    /* true: the pickle was refused for a name that is not listed or an operation that no state_dict
     * needs; either might run code where Python loads it */
    bool foreign;
} Pickle;

/* Reads a whole pickle of protocol 2 to 5. ERR_DATA: an operation or a name that is not allowed
 * (the message names it), a pickle that is truncated or wrongly nested, or more than 2^22 values.
 * bytes is borrowed until pickle_fini. Release pickle with pickle_fini in every case. */
Status pickle_read(Pickle *pickle, const char *path, const PickleName *names, const uint8_t *bytes,
                   size_t length);
void pickle_fini(Pickle *pickle);
/* Returns true if the value is exactly this text. */
bool pickle_is_text(const PickleValue *value, const char *text);

#endif
