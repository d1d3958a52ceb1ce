/* Finds the variables of a set of fields in one HDF5 or NetCDF-4 file: arrays, dimensions by name,
 * packing, coordinates. HDF5 parses the file in a separate process; the answer is plain bytes. */
#ifndef WEFT_DATA_FIELD_FACTS_H
#define WEFT_DATA_FIELD_FACTS_H

#include "../data_private.h"
#include "data/fields.h"

#include <sys/stat.h>

/* The variables that are read in each file. */
typedef struct FieldFactsRequest {
    int count;
    char name[FIELD_VARIABLES][FIELD_NAME];
    /* true: the variable is static; if it has a dimension of time, its times are not those of the
     * frames */
    bool is_static[FIELD_VARIABLES];
    /* index of the variable that has labels; -1: none has */
    int labels;
    /* roles of a variable: the bit 1 << FieldRole for each */
    uint8_t roles[FIELD_VARIABLES];
    /* true: the variable has no rows and columns */
    bool is_scalar[FIELD_VARIABLES];
    /* index of the variable that data.mask names; -1: none */
    int mask;
    /* true: the values of static variables and of variables without time are hashed, because they
     * must be the same in all files of a set */
    bool hash_values;
} FieldFactsRequest;

/* largest number of times of a file */
enum { FIELD_TIMES = 1 << 22 };
/* netCDF's value for floats that were never written */
#define FIELD_NEVER_WRITTEN 9.969209968386869e36

enum {
    /* largest number of levels whose coordinate is read */
    FIELD_COORDINATES = 512,
    /* bytes of the text of an attribute, such as units */
    FIELD_UNITS = 80,
    /* bytes of the meanings of all labels */
    FIELD_MEANINGS = 8192
};
typedef struct FieldVariableFacts {
    DataArray array;
    /* FieldDim of each dimension of the array */
    int8_t dim[SHAPE_DIMS];
    FieldPacking packing;
    char units[FIELD_UNITS];
    /* number of values of the level's coordinate, and the values; 0: levels have no coordinate, or
     * one of more than FIELD_COORDINATES values */
    int levels;
    double level[FIELD_COORDINATES];
    /* hash of the coordinates of rows and columns; 0: these have none */
    uint64_t grid_hash;
    /* hash of the values, at the first time if they have times, as readers return them; 0: the
     * variable is not static and has time, or FieldFactsRequest.hash_values is false */
    uint64_t value_hash;
} FieldVariableFacts;

typedef struct FieldFacts {
    /* status and message of the first failure */
    Status status;
    char why[4096];
    /* units and calendar of the coordinate of time; "": it has none */
    char time_units[FIELD_UNITS], calendar[FIELD_UNITS];
    /* number of times; 0: no variable has a time, or time has no coordinate */
    int64_t times;
    /* rows, columns: coordinates of the first input or static variable that has rows or columns
     * with a coordinate. target_rows: coordinate of the rows of the first such target. */
    FieldAxis rows, columns, target_rows;
    /* labels: number of values with a meaning, the values, and the meanings, separated by blanks;
     * 0: none */
    int flags;
    double flag[FIELD_CLASSES];
    char meanings[FIELD_MEANINGS];
    /* the file's state when it was opened */
    struct stat stat;
    /* hash of how the arrays are stored, as in field_hash_layout */
    uint64_t layout;
    /* facts of each variable of the request */
    FieldVariableFacts variable[FIELD_VARIABLES];
} FieldFacts;

/* Receives the facts of file number `file`, and the values of its coordinate of time. Both are
 * valid during the call only. */
typedef Status FieldFactsTake(void *user, int file, const FieldFacts *facts, const double *times);
/* Reads the facts of `count` files in separate processes, each of which reads some of the files.
 * Checks the answers, and calls take for each file, in order, up to the first error. ERR_DATA,
 * ERR_IO, ERR_NOINPUT, and the errors of take. */
Status field_facts_each(const FieldFactsRequest *request, char *const *path, int count,
                        FieldFactsTake *take, void *user);
/* Reads one file in the calling process, which is a separate process or a test. *times: the values
 * of the coordinate of time, NULL if there are none; owned by the caller, also after an error. */
void field_facts_read(const FieldFactsRequest *request, const char *path, FieldFacts *facts,
                      double **times);

/* field_labels.c. Names classes 0 to count - 1 by the labels' flags; a class without a flag has its
 * number as name. */
void field_labels_name(const FieldFacts *facts, int count, FieldClasses *classes);

#endif
