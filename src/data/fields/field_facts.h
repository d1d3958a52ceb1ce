/* Finds the variables of a set of fields in one HDF5 or NetCDF-4 file: arrays, dimensions by name,
 * packing, coordinates. HDF5 parses the file in a separate process; the answer is plain bytes. */
#ifndef WEFT_DATA_FIELD_FACTS_H
#define WEFT_DATA_FIELD_FACTS_H

#include "../data_private.h"
#include "data/fields.h"

typedef struct FieldFactsRequest {
    char path[DATA_PATH];
    int count;
    char name[FIELD_VARIABLES][FIELD_NAME];
    /* static variables: a time of theirs is not that of the frames */
    bool is_static[FIELD_VARIABLES];
} FieldFactsRequest;

/* netCDF's value for floats that were never written */
#define FIELD_NEVER_WRITTEN 9.969209968386869e36

enum { FIELD_COORDINATES = 512, FIELD_UNITS = 80 };
typedef struct FieldVariableFacts {
    DataArray array;
    /* FieldDim of each dimension of the array */
    int8_t dim[SHAPE_DIMS];
    FieldPacking packing;
    char units[FIELD_UNITS];
    /* values of the level's coordinate; 0: it has none, or more than FIELD_COORDINATES */
    int levels;
    double level[FIELD_COORDINATES];
    /* hash of the coordinates of rows and columns; 0: they have none */
    uint64_t grid_hash;
} FieldVariableFacts;

typedef struct FieldFacts {
    /* status and message of what could not be read */
    Status status;
    char why[4096];
    /* units and calendar of the time's coordinate; "": it has none */
    char time_units[FIELD_UNITS], calendar[FIELD_UNITS];
    /* number of times; 0: no variable has a time, or time has no coordinate */
    int64_t times;
    /* coordinate of the rows, in degrees of latitude if is_latitude; 0: none */
    int rows;
    bool is_latitude;
    float row[FIELD_ROWS];
    FieldVariableFacts variable[FIELD_VARIABLES];
} FieldFacts;

/* Runs the request in a separate process and checks the answer. *times: the values of the time's
 * coordinate, owned by the caller, also after an error. ERR_DATA, ERR_IO, ERR_NOINPUT. */
Status field_facts_run(const FieldFactsRequest *request, FieldFacts *facts, double **times);
/* Runs the request in this process: for the separate process, and for tests. */
void field_facts_read(const FieldFactsRequest *request, FieldFacts *facts, double **times);

#endif
