/* What strace -f -y -x recorded: calls that have returned, in that order, and their arguments. */
#ifndef WEFT_CRASH_TRACE_H
#define WEFT_CRASH_TRACE_H

#include "folder.h"

typedef struct Call {
    char *name, *args;
    long result;
    /* of the file that it returned, or "" */
    char *result_path;
} Call;

typedef struct Trace {
    Call *call;
    int count;
} Trace;

Trace read_trace(const char *path);
/* The next string of C, unescaped; *text goes behind it. */
Bytes next_string(const char **text);
/* The path's name in the run's folder, or NULL. Relative paths are of the folder that holds it. */
const char *name_in(const char *folder, const char *path);
/* Of the open file that is the first argument: "7</path>, ..." */
const char *name_of_file(const char *folder, const Call *call);
/* The last `count` numbers of the arguments. */
void last_numbers(const Call *call, long *out, int count);

#endif
