/* The report module's private header: the content of a run's folder, charts, pictures of a
 * topology, HTML, and the sections of a page. */
#ifndef WEFT_REPORT_PRIVATE_H
#define WEFT_REPORT_PRIVATE_H

#include "report.h"
#include "topo.h"

#include "observe/history.h"

/* The values of one key of metrics.jsonl, one for each line that has the key with a finite
 * value. */
typedef struct Series {
    /* key in metrics.jsonl; owned */
    char *key;
    /* steps of the lines, [count]; owned */
    double *step;
    /* values of the lines, [count]; owned */
    double *value;
    /* number of values; 0: all are null */
    int count;
    /* number of values for which there is room */
    int capacity;
    /* number of lines in which the value is null, which stands for NaN and infinities */
    int nulls;
    /* true: the value of the last line with this key is null */
    bool ends_null;
} Series;

/* The content of a run's folder. */
typedef struct RunFiles {
    /* folder, as given; borrowed */
    const char *folder;
    /* the values of each key, in the order in which keys first occur, [series_count]; owned */
    Series *series;
    /* number of keys */
    int series_count;
    /* content of ledger.jsonl; owned */
    LedgerHistory ledger;
    /* true: the last line of metrics.jsonl is incomplete, and left out */
    bool metrics_torn;
    /* content of config.yaml; "": the file cannot be read; owned */
    char *config;
    /* last part of log.txt; "": the file cannot be read; owned */
    char *log;
    /* content of topo.json; ranks is 0 if there is no such file; owned */
    Topology topo;
} RunFiles;
/* series.c. Reads the files of a run. Errors as in report_write. Release with run_files_fini. */
Status run_files_read(RunFiles *run, const char *folder);
void run_files_fini(RunFiles *run);
/* Returns the series with this key, or NULL. Borrowed. */
const Series *run_series(const RunFiles *run, const char *key);

/* topology.c. Writes the pictures and tables of a topology into a page. run_name: name of the run
 * to which the topology belongs, for the headings; NULL: headings without a name. */
void topology_sections(FILE *out, const Topology *topo, const char *run_name);
/* hardware_picture.c. Draws node number `node` with its ranks, PICTURE_WIDTH pixels wide, with its
 * upper edge at y. The topology must describe the node's hardware. Returns the height of the
 * picture in pixels. If `out` is NULL, draws nothing and only returns the height. */
enum { PICTURE_WIDTH = 900 };
int hardware_picture(FILE *out, const Topology *topo, int node, int y);
/* heat_map.c. A matrix of links that is drawn as a heat map. */
typedef struct HeatMap {
    /* borrowed */
    const char *title;
    /* value of each link, [ranks][ranks]; borrowed */
    const double *matrix;
    /* factor by which a value is multiplied when it is written as a number */
    double scale;
    /* true: slow pairs of ranks are framed */
    bool marks;
} HeatMap;
/* With more than HEAT_RANKS_MAX ranks topology.c draws no heat maps. With more than
 * HEAT_NUMBERS_MAX ranks the cells of a heat map have no numbers. */
enum { HEAT_RANKS_MAX = 64, HEAT_NUMBERS_MAX = 16 };
/* Draws a heat map; y, out and the result are as in hardware_picture. */
int heat_map(FILE *out, const Topology *topo, const HeatMap *map, int y);

/* html.c. The CSS of a page, also used in a picture that is a file of its own. */
extern const char html_style[];
/* Writes a text in a picture. class: CSS classes of html_style, separated by blanks. x: position of
 * that point of the text which `anchor` names: "start", "middle" or "end". y: position of the
 * text's baseline. */
void svg_text(FILE *out, const char *class, const char *anchor, int x, int y, const char *text);
/* Writes `text` with & < > " escaped. Bytes that are not UTF-8 become "?"; control characters
 * except newlines and tabs are left out. */
void html_text(FILE *out, const char *text);
/* html_begin begins a page, html_end ends it. */
void html_begin(FILE *out, const char *title);
void html_end(FILE *out);
/* html_section begins a section with a heading, html_section_end ends it. */
void html_section(FILE *out, const char *heading);
void html_section_end(FILE *out);
/* Writes `text` in <details>, which the page shows closed at first. summary: the line that is
 * always shown. */
void html_details(FILE *out, const char *summary, const char *text);

/* chart.c. A line of a chart. */
typedef struct ChartLine {
    /* name in the legend and in the table; borrowed */
    const char *name;
    /* borrowed */
    const Series *series;
} ChartLine;
/* Number of colours. Lines after the sixth use the same colours again, with dashes, and those after
 * the twelfth with dots; from the nineteenth on, lines look like earlier ones. */
enum { CHART_COLOURS = 6 };
/* Writes a figure: `count` lines over the step, and a table of values (at most 60) for each line.
 * count must be above 0, and each series must have a value. */
void chart_lines(FILE *out, const char *title, const ChartLine *line, int count);
/* Writes a figure with one bar for each row. A bar stacks the row's values; negative values count
 * as 0. The row with the largest sum has the full width. row: names of the rows. part: names of the
 * values of a row. value: [rows][parts]. */
void chart_bars(FILE *out, const char *title, const char *const *row, int rows,
                const char *const *part, int parts, const double *value);

/* The six functions below each write a section of the page. A section is left out if no run has
 * data for it, except that of section_files, whose heading is always written. */
void section_times(FILE *out, const RunFiles *run, int runs);
void section_starts(FILE *out, const RunFiles *run, int runs);
void section_schedules(FILE *out, const RunFiles *run, int runs);
void section_memory(FILE *out, const RunFiles *run, int runs);
void section_versions(FILE *out, const RunFiles *run, int runs);
void section_files(FILE *out, const RunFiles *run, int runs);

#endif
