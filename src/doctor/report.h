/* The report of a judge on one check: a summary of the measurement, and findings with the ranks or
 * hosts that they hold for. */
#ifndef WEFT_DOCTOR_REPORT_H
#define WEFT_DOCTOR_REPORT_H

#include "base.h"

/* The host and node of a rank. */
typedef struct Place {
    char host[HOST_BYTES];
    /* the node's leader, which is its first rank */
    int leader;
    /* number of ranks on the node */
    int node_size;
} Place;
/* The ranks and nodes of the job. */
typedef struct Allocation {
    int ranks, nodes;
    /* size of a checkpoint (DoctorOptions) */
    double checkpoint_bytes;
    /* place of each rank; borrowed */
    const Place *place;
} Allocation;

/* SEVERITY_SKIP: nothing was measured */
typedef enum Severity { SEVERITY_OK, SEVERITY_SKIP, SEVERITY_WARN, SEVERITY_FATAL } Severity;

typedef struct Finding {
    Severity severity;
    /* print the host of each rank instead of the rank */
    bool names_hosts;
    /* owned */
    char *text;
    /* owned: a command or advice, may be "" */
    char *remedy;
    /* owned: the ranks that the finding holds for. If there are none, it holds for the whole
     * allocation. */
    int *rank;
    /* number of ranks in `rank` */
    int ranks;
} Finding;
typedef struct Report {
    char summary[256];
    /* the check could not measure; the summary says why */
    bool skipped;
    /* owned */
    Finding *finding;
    /* number of findings */
    int findings;
} Report;

/* Sets the summary, which is printed if there is no finding. */
void report_set_summary(Report *report, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Marks the check as skipped, with the reason as summary: "not measured", "not known". */
void report_skip(Report *report, const char *reason);
enum { WHOLE_ALLOCATION = -1 };
/* Add a finding, to be printed with the host of `rank`, or with `rank`. If an earlier finding has
 * the same text and remedy, the rank is added to it. rank WHOLE_ALLOCATION: the finding
 * holds for no single rank. remedy: a command or advice, or "". */
void report_add_host(Report *report, Severity severity, int rank, const char *remedy,
                     const char *fmt, ...) BASE_PRINTF(5, 6);
void report_add_rank(Report *report, Severity severity, int rank, const char *remedy,
                     const char *fmt, ...) BASE_PRINTF(5, 6);
/* Returns the highest severity of the findings; without findings SKIP or OK. */
Severity report_worst(const Report *report);
void report_print(FILE *out, const char *check, const Allocation *allocation, const Report *report);
void report_json(Json *json, const char *check, const Allocation *allocation, const Report *report);
void report_fini(Report *report);

/* True if the rank is the first of its node. */
bool is_node_leader(const Allocation *allocation, int rank);
/* Median of a double that lies `offset` bytes into each struct of `bytes` bytes, over the first
 * ranks of nodes or over all ranks. Values of 0 are left out; returns 0 if no value is left. */
double median_of_nodes(const Allocation *allocation, const void *all, size_t bytes, size_t offset);
double median_of_ranks(const Allocation *allocation, const void *all, size_t bytes, size_t offset);
/* Returns the word for those of `all` that are alike: "most" if they are more than half, else
 * "other". */
const char *most_or_other(int alike, int all);
/* Returns the most frequent text at `offset`, the first of equally frequent ones; "" does not
 * count. Sets *share to most_or_other for it. Borrowed from all; NULL if all texts are "". */
const char *most_frequent_text(const Allocation *allocation, const void *all, size_t bytes,
                               size_t offset, const char **share);

#endif
