/* Reads the fields of a model description in JSON (config.json of Hugging Face's models) as a flat
 * list. An object in the description becomes a field NAME, and a field NAME.MEMBER for each of its
 * members. */
#ifndef WEFT_CHECKPOINT_HF_FIELDS_H
#define WEFT_CHECKPOINT_HF_FIELDS_H

#include "base.h"

typedef enum HfKind { HF_NULL, HF_BOOL, HF_NUMBER, HF_TEXT, HF_LIST, HF_OBJECT } HfKind;
typedef struct HfField {
    /* owned. name: for example "rope_scaling.factor". value: a text without its quotes; a list as
     * "a,b" (as written if it contains objects or escape sequences); an object as "{}" if it is
     * empty and "{...}" if not; all other values as written. */
    char *name, *value;
    HfKind kind;
    /* true: hf_find has returned the field, or a table of hf_model.c has its name */
    bool known;
} HfField;
typedef struct HfFields {
    /* borrowed */
    const char *path;
    int count;
    /* owned */
    HfField *field;
} HfFields;

/* Reads a description. ERR_NOINPUT, ERR_IO; ERR_DATA: not JSON, nested too deep, or a field of
 * the outermost object occurs twice. Release with hf_close in every case. */
Status hf_open(HfFields *fields, const char *path);
void hf_close(HfFields *fields);
/* Returns the field of that name and marks it as known, or NULL if there is none. */
const HfField *hf_find(HfFields *fields, const char *name);
/* Does the same as hf_find, but returns NULL also if the value is null or an empty object. */
const HfField *hf_value(HfFields *fields, const char *name);
/* Fails with ERR_DATA, naming the description, the field and its value: "config.json: hidden_act is
 * gelu: why". */
Status hf_refuse(const HfFields *fields, const HfField *field, const char *fmt, ...)
    BASE_PRINTF(3, 4);
/* Checks the field's kind; ERR_DATA names its value, its kind and the expected kind. */
Status hf_check_kind(const HfFields *fields, const HfField *field, HfKind kind);

#endif
