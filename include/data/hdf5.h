/* HDF5 for all modules that read files with it: its lock, and checks of files. */
#ifndef WEFT_DATA_HDF5_H
#define WEFT_DATA_HDF5_H

#include "base.h"

/* Returns true if the file begins with HDF5's signature. */
bool data_is_hdf5(const char *path);
/* hdf5_lock takes and hdf5_unlock releases a recursive lock, which must be held during every call
 * of HDF5: HDF5 is not thread-safe, and a thread of a loader may be reading a compressed file
 * through it. hdf5_lock also turns off HDF5's own printing of errors in this thread. */
void hdf5_lock(void);
void hdf5_unlock(void);
/* Initialises HDF5 and then calls isolated_begin, so that processes that are forked later need not
 * initialise it. Call it before MPI and before any thread, in a process that will open files. */
void hdf5_begin(void);
/* Returns an IsolatedJob with limits for a process in which HDF5 unpacks `bytes` bytes of an
 * untrusted file and keeps up to `kept_bytes` bytes in memory. The caller sets the other
 * members. */
IsolatedJob hdf5_unpack_limits(int64_t bytes, int64_t kept_bytes);
/* Checks that the bytes of an open HDF5 data set (`dataset`, hid_t) are in the open file (`file`,
 * hid_t); if they are not, reading the data set by its offset would give other bytes. ERR_DATA: the
 * bytes are behind an external link, in external storage, or in the files of a virtual data set;
 * the message names the command that copies everything into one file. path, what: names of file and
 * data set, for the message. Call it under hdf5_lock. */
Status hdf5_check_in_one_file(int64_t file, int64_t dataset, const char *path, const char *what);
/* hdf5_access_without_links returns a property list (hid_t) with which objects are opened without
 * following external links. If an object is behind such a link, opening it fails and *is_external
 * becomes true; report it with hdf5_link_fail, which fails with ERR_DATA. is_external must live as
 * long as the list, which the caller closes with H5Pclose. Call both under hdf5_lock. */
int64_t hdf5_access_without_links(bool *is_external);
Status hdf5_link_fail(const char *path, const char *what);

#endif
