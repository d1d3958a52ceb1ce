/* Finds the variables of a set of fields in one HDF5 or NetCDF-4 file: their arrays, dimensions,
 * packing and coordinates. HDF5 parses the file in a separate process, which answers with a
 * FieldFacts and the times. */
#ifndef WEFT_DATA_FIELD_FACTS_H
#define WEFT_DATA_FIELD_FACTS_H

#include "../data_private.h"
#include "data/fields.h"

#include <sys/stat.h>

/* The variables whose facts are read in each file. */
typedef struct FieldFactsRequest {
    /* number of variables, which is the length of the arrays below */
    int count;
    char name[FIELD_VARIABLES][FIELD_NAME];
    /* true: the variable is static; if it has a dimension of time, its times are not those of the
     * frames */
    bool is_static[FIELD_VARIABLES];
    /* index of the label field, the target whose pixels have classes; -1: there is none */
    int labels;
    /* roles of each variable: a bit set of 1 << FieldRole */
    uint8_t roles[FIELD_VARIABLES];
    /* true: the variable has no rows and columns */
    bool is_scalar[FIELD_VARIABLES];
    /* index of the variable that data.mask names; -1: none */
    int mask;
    /* true: hash the values of static variables and of variables without time, since these must be
     * the same in all files of a set */
    bool hash_values;
} FieldFactsRequest;

/* largest number of times of a file */
enum { FIELD_TIMES = 1 << 22 };
/* netCDF's value of floats that were never written */
#define FIELD_NEVER_WRITTEN 9.969209968386869e36

enum {
    /* largest number of levels whose coordinate is read */
    FIELD_COORDINATES = 512,
    /* bytes of the text of an attribute, such as units */
    FIELD_UNITS = 80,
    /* bytes of the text with the names of all classes */
    FIELD_MEANINGS = 8192
};
typedef struct FieldVariableFacts {
    DataArray array;
    /* FieldDim of each dimension of the array */
    int8_t dim[SHAPE_DIMS];
    FieldPacking packing;
    char units[FIELD_UNITS];
    /* number of values of the coordinate of levels; 0: levels have no coordinate, or one of more
     * than FIELD_COORDINATES values */
    int levels;
    /* values of the coordinate of levels, [levels] */
    double level[FIELD_COORDINATES];
    /* hash of the coordinates of rows and columns; 0: these have no coordinates */
    uint64_t grid_hash;
    /* hash of the values as readers return them; if the variable has times, only of the values at
     * the first time; 0: the variable is not static and has time, or FieldFactsRequest.hash_values
     * is false */
    uint64_t value_hash;
} FieldVariableFacts;

typedef struct FieldFacts {
    /* OK, or the status of the first failure */
    Status status;
    /* message of the failure */
    char why[4096];
    /* units of the coordinate of time; "": it has none */
    char time_units[FIELD_UNITS];
    /* calendar of the coordinate of time; "": it names none */
    char calendar[FIELD_UNITS];
    /* number of times; 0: no variable has a time, or time has no coordinate */
    int64_t times;
    /* coordinate of rows: that of the first variable with a role other than target whose rows have
     * a coordinate of at most FIELD_ROWS values */
    FieldAxis rows;
    /* coordinate of columns, found in the same way */
    FieldAxis columns;
    /* coordinate of rows of the first target that has one of at most FIELD_ROWS values */
    FieldAxis target_rows;
    /* number of values of the label field that have a name (attributes flag_values and
     * flag_meanings); 0: none */
    int flag_count;
    /* the values that have a name, [flag_count] */
    double flag[FIELD_CLASSES];
    /* their names, separated by blanks */
    char meanings[FIELD_MEANINGS];
    /* the file's state when it was opened */
    struct stat stat;
    /* hash of how the arrays are stored, as in field_refresh_layout */
    uint64_t layout;
    /* facts of each variable of the request */
    FieldVariableFacts variable[FIELD_VARIABLES];
} FieldFacts;

/* Receives the facts of file number `file`, and the values of its coordinate of time,
 * [facts->times]. Both are valid only during the call. */
typedef Status FieldFactsTake(void *user, int file, const FieldFacts *facts, const double *times);
/* Reads the facts of `count` files in separate processes, each of which reads some of the files.
 * Checks the answers, and calls `take` for each file in order, up to the first error. ERR_DATA,
 * ERR_IO, ERR_NOINPUT, and the errors of `take`. */
Status field_facts_each(const FieldFactsRequest *request, char *const *path, int count,
                        FieldFactsTake *take, void *user);
/* Reads the facts of one file in the calling process, which is a separate process or a test.
 * Failures are in facts->status. *times: the values of the coordinate of time, or NULL; owned by
 * the caller, also after a failure. */
void field_facts_read(const FieldFactsRequest *request, const char *path, FieldFacts *facts,
                      double **times);

/* field_labels.c. Sets the names of classes 0 to count - 1 to the names that the label field's
 * attributes give (FieldFacts.flag). A class without such a name has its number as name. */
void field_labels_name(const FieldFacts *facts, int count, FieldClasses *classes);

#endif
