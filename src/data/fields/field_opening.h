/* Declares a set of fields that is being opened, and the functions that open it. A comment that
 * begins with the name of a file says where the functions after it are defined. */
#ifndef WEFT_DATA_FIELD_OPENING_H
#define WEFT_DATA_FIELD_OPENING_H

#include "field_facts.h"
#include "fields_private.h"

/* A set that is being opened. */
typedef struct Opening {
    DataSet *set;
    FieldSet *f;
    const Config *config;
    /* for each variable the entry of data.variables that describes it, or &mask */
    const ConfigVariable *entry[FIELD_VARIABLES];
    /* entry of the variable of data.mask, if data.variables does not have it */
    ConfigVariable mask;
    /* number of variables of data.variables that are not extra channels; these come first, then the
     * variable of data.mask if it is not among them */
    int listed;
    FieldFactsRequest request;
    /* owned: paths of all files */
    FieldPaths paths;
    /* borrowed: facts of the file that is being added */
    const FieldFacts *facts;
    /* owned: facts of the first file */
    FieldFacts *first;
    /* largest number of frames in a chunk, of arrays whose first dimension is time; 0: none of them
     * is chunked */
    int64_t chunk_frames;
    /* owned: times of all frames so far, in seconds, [frames]; NULL: frames have no times */
    double *times;
    /* number of frames so far */
    int64_t frames;
} Opening;

/* field_variables.c. Adds the variables of all roles and the mask to the set and to the request.
 * ERR_CONFIG. */
Status field_opening_variables(Opening *o);
/* Lists the channels of a sample. All files have been added, and times are known. ERR_CONFIG. */
Status field_opening_channels(const Opening *o);
/* field_file.c. Adds the next file to the set, by its facts (a FieldFactsTake; user: the Opening).
 * ERR_DATA: the file differs from the first file, or does not fit the configuration. */
Status field_opening_add_file(void *user, int file, const FieldFacts *facts, const double *times);

#endif
