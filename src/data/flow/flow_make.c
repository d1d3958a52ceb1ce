/* Makes a data set of flows. A member of the set is a trajectory from its own random initial state,
 * in its own NetCDF file. The ranks get the members in turn, and the threads of a rank share its
 * members; one thread computes a member from beginning to end. */
#include "flow.h"

#include "../data_private.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* smallest side of a grid for the waves of the initial states */
    SIDE_LEAST = 16,
    /* smallest number of digits of a member's number in the name of its file */
    DIGITS = 3
};
static const char prefix[] = "member-", ending[] = ".nc";

typedef struct Maker {
    const FlowMake *make;
    const ImportRanks *ranks;
    /* number of members of this rank */
    int64_t members;
    /* number of frames of all members of this rank */
    int64_t frames;
    pthread_mutex_t lock;
    /* number of frames that are written; protected by `lock` */
    int64_t done;
} Maker;

/* The member that a thread works on. */
typedef struct Member {
    const FlowMake *make;
    int64_t number;
    FlowSolver *solver;
    FlowStepper stepper;
    NetcdfWriter *file;
    /* index of the first variable of FlowKind.var among the file's variables */
    int first_var;
    /* owned: the fields of a frame, each (H,W) */
    double *field[FLOW_VARS];
    /* owned: one field as floats, (H,W) */
    float *out;
    /* owned: scratch memory of flow_regimes, (H,W); NULL without FlowMake.labels */
    double *scratch;
    /* owned: regime of each cell, (H,W); NULL without FlowMake.labels */
    int8_t *regime;
} Member;

/* ---- the file of a member ---- */

/* number of attributes that the files of all kinds of flow have */
enum { ATTRS_OF_ALL = 6 };

/* Writes the attributes of the file's root to `root`, [ATTRS_OF_ALL + FLOW_PARAMETERS]. Returns
 * their number. Texts are borrowed from the member's options and its kind of flow. */
static int root_attributes(const Member *m, NetcdfAttr *root)
{
    const NetcdfAttr of_all[ATTRS_OF_ALL] = {
        {"Conventions", "CF-1.8", 0},
        {"title", m->make->kind->title, 0},
        {"source", "weft " WEFT_VERSION ", weft data make", 0},
        {"seed", NULL, (double)m->make->seed},
        {"member", NULL, (double)m->number},
        {"spin_up", NULL, m->make->spin_up},
    };
    memcpy(root, of_all, sizeof of_all);
    return ATTRS_OF_ALL + m->make->kind->parameters(m->solver, root + ATTRS_OF_ALL);
}

/* Begins the file: coordinates, orography, attributes. */
static Status begin_file(Member *m, const char *path)
{
    const FlowMake *make = m->make;
    const FlowKind *kind = make->kind;
    const NetcdfAttr time[] = {{"units", kind->time_units, 0},
                               {"calendar", "standard", 0},
                               {"standard_name", "time", 0},
                               {"axis", "T", 0}};
    const NetcdfAttr y[] = {{"units", kind->length_units, 0}, {"axis", "Y", 0}};
    const NetcdfAttr x[] = {{"units", kind->length_units, 0}, {"axis", "X", 0}};
    const NetcdfAttr ground[] = {{"standard_name", "surface_altitude", 0}, {"units", "m", 0}};
    const NetcdfDim dim[] = {{"time", make->frames}, {"y", make->height}, {"x", make->width}};
    const NetcdfAttr regime[] = {{"long_name", "regime of the flow (Okubo-Weiss)", 0}};
    NetcdfVar var[4 + FLOW_VARS + 1] = {
        {.name = "time", .type = ELEM_F64, .ndim = 1, .dim = {0}, .attr = time, .attrs = 4},
        {.name = "y", .type = ELEM_F64, .ndim = 1, .dim = {1}, .attr = y, .attrs = 2},
        {.name = "x", .type = ELEM_F64, .ndim = 1, .dim = {2}, .attr = x, .attrs = 2},
        {.name = "orography",
         .type = ELEM_F32,
         .ndim = 2,
         .dim = {1, 2},
         .attr = ground,
         .attrs = 2},
    };
    NetcdfAttr of_field[FLOW_VARS][2], root[ATTRS_OF_ALL + FLOW_PARAMETERS];
    const int attrs = root_attributes(m, root);
    m->first_var = kind->orography ? 4 : 3;
    for (int i = 0; i < kind->vars; ++i) {
        const FlowVar *v = &kind->var[i];
        of_field[i][0] = (NetcdfAttr){"long_name", v->long_name, 0};
        of_field[i][1] = (NetcdfAttr){"units", v->units, 0};
        var[m->first_var + i] = (NetcdfVar){.name = v->name,
                                            .type = ELEM_F32,
                                            .ndim = 3,
                                            .dim = {0, 1, 2},
                                            .attr = of_field[i],
                                            .attrs = 2};
    }
    var[m->first_var + kind->vars] = (NetcdfVar){.name = "regime",
                                                 .type = ELEM_I8,
                                                 .ndim = 3,
                                                 .dim = {0, 1, 2},
                                                 .attr = regime,
                                                 .attrs = 1,
                                                 .classes = 3,
                                                 .flag_meanings = "background vortex strain"};
    const NetcdfFile file = {.dim = dim,
                             .dims = 3,
                             .var = var,
                             .vars = m->first_var + kind->vars + make->labels,
                             .attr = root,
                             .attrs = attrs,
                             .reserved_rows = make->frames};
    return netcdf_writer_new(&m->file, path, make->force, &file);
}

/* Writes a field (H,W) as floats to rows `first` to first + rows - 1 of a variable. rows: 1 if the
 * variable has time, since its rows are frames; else H. */
static Status write_field(Member *m, int var, int64_t first, int64_t rows, const double *from)
{
    for (int64_t i = 0; i < m->make->height * m->make->width; ++i) m->out[i] = (float)from[i];
    return netcdf_write(m->file, var, first, rows, m->out);
}

static Status write_coordinates(Member *m)
{
    const FlowKind *kind = m->make->kind;
    const int64_t size[2] = {m->make->height, m->make->width};
    double *numbers = m->field[0];
    for (int axis = 0; axis < 2; ++axis) {
        for (int64_t i = 0; i < size[axis]; ++i) numbers[i] = kind->coordinate(m->solver, i);
        TRY(netcdf_write(m->file, 1 + axis, 0, size[axis], numbers));
    }
    if (!kind->orography) return OK;
    kind->orography(m->solver, numbers);
    return write_field(m, 3, 0, m->make->height, numbers);
}

static Status write_frame(Member *m, int64_t frame)
{
    const FlowKind *kind = m->make->kind;
    double time = m->make->interval * (double)frame;
    TRY(netcdf_write(m->file, 0, frame, 1, &time));
    kind->compute_fields(m->solver, m->stepper.state, m->field);
    for (int i = 0; i < kind->vars; ++i)
        TRY(write_field(m, m->first_var + i, frame, 1, m->field[i]));
    if (!m->make->labels) return OK;
    /* the velocity is the last two fields of all kinds */
    flow_regimes(m->make->height, m->make->width, kind->edges == EDGES_WALLS,
                 m->field[kind->vars - 2], m->field[kind->vars - 1], m->scratch, m->regime);
    return netcdf_write(m->file, m->first_var + kind->vars, frame, 1, m->regime);
}

/* ---- members ---- */

static void member_init(Member *m, const FlowMake *make, int64_t number)
{
    size_t points = (size_t)(make->height * make->width);
    *m = (Member){.make = make, .number = number, .solver = make->kind->solver_new(make)};
    flow_stepper_init(&m->stepper, make->kind, m->solver);
    for (int i = 0; i < FLOW_VARS; ++i) m->field[i] = mem_new(points * sizeof(double));
    m->out = mem_new(points * sizeof(float));
    if (!make->labels) return;
    m->scratch = mem_new(points * sizeof *m->scratch);
    m->regime = mem_new(points * sizeof *m->regime);
}

static void member_fini(Member *m)
{
    netcdf_drop(&m->file);
    flow_stepper_fini(&m->stepper);
    m->make->kind->solver_free(&m->solver);
    for (int i = 0; i < FLOW_VARS; ++i) mem_free(&m->field[i]);
    mem_free(&m->out);
    mem_free(&m->scratch);
    mem_free(&m->regime);
}

static void count_frame(Maker *maker)
{
    const ImportRanks *ranks = maker->ranks;
    pthread_mutex_lock(&maker->lock);
    ranks->progress(ranks->user, ++maker->done, maker->frames, 0);
    pthread_mutex_unlock(&maker->lock);
}

/* Advances the flow and writes its frames. */
static Status write_frames(Maker *maker, Member *m, const char *path)
{
    const FlowMake *make = m->make;
    double unit = make->kind->time_scale;
    bool sound = flow_advance(&m->stepper, unit * make->spin_up, 0);
    for (int64_t t = 0; t < make->frames; ++t) {
        if (t > 0) sound = flow_advance(&m->stepper, unit * make->interval, 0);
        if (!sound)
            return fail(ERR_DATA, "%s: the flow breaks down before frame %lld; %s", path,
                        (long long)t, make->kind->advice);
        TRY(write_frame(m, t));
        count_frame(maker);
    }
    return OK;
}

static char *member_path(const FlowMake *make, int64_t number)
{
    int digits = snprintf(NULL, 0, "%lld", (long long)(make->first_member + make->members - 1));
    return mem_format("%s/%s%0*lld%s", make->out, prefix, digits > DIGITS ? digits : DIGITS,
                      (long long)number, ending);
}

/* Makes member i of this rank (a PoolWork). */
static Status make_member(void *user, int worker, int64_t i)
{
    Maker *maker = user;
    const FlowMake *make = maker->make;
    int64_t number = make->first_member + maker->ranks->rank + i * maker->ranks->size;
    char *path = member_path(make, number);
    Member m;
    (void)worker;
    member_init(&m, make, number);
    make->kind->start(m.solver, (uint64_t)number, m.stepper.state);
    Status st = begin_file(&m, path);
    if (st == OK) st = write_coordinates(&m);
    if (st == OK) st = write_frames(maker, &m, path);
    if (st == OK) st = netcdf_finish(&m.file);
    member_fini(&m);
    mem_free(&path);
    return st;
}

/* ---- the set ---- */

static bool is_power_of_two(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static Status check_grid(const FlowMake *make)
{
    int64_t h = make->height, w = make->width;
    if (h < SIDE_LEAST || w < SIDE_LEAST)
        return fail(ERR_USAGE, "--size %lldx%lld: each side needs %d points at least", (long long)h,
                    (long long)w, SIDE_LEAST);
    if (make->kind->sides == SIDES_POWERS_OF_TWO && !(is_power_of_two(h) && is_power_of_two(w)))
        return fail(ERR_USAGE, "--size %lldx%lld: the sides must be powers of two, such as 64x128",
                    (long long)h, (long long)w);
    if (3 * make->waves >= h)
        return fail(ERR_USAGE,
                    "--waves %lld: a grid of %lld rows has %lld waves at most; choose more rows",
                    (long long)make->waves, (long long)h, (long long)(h - 1) / 3);
    return OK;
}

static bool is_member(const char *name)
{
    size_t bytes = strlen(name), tail = sizeof ending - 1;
    return bytes > sizeof prefix - 1 + tail && strncmp(name, prefix, sizeof prefix - 1) == 0 &&
           strcmp(name + bytes - tail, ending) == 0;
}

/* Removes all members that are in the folder, so that members of two sets are never mixed.
 * ERR_USAGE: there are members, and `force` is false. */
static Status clear_folder(const char *path, bool force)
{
    Status st = OK;
    DIR *folder = opendir(path);
    if (!folder) return fail(ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    for (struct dirent *entry; st == OK && (entry = readdir(folder));) {
        if (!is_member(entry->d_name)) continue;
        if (!force) {
            st = fail(ERR_USAGE,
                      "%s: holds members already, such as %s; choose another folder, or replace "
                      "them with --force",
                      path, entry->d_name);
        } else if (unlinkat(dirfd(folder), entry->d_name, 0) != 0) {
            st = fail(ERR_IO, "%s/%s: cannot be removed: %s", path, entry->d_name, strerror(errno));
        }
    }
    closedir(folder);
    return st;
}

/* Checks the grid, and makes the folder or clears it. Called on rank 0. */
static Status prepare_folder(const FlowMake *make)
{
    struct stat st;
    TRY(check_grid(make));
    if (stat(make->out, &st) != 0) return file_make_folders(make->out);
    if (!S_ISDIR(st.st_mode))
        return fail(ERR_USAGE, "%s: is no folder; give a folder for the members", make->out);
    return clear_folder(make->out, make->force);
}

Status data_make_flow(const FlowMake *make, const ImportRanks *ranks)
{
    if (!ranks) ranks = &import_alone;
    Maker maker = {.make = make, .ranks = ranks};
    maker.members = (make->members - ranks->rank + ranks->size - 1) / ranks->size;
    maker.frames = maker.members * make->frames;
    TRY(ranks->agree(ranks->user, ranks->rank == 0 ? prepare_folder(make) : OK));
    pthread_mutex_init(&maker.lock, NULL);
    Status st = OK;
    if (maker.members > 0) st = worker_pool_run(make->threads, maker.members, make_member, &maker);
    pthread_mutex_destroy(&maker.lock);
    st = ranks->agree(ranks->user, st);
    if (st == OK)
        log_info("wrote %s: %lld members of %lld frames, %lldx%lld", make->out,
                 (long long)make->members, (long long)make->frames, (long long)make->height,
                 (long long)make->width);
    return st;
}
