/* Values of keys of a configuration that are lists or maps: layers, widths, pairs, numbers, and the
 * variables, times and patches of fields. */
#ifndef WEFT_CONFIG_VALUES_H
#define WEFT_CONFIG_VALUES_H

#include "base.h"

/* One `key: value` of a layer in model.layers, as text; the layers module interprets it. */
typedef struct ConfigAttr {
    /* owned; a list [a, b] is stored as "a,b" */
    char *key, *value;
    /* position in the file, of the value in a layer and of the key in ConfigPairs, counted from 1;
     * 0: from the command line */
    int line, column;
} ConfigAttr;
/* One entry of model.layers: `- conv2d: {channels: 32, kernel: 3}` or `- relu`. */
typedef struct ConfigLayer {
    /* owned */
    char *kind;
    /* position of the kind in the file, counted from 1; 0: from the command line */
    int line, column;
    int attr_count;
    /* owned */
    ConfigAttr *attr;
} ConfigLayer;

/* One entry of model.widths: the number of channels of a layer. */
typedef struct ConfigWidth {
    /* owned */
    char *layer;
    int64_t channels;
} ConfigWidth;
typedef struct ConfigWidths {
    int count;
    /* owned */
    ConfigWidth *item;
} ConfigWidths;

/* `key: value` pairs as text, for model.rope_scaling; the module of the key interprets them. */
typedef struct ConfigPairs {
    int count;
    /* owned */
    ConfigAttr *item;
} ConfigPairs;

/* A list of numbers. */
typedef struct ConfigList {
    int count;
    /* owned */
    double *value;
} ConfigList;

/* largest number of classes of a target that has labels */
enum { CONFIG_CLASSES_MOST = 256 };
/* One variable of data.variables. */
typedef struct ConfigVariable {
    /* FieldRole */
    int role;
    /* owned */
    char *name;
    /* levels, given by the values of their coordinate; empty: all levels */
    ConfigList levels;
    /* number of classes of a target that consists of labels; 0: the variable consists of numbers */
    int64_t classes;
    /* true: pixels with the value `ignore` have no label */
    bool ignores;
    double ignore;
    /* targets: weights in the loss, one for all levels or one for each level; empty: 1 */
    ConfigList weights;
    /* position in the file, counted from 1; 0: from the command line */
    int line, column;
} ConfigVariable;
typedef struct ConfigVariables {
    int count;
    /* owned */
    ConfigVariable *item;
} ConfigVariables;
/* data.window: offsets from a sample's time, in ascending order. */
typedef struct ConfigWindow {
    /* offsets of the inputs and of the targets; empty: [0] */
    ConfigList inputs, targets;
    /* given: true if an offset other than 0 is set. seconds: true if offsets are seconds, false if
     * they are steps of the set's time. */
    bool given, seconds;
} ConfigWindow;

/* data.train_time, data.test_time: first and last time, as dates of the set's calendar, with or
 * without a clock time; NULL: all times. Owned. */
typedef struct ConfigTimes {
    char *from, *to;
} ConfigTimes;

/* data.patch: rows and columns of the inputs; 0: whole fields. */
typedef struct ConfigPatch {
    int64_t rows, columns;
} ConfigPatch;

#endif
