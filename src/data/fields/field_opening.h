/* A set of fields that is being opened, and the steps of opening it, which are in several files: a
 * comment that begins with the name of a file says where the functions after it are defined. */
#ifndef WEFT_DATA_FIELD_OPENING_H
#define WEFT_DATA_FIELD_OPENING_H

#include "field_facts.h"
#include "fields_private.h"

/* A set that is being opened. */
typedef struct Opening {
    DataSet *set;
    FieldSet *f;
    const Config *config;
    /* entry of data.variables that each variable is made from, or `mask` */
    const ConfigVariable *entry[FIELD_VARIABLES];
    /* the entry of a mask that is not in data.variables */
    ConfigVariable mask;
    /* number of variables of data.variables without extra channels; the variable of data.mask
     * follows them if it is not among them */
    int listed;
    FieldFactsRequest request;
    /* owned: paths of all files */
    FieldPaths paths;
    /* borrowed: facts of the file that is being added */
    const FieldFacts *facts;
    /* owned: facts of the first file */
    FieldFacts *first;
    /* largest number of frames of a chunk; 0: no array is chunked by time */
    int64_t chunk_frames;
    /* owned: times of all frames so far, in seconds; NULL: frames have no times */
    double *times;
    /* number of frames so far */
    int64_t frames;
} Opening;

/* field_variables.c. Adds the variables of all roles and the mask to the set and to the request.
 * ERR_CONFIG. */
Status field_opening_variables(Opening *o);
/* Lists the channels of a sample, when files and times are known. ERR_CONFIG. */
Status field_opening_channels(const Opening *o);
/* field_file.c. Adds the next file to the set, by its facts (a FieldFactsTake; user: the Opening).
 * ERR_DATA: the file is not like the first file. */
Status field_opening_add_file(void *user, int file, const FieldFacts *facts, const double *times);

#endif
