/* report: writes one HTML file about one or several runs, from the files in their folders, or about
 * a topology. The page needs no script and fetches nothing. Not collective. */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include "topo.h"

/* Writes the report of the runs in these folders, folder[0 .. runs - 1], to the file `out`, which
 * is replaced. Equal files in the folders give equal reports. ERR_NOINPUT: a folder has no
 * metrics.jsonl. ERR_DATA: metrics.jsonl or ledger.jsonl has an invalid line. ERR_CONFIG: topo.json
 * is invalid. ERR_IO: `out` cannot be written. */
Status report_write(char *const *folder, int runs, const char *out);

/* Writes a page about a topology to the file `out`: pictures of the nodes with the ranks on them,
 * links as heat maps, and tables of the numbers. Only the first node of each layout (topo/layout.h)
 * is drawn. ERR_IO: `out` cannot be written. */
Status report_topology(const Topology *topo, const char *out);
/* Writes only the pictures of such a page, as one SVG file. ERR_IO: `out` cannot be written. */
Status report_topology_svg(const Topology *topo, const char *out);

#endif
