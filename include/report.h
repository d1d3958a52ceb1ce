/* report: one HTML file about one or several runs, made from the files in their folders. It needs
 * no script and fetches nothing. Not collective. */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include "base.h"

/* Writes the report of the runs with these folders to the file `out`, which is replaced. Equal
 * files give equal reports. ERR_NOINPUT: a folder has no metrics.jsonl; ERR_DATA: a line of it, or
 * the last one of ledger.jsonl, is not as expected; ERR_IO. */
Status report_write(char *const *folder, int runs, const char *out);

#endif
