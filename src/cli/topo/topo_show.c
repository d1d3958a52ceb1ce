/* weft topo show: describes nodes, their ranks, and the measured links between ranks, as text,
 * JSON, pictures or an HTML page. */
#include "../private.h"
#include "topo_cli.h"

#include "base/isolated.h"
#include "report.h"

/* approximate time of all measurements together */
static const double MEASURE_S = 8;

typedef struct ShowOptions {
    int64_t ranks;
    const char *from, *save, *svg, *html;
    bool json;
} ShowOptions;

static const Flag flags[] = {
    FLAG_RANKS(ShowOptions),
    {"--from", FLAG_FIELD(ShowOptions, from), .value = "FILE", .excludes = "-n",
     .help = "a file of --save, perhaps from another machine, or hwloc's XML of a node (lstopo "
             "FILE.xml), instead of measuring"},
    {"--save", FLAG_FIELD(ShowOptions, save), .value = "FILE", .writes = true,
     .help = "write the topology to a JSON file"},
    {"--json", FLAG_FIELD(ShowOptions, json), .help = "print the content of that file"},
    {"--svg", FLAG_FIELD(ShowOptions, svg), .value = "FILE", .writes = true,
     .help = "draw nodes and links"},
    {"--html", FLAG_FIELD(ShowOptions, html), .value = "FILE", .writes = true,
     .help = "write a page with these pictures and their numbers; it needs no script"},
};

Status topo_run(const char *name, int argc, char **argv, const char *from, TopoUse *use,
                const void *options)
{
    World world;
    Topology topo = {0};
    if (argc > 0) return fail(ERR_USAGE, "%s: unknown argument %s", name, argv[0]);
    if (from) isolated_begin();
    TRY(world_init(&world, NULL, NULL));
    Status status = OK;
    if (!from) {
        status = topo_measure(&topo, &world, MEASURE_S);
        if (status == OK) status = topo_describe_hardware(&topo, &world, true);
    } else if (world.rank == 0) {
        status = topo_read(&topo, from);
    }
    if (status == OK && world.rank == 0) status = use(&topo, options);
    status = status_agree(&world, status);
    topo_fini(&topo);
    world_fini(&world);
    isolated_end();
    return status;
}

static Status show(const Topology *t, const void *options)
{
    const ShowOptions *o = options;
    if (o->save) TRY(topo_write(t, o->save));
    if (o->svg) TRY(report_topology_svg(t, o->svg));
    if (o->html) TRY(report_topology(t, o->html));
    if (o->json)
        topo_print(t, stdout);
    else
        topo_print_text(t);
    return OK;
}

static Status run(int argc, char **argv, const void *options)
{
    const ShowOptions *o = options;
    return topo_run("topo show", argc, argv, o->from, show, options);
}

const Verb verb_topo_show = {
    .name = "topo show",
    .help = "shows nodes with their hardware and ranks, and measured links between all ranks",
    VERB_FLAGS(ShowOptions, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
