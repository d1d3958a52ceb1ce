/* Collects and prints the findings of judges, and computes medians and most frequent texts over the
 * allocation. Findings with the same text and remedy are merged, so that one fault on a thousand
 * hosts is one line. */
#include "report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* NAMES_MAX: maximum number of hosts or ranks named in one line. FINDINGS_MAX: maximum number of
 * findings printed for one check. */
enum { NAMES_MAX = 6, FINDINGS_MAX = 10 };
static const char *const severity_names[] = {[SEVERITY_OK] = "ok",
                                             [SEVERITY_SKIP] = "skip",
                                             [SEVERITY_WARN] = "warn",
                                             [SEVERITY_FATAL] = "fatal"};

void report_set_summary(Report *report, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(report->summary, sizeof report->summary, fmt, args);
    va_end(args);
}

void report_skip(Report *report, const char *reason)
{
    report_set_summary(report, "%s", reason);
    report->skipped = true;
}

static void add_finding(Report *r, Severity severity, bool names_hosts, int rank,
                        const char *remedy, const char *text)
{
    Finding *f = NULL;
    for (int i = 0; i < r->findings && !f; ++i)
        if (!strcmp(r->finding[i].text, text) && !strcmp(r->finding[i].remedy, remedy))
            f = &r->finding[i];
    if (!f) {
        r->finding = mem_resize(r->finding, (size_t)(r->findings + 1) * sizeof *r->finding);
        f = &r->finding[r->findings++];
        *f = (Finding){severity, names_hosts, mem_text(text), mem_text(remedy), NULL, 0};
    }
    if (rank == WHOLE_ALLOCATION) return;
    f->rank = mem_resize(f->rank, (size_t)(f->ranks + 1) * sizeof *f->rank);
    f->rank[f->ranks++] = rank;
}

void report_add_host(Report *report, Severity severity, int rank, const char *remedy,
                     const char *fmt, ...)
{
    char text[768];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    add_finding(report, severity, true, rank, remedy, text);
}

void report_add_rank(Report *report, Severity severity, int rank, const char *remedy,
                     const char *fmt, ...)
{
    char text[768];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    add_finding(report, severity, false, rank, remedy, text);
}

Severity report_worst(const Report *report)
{
    Severity worst = report->skipped ? SEVERITY_SKIP : SEVERITY_OK;
    for (int i = 0; i < report->findings; ++i)
        if (report->finding[i].severity > worst) worst = report->finding[i].severity;
    return worst;
}

void report_fini(Report *report)
{
    for (int i = 0; i < report->findings; ++i) {
        mem_free(&report->finding[i].text);
        mem_free(&report->finding[i].remedy);
        mem_free(&report->finding[i].rank);
    }
    mem_free(&report->finding);
    *report = (Report){0};
}

/* ---- as text ---- */

/* Prints the hosts or ranks of a finding, as "n1, n2: " or "rank 3 on n1: ". After NAMES_MAX names
 * it prints only the number of the rest, as " and 5 more: ". If the finding is about the whole
 * allocation, it prints nothing. */
static void print_ranks(FILE *out, const Allocation *a, const Finding *f)
{
    for (int i = 0; i < f->ranks && i < NAMES_MAX; ++i) {
        const Place *place = &a->place[f->rank[i]];
        fputs(i ? ", " : "", out);
        if (f->names_hosts)
            fprintf(out, "%s", place->host);
        else
            fprintf(out, "rank %d on %s", f->rank[i], place->host);
    }
    if (f->ranks > NAMES_MAX) fprintf(out, " and %d more", f->ranks - NAMES_MAX);
    if (f->ranks) fputs(": ", out);
}

static void print_head(FILE *out, Severity severity, const char *check)
{
    static const char *const colours[] = {[SEVERITY_OK] = "\033[32m",
                                          [SEVERITY_SKIP] = "\033[36m",
                                          [SEVERITY_WARN] = "\033[33m",
                                          [SEVERITY_FATAL] = "\033[31m"};
    bool colour = log_colour(out);
    fprintf(out, "%s%-5s%s  %-18s ", colour ? colours[severity] : "", severity_names[severity],
            colour ? "\033[0m" : "", check);
}

void report_print(FILE *out, const char *check, const Allocation *allocation, const Report *report)
{
    if (report->findings == 0) {
        print_head(out, report_worst(report), check);
        fprintf(out, "%s\n", report->summary);
    }
    for (int i = 0; i < report->findings && i < FINDINGS_MAX; ++i) {
        const Finding *f = &report->finding[i];
        print_head(out, f->severity, check);
        print_ranks(out, allocation, f);
        fprintf(out, "%s%s%s\n", f->text, *f->remedy ? "; try: " : "", f->remedy);
    }
    if (report->findings > FINDINGS_MAX) {
        print_head(out, SEVERITY_WARN, check);
        fprintf(out, "and %d more; --json has them all\n", report->findings - FINDINGS_MAX);
    }
    fflush(out);
}

void report_json(Json *json, const char *check, const Allocation *allocation, const Report *report)
{
    json_object(json, NULL);
    json_text(json, "check", check);
    json_text(json, "state", severity_names[report_worst(report)]);
    json_text(json, "measured", report->summary);
    json_array(json, "findings");
    for (int i = 0; i < report->findings; ++i) {
        const Finding *f = &report->finding[i];
        json_object(json, NULL);
        json_text(json, "state", severity_names[f->severity]);
        json_array(json, f->names_hosts ? "hosts" : "ranks");
        for (int k = 0; k < f->ranks; ++k)
            if (f->names_hosts)
                json_text(json, NULL, allocation->place[f->rank[k]].host);
            else
                json_int(json, NULL, f->rank[k]);
        json_end(json);
        json_text(json, "what", f->text);
        json_text(json, "try", f->remedy);
        json_end(json);
    }
    json_end(json);
    json_end(json);
}

/* ---- medians and most frequent texts ---- */

bool is_node_leader(const Allocation *allocation, int rank)
{
    return allocation->place[rank].leader == rank;
}

/* Computes median_of_nodes (nodes true) or median_of_ranks. */
static double median_over(const Allocation *a, const void *all, size_t bytes, size_t offset,
                          bool nodes)
{
    double *values = mem_new((size_t)a->ranks * sizeof *values + 1), result = 0;
    int count = 0;
    for (int r = 0; r < a->ranks; ++r) {
        double value;
        memcpy(&value, (const char *)all + (size_t)r * bytes + offset, sizeof value);
        if (value > 0 && (!nodes || is_node_leader(a, r))) values[count++] = value;
    }
    if (count) result = median(values, count);
    mem_free(&values);
    return result;
}

double median_of_nodes(const Allocation *allocation, const void *all, size_t bytes, size_t offset)
{
    return median_over(allocation, all, bytes, offset, true);
}

double median_of_ranks(const Allocation *allocation, const void *all, size_t bytes, size_t offset)
{
    return median_over(allocation, all, bytes, offset, false);
}

const char *most_or_other(int alike, int all)
{
    return 2 * alike > all ? "most" : "other";
}

const char *most_frequent_text(const Allocation *a, const void *all, size_t bytes, size_t offset,
                               const char **share)
{
    const char *first = (const char *)all + offset, *best = NULL;
    int best_count = 0, texts = 0;
    for (int r = 0; r < a->ranks; ++r) texts += first[(size_t)r * bytes] != 0;
    for (int i = 0; i < a->ranks && 2 * best_count <= texts; ++i) {
        const char *text = first + (size_t)i * bytes;
        int count = 0;
        /* If an earlier rank has the same text, the count from there was higher, so this count does
         * not replace it. */
        for (int r = i; *text && r < a->ranks; ++r)
            count += !strcmp(first + (size_t)r * bytes, text);
        if (count > best_count) {
            best_count = count;
            best = text;
        }
    }
    *share = most_or_other(best_count, texts);
    return best;
}
