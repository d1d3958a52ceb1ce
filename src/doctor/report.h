/* The report of a judge on one check: a summary of the measurement, and the findings. A finding is
 * a problem, with the ranks or hosts that have it. */
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
    /* DoctorOptions.checkpoint_bytes */
    double checkpoint_bytes;
    /* place of each rank, [ranks]; borrowed */
    const Place *place;
} Allocation;

/* SEVERITY_SKIP: nothing was measured */
typedef enum Severity { SEVERITY_OK, SEVERITY_SKIP, SEVERITY_WARN, SEVERITY_FATAL } Severity;

typedef struct Finding {
    Severity severity;
    /* true: the hosts of the ranks are printed instead of the ranks */
    bool names_hosts;
    /* description of the problem; owned */
    char *text;
    /* a command or advice, may be ""; owned */
    char *remedy;
    /* the ranks that have the problem, [ranks]; owned */
    int *rank;
    /* number of entries of `rank`; 0: the finding is about the whole allocation */
    int ranks;
} Finding;
typedef struct Report {
    /* the measurement in a few words */
    char summary[256];
    /* true: the check could not measure; the summary says why */
    bool skipped;
    /* [findings]; owned */
    Finding *finding;
    /* number of entries of `finding` */
    int findings;
} Report;

/* Sets the summary. report_print prints the summary if there is no finding; report_json always
 * writes it. */
void report_set_summary(Report *report, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Marks the check as skipped. reason: the new summary, for example "not measured". */
void report_skip(Report *report, const char *reason);
enum { WHOLE_ALLOCATION = -1 };
/* Add a finding about a rank. In the output, a finding of report_add_host names the host of the
 * rank, and a finding of report_add_rank names the rank. If an earlier finding has the same text
 * and remedy, the rank is added to that finding. rank: WHOLE_ALLOCATION if the finding is about the
 * whole allocation. remedy: a command or advice, or "". */
void report_add_host(Report *report, Severity severity, int rank, const char *remedy,
                     const char *fmt, ...) BASE_PRINTF(5, 6);
void report_add_rank(Report *report, Severity severity, int rank, const char *remedy,
                     const char *fmt, ...) BASE_PRINTF(5, 6);
/* Returns the highest severity of the findings. Without findings it returns SEVERITY_SKIP if the
 * check is marked as skipped, else SEVERITY_OK. */
Severity report_worst(const Report *report);
/* Prints a line for each of the first ten findings, and one with the number of the rest. If there
 * are no findings, it prints a line with the summary. check: name of the check. */
void report_print(FILE *out, const char *check, const Allocation *allocation, const Report *report);
/* Writes the report as a JSON object, with all findings. */
void report_json(Json *json, const char *check, const Allocation *allocation, const Report *report);
void report_fini(Report *report);

/* True if the rank is the first of its node. */
bool is_node_leader(const Allocation *allocation, int rank);
/* Return the median of one measured number, over the leaders of all nodes or over all ranks. all:
 * the structs of all ranks, of `bytes` bytes each. offset: place of the number, a double, in the
 * struct. Values of 0 or less are left out. The result is 0 if no value is left. */
double median_of_nodes(const Allocation *allocation, const void *all, size_t bytes, size_t offset);
double median_of_ranks(const Allocation *allocation, const void *all, size_t bytes, size_t offset);
/* Returns the word before "ranks" in a message such as "most ranks have 2.1": "most" if more than
 * half of `all` ranks have this value, else "other". alike: number of ranks that have it. */
const char *most_or_other(int alike, int all);
/* Returns the most frequent text of the ranks; if several are equally frequent, the first of them.
 * Empty texts are left out. all: the structs of all ranks, of `bytes` bytes each. offset: place of
 * the text in the struct. *share: "most" or "other", the result of most_or_other for this text. The
 * result is borrowed from `all`, or NULL if all texts are empty. */
const char *most_frequent_text(const Allocation *allocation, const void *all, size_t bytes,
                               size_t offset, const char **share);

#endif
