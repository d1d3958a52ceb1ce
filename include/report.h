/* report: one HTML file about one or several runs, made from the files in their folders, or about a
 * topology. It needs no script and fetches nothing. Not collective. */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include "topo.h"

/* Writes the report of the runs with these folders to the file `out`, which is replaced. Equal
 * files give equal reports. ERR_NOINPUT: a folder has no metrics.jsonl; ERR_DATA: a line of it, or
 * the last one of ledger.jsonl, is not as expected; ERR_CONFIG: topo.json is not; ERR_IO. */
Status report_write(char *const *folder, int runs, const char *out);

/* Writes a page about a topology: pictures of the nodes with the ranks on them, links as heat maps,
 * and tables of the numbers. Nodes with equal hardware and ranks are drawn once. ERR_IO. */
Status report_topology(const Topology *topo, const char *out);
/* Writes these pictures alone, as one SVG file. ERR_IO. */
Status report_topology_svg(const Topology *topo, const char *out);

#endif
