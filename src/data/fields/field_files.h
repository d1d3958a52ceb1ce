/* Keeps the files of a reader of fields open, up to a fixed number: the files that were used
 * last. */
#ifndef WEFT_DATA_FIELD_FILES_H
#define WEFT_DATA_FIELD_FILES_H

#include "fields_private.h"

typedef struct FieldFiles FieldFiles;
/* Creates an empty table of open files. f: the set of the files; borrowed. */
FieldFiles *field_files_new(const FieldSet *f);
void field_files_free(FieldFiles **files);
/* Opens a file of the set, if it is not open, and keeps it open until field_files_release is called
 * with *hold. *fd: the file's descriptor. Several threads may call it. ERR_NOINPUT: the file cannot
 * be opened; field_files_release must not be called. */
Status field_files_hold(FieldFiles *files, int file, int *fd, int *hold);
void field_files_release(FieldFiles *files, int hold);
/* Opens a variable of a file with HDF5, if it is not open. Call under hdf5_lock; *dataset is valid
 * until hdf5_unlock. ERR_NOINPUT, ERR_DATA. */
Status field_files_dataset(FieldFiles *files, int file, int variable, hid_t *dataset);

#endif
