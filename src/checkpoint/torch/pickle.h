/* Reads a pickle as a tree of values without running any code: no Python object is made and no
 * function is called. Only names in the list that is passed to pickle_read may appear. A call in
 * the pickle becomes a value of the kind that the called function's PickleRole says. Several values
 * may refer to the same value, and a damaged pickle may have a list or dictionary that contains
 * itself; so a caller that follows items recursively must limit the depth. */
#ifndef WEFT_CHECKPOINT_PICKLE_H
#define WEFT_CHECKPOINT_PICKLE_H

#include "base.h"

/* The value that a call of a listed name becomes. */
typedef enum PickleRole {
    /* a dictionary */
    PICKLE_MAKES_DICT = 1,
    /* a PICKLE_CALL, with the called name and the arguments */
    PICKLE_MAKES_CALL,
    /* a value whose content is not read */
    PICKLE_MAKES_OTHER
} PickleRole;
typedef struct PickleName {
    /* for example "torch._utils._rebuild_tensor_v2" */
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

/* A value of the tree. It refers to other values by their index in Pickle.value. */
typedef struct PickleValue {
    PickleKind kind;
    int count, room;
    /* indices of values, [count]; owned. TUPLE, LIST: the values. DICT: keys and values in turn.
     * CALL: the arguments, one TUPLE. PERSISTENT: the identifier. */
    int *item;
    /* WHOLE: the integer; BOOL: 1 or 0 */
    int64_t whole;
    /* TEXT: bytes of the pickle, without a terminating zero; borrowed */
    const char *text;
    /* TEXT: number of bytes */
    int64_t bytes;
    /* NAME, CALL: the row of the caller's list */
    const PickleName *name;
} PickleValue;

typedef struct Pickle {
    /* name of the file, for messages; borrowed */
    const char *path;
    /* the caller's list of names that may appear; its last row has the name NULL; borrowed */
    const PickleName *names;
    int count, room;
    /* values of the tree, [count]; owned */
    PickleValue *value;
    /* index of the tree's root */
    int root;
    /* true: the pickle was refused because of a name that is not listed, or an operation that no
     * state_dict needs. Either could run code if Python loaded the file. */
    bool refused_as_unsafe;
} Pickle;

/* Reads a complete pickle of protocol 2 to 5. ERR_DATA: an operation or a name that is not allowed
 * (the message names it), a pickle that is truncated or wrongly nested, or more than 2^22 values.
 * `bytes` is borrowed until pickle_fini. Release `pickle` with pickle_fini in every case. */
Status pickle_read(Pickle *pickle, const char *path, const PickleName *names, const uint8_t *bytes,
                   size_t length);
void pickle_fini(Pickle *pickle);
/* Returns true if the value is exactly this text. */
bool pickle_is_text(const PickleValue *value, const char *text);

#endif
