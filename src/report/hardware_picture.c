/* Draws a node as nested boxes: sockets, NUMA nodes, caches, and cores with their ranks. Below are
 * boxes of the network cards and GPUs, and a table of the links of the GPUs. Boxes fill rows from
 * left to right. If View.out is NULL, nothing is drawn, and only sizes are computed.
 *
 *     socket 0
 *       NUMA node 0, 64 GiB
 *         L3 32 MiB
 *           [0]  [1]  [2]  [3]     cores, with ranks
 *     eth0  GPU 0  GPU 1 */
#include "private.h"

#include "topo/layout.h"

#include <string.h>

/* Sizes in pixels. CORES_IN_ROW: largest number of cores side by side in a box. */
enum { PAD = 8, GAP = 6, HEADER = 20, CORE_WIDTH = 58, CORE_HEIGHT = 36, DEVICE_HEIGHT = 40 };
enum {
    LETTER = 7,
    LINE = 18,
    WORD_WIDTH = 52,
    WORD_HEIGHT = 22,
    NAME_WIDTH = 70,
    CORES_IN_ROW = 8
};
/* RANKS_LISTED: largest number of ranks in a list. RANKS_LETTERS: largest number of letters of the
 * list in a core's box. NODES_LISTED: largest number of nodes in a title. */
enum { RANKS_LISTED = 64, RANKS_LETTERS = 9, NODES_LISTED = 8 };

typedef struct Size {
    int width, height;
} Size;

/* The node that is drawn. All pointers are borrowed. */
typedef struct View {
    /* NULL: the picture is only measured */
    FILE *out;
    const Topology *topo;
    /* number of the node in the topology */
    int node;
    /* hardware of the node */
    const Hardware *hardware;
} View;

static Size put_parts(const View *v, int parent, int room, int x, int y);

static void put_box(FILE *out, int x, int y, Size size, bool is_used)
{
    fprintf(out, "<rect class=\"box%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"3\" />\n",
            is_used ? " used" : "", x, y, size.width, size.height);
}

/* Returns the heading of a part's box. The caller owns it. */
static char *part_header(const Hardware *h, int index)
{
    const Part *part = &h->part[index];
    char size[16], l2_size[16];
    int core, child = hardware_next(h, index, index + 1);
    int64_t l2_bytes = 0;
    bool has_cores = child >= 0 && hardware_is_core(h, child, &core, &l2_bytes) && l2_bytes > 0;
    char *l2 =
        has_cores ? mem_format("; L2 %s a core", memory_text(l2_bytes, l2_size)) : mem_text("");
    memory_text(part->bytes, size);
    char *text = part->kind == PART_PACKAGE ? mem_format("socket %d%s", part->number, l2)
                 : part->kind == PART_NUMA
                     ? mem_format("NUMA node %d, %s%s", part->number, size, l2)
                     : mem_format("%s %s%s", part->kind == PART_L3 ? "L3" : "L2", size, l2);
    mem_free(&l2);
    return text;
}

/* Returns the number of ranks on a core, without ranks that may use all CPUs. */
static int count_ranks(const View *v, const Part *core)
{
    char *ranks = topo_ranks_on(v->topo, v->node, &core->cpus, v->topo->ranks);
    int count = *ranks != 0;
    for (const char *at = ranks; *at; ++at) count += *at == ' ';
    mem_free(&ranks);
    return count;
}

static void put_core(const View *v, int index, int x, int y)
{
    const Part *core = &v->hardware->part[index];
    char number[16], *ranks = topo_ranks_on(v->topo, v->node, &core->cpus, RANKS_LISTED);
    char cpus[64];
    snprintf(number, sizeof number, "%d", core->number);
    fprintf(v->out, "<g><title>core %d, CPUs %s", core->number,
            cpus_write(cpus, sizeof cpus, &core->cpus));
    if (*ranks) fprintf(v->out, "; ranks %s", ranks);
    fputs("</title>\n", v->out);
    put_box(v->out, x, y, (Size){CORE_WIDTH, CORE_HEIGHT}, *ranks);
    svg_text(v->out, "small", "start", x + 4, y + 12, number);
    if (strlen(ranks) > RANKS_LETTERS) {
        mem_free(&ranks);
        ranks = mem_format("%d ranks", count_ranks(v, core));
    }
    svg_text(v->out, "bold", "middle", x + CORE_WIDTH / 2, y + 28, ranks);
    fputs("</g>\n", v->out);
    mem_free(&ranks);
}

/* Draws a part, with all parts inside it, at x and y. room: available width. Returns the size of
 * the part. All numbers are pixels. */
static Size put_part(const View *v, int index, int room, int x, int y)
{
    int core;
    int64_t l2_bytes;
    if (hardware_is_core(v->hardware, index, &core, &l2_bytes)) {
        if (v->out) put_core(v, core, x, y);
        return (Size){CORE_WIDTH, CORE_HEIGHT};
    }
    char *header = part_header(v->hardware, index);
    int child = hardware_next(v->hardware, index, index + 1);
    if (child >= 0 && hardware_is_core(v->hardware, child, &core, &l2_bytes)) {
        int cores_room = CORES_IN_ROW * (CORE_WIDTH + GAP) + 2 * PAD;
        if (room > cores_room) room = cores_room;
    }
    View measured = *v;
    measured.out = NULL;
    Size size = put_parts(&measured, index, room - 2 * PAD, x + PAD, y + HEADER);
    size.width += 2 * PAD;
    size.height += HEADER + (child >= 0 ? PAD : 0);
    int text_width = (int)strlen(header) * LETTER + 2 * PAD;
    if (size.width < text_width) size.width = text_width;
    if (v->out) {
        put_box(v->out, x, y, size, false);
        svg_text(v->out, "", "start", x + PAD, y + 15, header);
        put_parts(v, index, room - 2 * PAD, x + PAD, y + HEADER);
    }
    mem_free(&header);
    return size;
}

/* Draws the parts inside the part `parent` (-1: inside the node) in rows from x and y on. room:
 * available width. Returns the size of all rows together. */
static Size put_parts(const View *v, int parent, int room, int x, int y)
{
    Size all = {0, 0};
    int at = 0, row_y = 0, row_height = 0;
    View measured = *v;
    measured.out = NULL;
    for (int i = hardware_next(v->hardware, parent, 0); i >= 0;
         i = hardware_next(v->hardware, parent, i + 1)) {
        Size size = put_part(&measured, i, room, x, y);
        if (at > 0 && at + size.width > room) {
            row_y += row_height + GAP;
            at = row_height = 0;
        }
        if (v->out) put_part(v, i, room, x + at, y + row_y);
        at += size.width + GAP;
        if (size.height > row_height) row_height = size.height;
        if (at - GAP > all.width) all.width = at - GAP;
        all.height = row_y + row_height;
    }
    return all;
}

/* Draws the box of a device at *x, *y, or at the beginning of the next row if it does not fit into
 * this row. Moves *x past the box, and *y to the row of the box. */
static void put_device(const View *v, const char *name, const char *detail, int *x, int *y)
{
    size_t letters = strlen(name) > strlen(detail) ? strlen(name) : strlen(detail);
    Size size = {(int)letters * LETTER + 2 * PAD, DEVICE_HEIGHT};
    if (*x > 0 && *x + size.width > PICTURE_WIDTH) {
        *x = 0;
        *y += DEVICE_HEIGHT + GAP;
    }
    if (v->out) {
        put_box(v->out, *x, *y, size, false);
        svg_text(v->out, "bold", "start", *x + PAD, *y + 16, name);
        svg_text(v->out, "", "start", *x + PAD, *y + 32, detail);
    }
    *x += size.width + GAP;
}

static char *numa_text(int numa)
{
    return numa < 0 ? mem_text("") : mem_format(", NUMA node %d", numa);
}

/* Draws network cards and GPUs from y on; returns their height. */
static int put_devices(const View *v, int y)
{
    const Hardware *h = v->hardware;
    int x = 0, at = y;
    for (int i = 0; i < h->card_count; ++i) {
        const Card *card = &h->card[i];
        char *numa = numa_text(card->numa);
        char *speed = card->bytes_per_s > 0 ? mem_format("%.3g Gbit/s", 8e-9 * card->bytes_per_s)
                                            : mem_text("speed not known");
        char *detail = mem_format("%s, %s%s", card->up ? "up" : "down", speed, numa);
        put_device(v, card->name, detail, &x, &at);
        mem_free(&detail);
        mem_free(&speed);
        mem_free(&numa);
    }
    for (int i = 0; i < h->gpu_count; ++i) {
        char *numa = numa_text(h->gpu[i].numa), *name = mem_format("GPU %d%s", i, numa);
        char *detail = mem_format("%s, %s", h->gpu[i].name, h->gpu[i].bus);
        put_device(v, name, detail, &x, &at);
        mem_free(&detail);
        mem_free(&name);
        mem_free(&numa);
    }
    return h->card_count + h->gpu_count > 0 ? at + DEVICE_HEIGHT + GAP - y : 0;
}

/* Writes a cell of the table of links: the word of a link, or the name of a column. y: position of
 * the text's baseline. */
static void put_word(FILE *out, int y, int column, const char *class, const char *word)
{
    svg_text(out, class, "middle", NAME_WIDTH + column * WORD_WIDTH + WORD_WIDTH / 2, y, word);
}

/* Draws a table of links from y on: the word of each pair of GPUs (Gpu.gpu_link), and of each GPU
 * with each network card (Gpu.card_link). Returns its height; 0 if there is no such pair. */
static int put_words(const View *v, int y)
{
    const Hardware *h = v->hardware;
    char name[16];
    if (h->gpu_count == 0 || h->gpu_count + h->card_count < 2) return 0;
    for (int row = 0; v->out && row < h->gpu_count + h->card_count; ++row) {
        int card = row - h->gpu_count, text_y = y + (row + 2) * WORD_HEIGHT - 6;
        snprintf(name, sizeof name, "GPU%d", row);
        svg_text(v->out, "bold", "start", 0, text_y, card < 0 ? name : h->card[card].name);
        if (card < 0) put_word(v->out, y + WORD_HEIGHT - 6, row, "bold", name);
        for (int k = 0; k < h->gpu_count; ++k)
            put_word(v->out, text_y, k, "",
                     card < 0 ? h->gpu[row].gpu_link[k] : h->gpu[k].card_link[card]);
    }
    return (h->gpu_count + h->card_count + 1) * WORD_HEIGHT + GAP;
}

/* Returns the title: the names of all nodes with this node's layout, and their processor. If
 * several nodes have the layout, also gives the name of the node whose ranks are shown. The caller
 * owns the title. */
static char *picture_title(const View *v)
{
    const Topology *t = v->topo;
    TextList list;
    int count, *layout = topo_layouts(t, &count);
    text_list_begin(&list, NODES_LISTED);
    for (int n = 0; n < t->nodes; ++n)
        if (layout[n] == layout[v->node]) text_list_add(&list, t->host[n]);
    mem_free(&layout);
    bool several = list.count > 1 && t->ranks > 0;
    char *names = text_list_end(&list);
    char *title = mem_format("%s%s%s%s%s", names, *v->hardware->cpu ? ": " : "", v->hardware->cpu,
                             several ? "; ranks of " : "", several ? t->host[v->node] : "");
    mem_free(&names);
    return title;
}

/* Draws the lines of text above the boxes; returns their height. */
static int put_title(const View *v, int y)
{
    char *title = picture_title(v);
    char *unbound = topo_ranks_unbound(v->topo, v->node, RANKS_LISTED);
    if (v->out) svg_text(v->out, "bold", "start", 0, y + 14, title);
    int lines = 1;
    if (*unbound) {
        char *text = mem_format("on all CPUs: ranks %s", unbound);
        if (v->out) svg_text(v->out, "", "start", 0, y + 14 + LINE, text);
        mem_free(&text);
        lines = 2;
    }
    mem_free(&unbound);
    mem_free(&title);
    return lines * LINE + GAP;
}

int hardware_picture(FILE *out, const Topology *t, int node, int y)
{
    View v = {out, t, node, topo_hardware(t, node)};
    int height = put_title(&v, y);
    height += put_parts(&v, -1, PICTURE_WIDTH, 0, y + height).height + GAP;
    height += put_devices(&v, y + height);
    return height + put_words(&v, y + height);
}
