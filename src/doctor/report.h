/* Findings of a judge: a summary, and for each finding the ranks or hosts that it holds for. */
#ifndef WEFT_DOCTOR_REPORT_H
#define WEFT_DOCTOR_REPORT_H

#include "base.h"

/* The host and node of a rank. */
typedef struct Place {
    char host[HOST_BYTES];
    /* the first rank of its node, which may be the rank itself; the number of ranks on the node */
    int first, node_size;
} Place;
typedef struct Allocation {
    int ranks, nodes;
    double checkpoint_bytes;
    /* place of each rank; borrowed */
    const Place *place;
} Allocation;

/* SKIP: nothing was measured, so nothing is known */
typedef enum Severity { SEVERITY_OK, SEVERITY_SKIP, SEVERITY_WARN, SEVERITY_FATAL } Severity;

typedef struct Finding {
    Severity severity;
    /* print the host of each rank instead of the rank */
    bool of_hosts;
    /* owned; cure: a command or other remedy, may be "" */
    char *text, *cure;
    /* ranks that it holds for; owned; if there are none, it holds for the whole allocation */
    int *rank, ranks;
} Finding;
typedef struct Report {
    char summary[256];
    bool skipped;
    /* owned, `findings` of them */
    Finding *finding;
    int findings;
} Report;

/* Sets the text of what was measured, which a check without findings prints. */
void report_summary(Report *report, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Marks the check as skipped, with the reason as summary: "not measured", "not known". */
void report_skip(Report *report, const char *why);
/* Add a finding for a host or a rank. If an earlier finding has the same text and cure, the rank
 * joins it. rank -1: it holds for the whole allocation. cure: a command or another remedy, or
 * "". */
void report_host(Report *report, Severity severity, int rank, const char *cure, const char *fmt,
                 ...) BASE_PRINTF(5, 6);
void report_rank(Report *report, Severity severity, int rank, const char *cure, const char *fmt,
                 ...) BASE_PRINTF(5, 6);
Severity report_worst(const Report *report);
void report_print(FILE *out, const char *check, const Allocation *allocation, const Report *report);
void report_json(Json *json, const char *check, const Allocation *allocation, const Report *report);
void report_fini(Report *report);

/* True if the rank is the first of its node. */
bool place_leads(const Allocation *allocation, int rank);
/* Median of a double that lies `offset` bytes into each struct of `bytes` bytes, over the first
 * ranks of nodes or over all ranks. Values of 0 are left out; returns 0 if no value is left. */
double median_of_nodes(const Allocation *allocation, const void *all, size_t bytes, size_t offset);
double median_of_ranks(const Allocation *allocation, const void *all, size_t bytes, size_t offset);
/* The most frequent text at `offset`, the first of equally frequent ones; "" does not count.
 * Borrowed from all; NULL if all texts are "". */
const char *most_common(const Allocation *allocation, const void *all, size_t bytes, size_t offset);

#endif
