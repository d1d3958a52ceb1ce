/* A recording of strace -f -y -x: system calls in the order of their return, and their
 * arguments. */
#ifndef WEFT_CRASH_TRACE_H
#define WEFT_CRASH_TRACE_H

#include "folder.h"

typedef struct Call {
    char *name, *args;
    long result;
    /* path of the file that the call returned, or "" */
    char *result_path;
} Call;

typedef struct Trace {
    Call *call;
    int count;
} Trace;

Trace read_trace(const char *path);
/* Reads and unescapes the next C string, and moves *text behind it. */
Bytes next_string(const char **text);
/* Returns the path's name relative to the run's folder, or NULL if the path is outside of it.
 * folder: path of the run's folder, which contains "/runs/". path: absolute, or relative to the
 * folder that contains "runs". */
const char *name_in(const char *folder, const char *path);
/* Returns name_in of the open file that is the first argument of a call, such as "7</path>, ..." */
const char *name_of_file(const char *folder, const Call *call);
/* Reads the last `count` numbers of the arguments. */
void last_numbers(const Call *call, long *out, int count);

#endif
