/* Writes the pictures and tables of a topology: as a page, as sections of a page, or as one SVG
 * file. */
#include "private.h"

#include "topo/layout.h"

#include <errno.h>

/* SPACE: pixels between the pictures of a file. MARGIN: pixels around them. SLOW_LISTED: largest
 * number of slow pairs in a table. */
enum { SPACE = 28, MARGIN = 16, SLOW_LISTED = 50 };

/* number of heat maps of a topology */
enum { MAPS = 3 };
/* Fills in the heat maps of a topology. */
static void heat_maps(const Topology *t, HeatMap map[MAPS])
{
    map[0] = (HeatMap){"latency of a small message, µs", t->latency_s, 1e6, false};
    map[1] = (HeatMap){"rate of a pair alone, in each direction, GB/s; slow pairs are framed",
                       t->bytes_per_s, 1e-9, true};
    map[2] = (HeatMap){"rate while all ranks send, GB/s", t->together_bytes_per_s, 1e-9, false};
}

/* Returns whether heat maps of the links are drawn. */
static bool draws_links(const Topology *t)
{
    return t->bytes_per_s && t->ranks > 1 && t->ranks <= HEAT_RANKS_MAX;
}

/* Calls `draw` for the first node of each layout whose hardware is described. The first picture is
 * drawn at y, each other one below the picture before it. Returns the sum of the heights that
 * `draw` returned. */
static int each_picture(FILE *out, const Topology *t, int y,
                        int (*draw)(FILE *out, const Topology *t, int node, int y))
{
    int count, number = 0, height = 0, *layout = topo_layouts(t, &count);
    for (int n = 0; n < t->nodes; ++n) {
        if (layout[n] < number) continue;
        ++number;
        if (topo_hardware(t, n)) height += draw(out, t, n, y + height);
    }
    mem_free(&layout);
    return height;
}

/* ---- one SVG file ---- */

static int draw_node(FILE *out, const Topology *t, int node, int y)
{
    return hardware_picture(out, t, node, y) + SPACE;
}

/* Draws all pictures below each other, from y = 0 on, and returns their height. If `out` is NULL,
 * draws nothing and only returns the height. */
static int draw_all(FILE *out, const Topology *t)
{
    HeatMap map[MAPS];
    int height = each_picture(out, t, 0, draw_node);
    heat_maps(t, map);
    for (int i = 0; i < MAPS && draws_links(t); ++i)
        height += heat_map(out, t, &map[i], height) + SPACE;
    return height;
}

Status report_topology_svg(const Topology *t, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    int width = PICTURE_WIDTH + 2 * MARGIN, height = draw_all(NULL, t) + 2 * MARGIN;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\"><title>nodes and links</title>\n<style>%s"
            "svg{background:var(--back);color:var(--text);font-family:system-ui,sans-serif}"
            "</style>\n<g transform=\"translate(%d,%d)\">\n",
            width, height, width, height, html_style, MARGIN, MARGIN);
    draw_all(out, t);
    fputs("</g></svg>\n", out);
    return file_close_stream(out, path);
}

/* ---- sections of a page ---- */

static void begin_section(FILE *out, const char *name, const char *run_name)
{
    char *heading = run_name ? mem_format("%s of %s", name, run_name) : mem_text(name);
    html_section(out, heading);
    mem_free(&heading);
}

static void begin_picture(FILE *out, const char *title, int height)
{
    fprintf(out,
            "<figure><svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\"><title>",
            PICTURE_WIDTH, height, PICTURE_WIDTH, height);
    html_text(out, title);
    fputs("</title>\n", out);
}

/* Writes a table of a node's cores and the ranks on them, without ranks that may use all CPUs. */
static void put_cores_table(FILE *out, const Topology *t, int node, const Hardware *h)
{
    char cpus[200];
    enum { ALL_RANKS = 1 << 20 };
    fputs("<details><summary>cores, their CPUs and ranks</summary><table>"
          "<tr><th>core</th><th>socket</th><th>CPUs</th><th>ranks</th></tr>\n",
          out);
    for (int i = 0; i < h->part_count; ++i) {
        const Part *core = &h->part[i];
        if (core->kind != PART_CORE) continue;
        int package = hardware_find(h, PART_PACKAGE, &core->cpus);
        char *ranks = topo_ranks_on(t, node, &core->cpus, ALL_RANKS);
        char socket[32] = "-";
        if (package >= 0) snprintf(socket, sizeof socket, "%d", h->part[package].number);
        fprintf(out, "<tr><td>%d</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", core->number,
                socket, cpus_write(cpus, sizeof cpus, &core->cpus), ranks);
        mem_free(&ranks);
    }
    fputs("</table></details>\n", out);
}

/* Writes the figure of a node. The figure has an SVG element of its own, so y is not used, and the
 * result is 0. */
static int put_node(FILE *out, const Topology *t, int node, int y)
{
    const Hardware *h = topo_hardware(t, node);
    (void)y;
    begin_picture(out, t->host[node], hardware_picture(NULL, t, node, 0));
    hardware_picture(out, t, node, 0);
    fputs("</svg>\n", out);
    if (h->note && *h->note) {
        fputs("<p>", out);
        html_text(out, h->note);
        fputs("</p>\n", out);
    }
    put_cores_table(out, t, node, h);
    fputs("</figure>\n", out);
    return 0;
}

static void put_nodes(FILE *out, const Topology *t, const char *run_name)
{
    bool described = false;
    for (int n = 0; n < t->nodes; ++n) described = described || topo_hardware(t, n);
    begin_section(out, "Nodes", run_name);
    fprintf(out, "<p>%d rank%s on %d node%s%s</p>\n", t->ranks, t->ranks == 1 ? "" : "s", t->nodes,
            t->nodes == 1 ? "" : "s", described ? "" : "; hardware not described");
    each_picture(out, t, 0, put_node);
    fputs("<details><summary>ranks, nodes and CPUs</summary><table><tr><th>rank</th><th>node</th>"
          "<th>switches</th><th>CPUs</th></tr>\n",
          out);
    for (int r = 0; r < t->ranks; ++r) {
        const char *switches = t->switches ? t->switches[t->node[r]] : "";
        fprintf(out, "<tr><td>%d</td><td>", r);
        html_text(out, t->host[t->node[r]]);
        fputs("</td><td>", out);
        html_text(out, *switches ? switches : "-");
        fputs("</td><td>", out);
        html_text(out, t->cpus[r]);
        fputs("</td></tr>\n", out);
    }
    fputs("</table></details>\n", out);
    html_section_end(out);
}

static void put_classes(FILE *out, const Topology *t)
{
    LinkSummary summary[LINK_CLASS_COUNT];
    topo_summarize(t, summary);
    fputs("<table><tr><th>links</th><th>pairs</th><th>latency µs</th><th>alone GB/s</th>"
          "<th>least</th><th>most</th><th>together GB/s</th></tr>\n",
          out);
    for (int i = 0; i < LINK_CLASS_COUNT; ++i) {
        const LinkSummary *s = &summary[i];
        if (s->pairs == 0) continue;
        fprintf(out,
                "<tr><td>%s</td><td>%d</td><td>%.3g</td><td>%.3g</td><td>%.3g</td><td>%.3g</td>"
                "<td>%.3g</td></tr>\n",
                link_class_name((LinkClass)i), s->pairs, 1e6 * s->latency_s, 1e-9 * s->bytes_per_s,
                1e-9 * s->bytes_per_s_min, 1e-9 * s->bytes_per_s_max,
                1e-9 * s->together_bytes_per_s);
    }
    fputs("</table>\n", out);
}

static void put_slow_nodes(FILE *out, const Topology *t)
{
    SlowNode *node;
    int count = topo_slow_nodes(t, &node);
    if (count > 0)
        fputs("<p>Slow nodes, whose fastest link to another has less than 0.8 of the median:</p>"
              "<table><tr><th>node</th><th>GB/s</th><th>median</th></tr>\n",
              out);
    for (int i = 0; i < count; ++i) {
        fputs("<tr><td>", out);
        html_text(out, t->host[node[i].node]);
        fprintf(out, "</td><td>%.3g</td><td>%.3g</td></tr>\n", 1e-9 * node[i].bytes_per_s,
                1e-9 * node[i].nodes_median);
    }
    if (count > 0) fputs("</table>\n", out);
    mem_free(&node);
}

static void put_slow_pairs(FILE *out, const Topology *t)
{
    SlowPair *pair;
    int count = topo_slow_pairs(t, &pair);
    if (count > 0)
        fputs("<p>Slow pairs, with less than 0.8 of the median of their class:</p><table>"
              "<tr><th>ranks</th><th>nodes</th><th>GB/s</th><th>median</th><th>class</th></tr>\n",
              out);
    for (int i = 0; i < count && i < SLOW_LISTED; ++i) {
        const SlowPair *p = &pair[i];
        fprintf(out, "<tr><td>%d, %d</td><td>", p->a, p->b);
        html_text(out, t->host[t->node[p->a]]);
        fputs(", ", out);
        html_text(out, t->host[t->node[p->b]]);
        fprintf(out, "</td><td>%.3g</td><td>%.3g</td><td>%s</td></tr>\n", 1e-9 * p->bytes_per_s,
                1e-9 * p->class_median, link_class_name(p->class));
    }
    if (count > 0) fputs("</table>\n", out);
    if (count > SLOW_LISTED) fprintf(out, "<p>and %d more</p>\n", count - SLOW_LISTED);
    mem_free(&pair);
}

static void put_matrix(FILE *out, const Topology *t, const HeatMap *map)
{
    fputs("<details><summary>numbers</summary><table><tr><th>rank</th>", out);
    for (int b = 0; b < t->ranks; ++b) fprintf(out, "<th>%d</th>", b);
    fputs("</tr>\n", out);
    for (int a = 0; a < t->ranks; ++a) {
        fprintf(out, "<tr><td>%d</td>", a);
        for (int b = 0; b < t->ranks; ++b) {
            if (a == b)
                fputs("<td>-</td>", out);
            else
                fprintf(out, "<td>%.4g</td>", map->scale * map->matrix[(int64_t)a * t->ranks + b]);
        }
        fputs("</tr>\n", out);
    }
    fputs("</table></details>\n", out);
}

static void put_links(FILE *out, const Topology *t, const char *run_name)
{
    HeatMap map[MAPS];
    begin_section(out, "Links", run_name);
    put_classes(out, t);
    put_slow_nodes(out, t);
    put_slow_pairs(out, t);
    heat_maps(t, map);
    for (int i = 0; i < MAPS && draws_links(t); ++i) {
        begin_picture(out, map[i].title, heat_map(NULL, t, &map[i], 0));
        heat_map(out, t, &map[i], 0);
        fputs("</svg>\n", out);
        put_matrix(out, t, &map[i]);
        fputs("</figure>\n", out);
    }
    html_section_end(out);
}

void topology_sections(FILE *out, const Topology *t, const char *run_name)
{
    put_nodes(out, t, run_name);
    if (t->bytes_per_s && t->ranks > 1) put_links(out, t, run_name);
}

Status report_topology(const Topology *t, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    html_begin(out, "Topology");
    topology_sections(out, t, NULL);
    html_end(out);
    return file_close_stream(out, path);
}
