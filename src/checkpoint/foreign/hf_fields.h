/* Reads the fields of a model description in JSON (config.json of Hugging Face's models) as a flat
 * list. An object in the description becomes a field NAME, and a field NAME.MEMBER for each of its
 * members. */
#ifndef WEFT_CHECKPOINT_HF_FIELDS_H
#define WEFT_CHECKPOINT_HF_FIELDS_H

#include "base.h"

typedef enum HfKind { HF_NULL, HF_BOOL, HF_NUMBER, HF_TEXT, HF_LIST, HF_OBJECT } HfKind;
typedef struct HfField {
    /* name of the field, for example "rope_scaling.factor"; owned */
    char *name;
    /* A text without its quotes. A list as "a,b", or as written if it contains objects or escape
     * sequences. An object as "{}" if it is empty and "{...}" if not. Any other value as written.
     * Owned. */
    char *value;
    HfKind kind;
    /* true: hf_find has returned the field, or a table of hf_model.c has its name */
    bool known;
} HfField;
typedef struct HfFields {
    /* path of the description; borrowed */
    const char *path;
    int count;
    /* the fields; owned */
    HfField *field;
} HfFields;

/* Reads a description. ERR_NOINPUT, ERR_IO: the file cannot be read. ERR_DATA: it is not JSON, is
 * nested too deep, or a field occurs twice. Release with hf_close in every case. */
Status hf_open(HfFields *fields, const char *path);
void hf_close(HfFields *fields);
/* Returns the field of that name and marks it as known; returns NULL if there is none. */
const HfField *hf_find(HfFields *fields, const char *name);
/* Does the same as hf_find, but also returns NULL if the value is null or an empty object. */
const HfField *hf_value(HfFields *fields, const char *name);
/* Fails with ERR_DATA. The message has the description, the field, its value and the formatted
 * text: "config.json: hidden_act is gelu: why". */
Status hf_refuse(const HfFields *fields, const HfField *field, const char *fmt, ...)
    BASE_PRINTF(3, 4);
/* Checks the kind of a field. ERR_DATA: it is another kind; the message has the field's value, its
 * kind and the expected kind. */
Status hf_check_kind(const HfFields *fields, const HfField *field, HfKind kind);

#endif
