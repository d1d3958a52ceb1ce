/* Writes NetCDF-4 files through HDF5's basic calls, since its library for dimension scales (H5DS)
 * is often not installed. Each dimension has a scale, an array with the attributes CLASS, NAME and
 * _Netcdf4Dimid. It is the dimension's coordinate or, if there is none, an array without values. A
 * variable refers to its scales by DIMENSION_LIST, and a scale to its variables by REFERENCE_LIST.
 * netCDF needs files that keep the order in which arrays and attributes were created.
 *
 *     /time (T)   CLASS, NAME, _Netcdf4Dimid, REFERENCE_LIST <--+
 *     /x    (W)   CLASS, NAME, _Netcdf4Dimid, REFERENCE_LIST <--+
 *     /h    (T,W) DIMENSION_LIST -------------------------------+
 */
#include "netcdf_write.h"
#include "../data_private.h"

#include <string.h>

/* netCDF's value of elements that were never written (NC_FILL_FLOAT, NC_FILL_DOUBLE) */
static const double MISSING = 9.9692099683868690e+36;

/* NAME_BYTES: longest name; ROWS_CHUNK: elements in a chunk of an array with one dimension */
enum { NAME_BYTES = 240, ROWS_CHUNK = 512 };

typedef struct OpenVar {
    /* open data set; negative: none */
    hid_t dataset;
    ElementType type;
    int ndim;
    /* present length of each dimension */
    hsize_t dim[NETCDF_VAR_DIMS_MAX];
    /* true: dimension 0 is unlimited */
    bool grows;
    /* index of dimension 0 in NetcdfFile.dim; -1: the variable is a single value */
    int dim_index;
} OpenVar;

struct NetcdfWriter {
    PartFile part;
    hid_t file; /* open file; -1: none */
    int vars;
    OpenVar *var; /* owned, [vars] */
};

/* ---- checks ---- */

static bool is_name(const char *name)
{
    size_t bytes = name ? strlen(name) : 0;
    if (bytes == 0 || bytes > NAME_BYTES || name[bytes - 1] == ' ') return false;
    unsigned char first = (unsigned char)name[0];
    bool letter = (first | 32) >= 'a' && (first | 32) <= 'z';
    if (!letter && first != '_' && first < 0x80 && !(first >= '0' && first <= '9')) return false;
    for (const char *c = name; *c; ++c)
        if ((unsigned char)*c < ' ' || *c == '/' || *c == 127) return false;
    return true;
}

/* Returns whether variable v is the coordinate of dimension d. */
static bool is_coordinate(const NetcdfFile *f, int v, int d)
{
    const NetcdfVar *var = &f->var[v];
    return var->ndim == 1 && var->dim[0] == d && strcmp(var->name, f->dim[d].name) == 0;
}

/* Returns the index of the variable that is a dimension's coordinate; -1: there is none. */
static int find_coordinate(const NetcdfFile *f, int d)
{
    for (int v = 0; v < f->vars; ++v)
        if (is_coordinate(f, v, d)) return v;
    return -1;
}

static Status check_dims(const NetcdfFile *f, const char *out)
{
    for (int d = 0; d < f->dims; ++d) {
        if (!is_name(f->dim[d].name))
            return fail(ERR_DATA, "%s: '%s' is no name of a dimension in NetCDF; rename it", out,
                        f->dim[d].name ? f->dim[d].name : "");
        for (int e = 0; e < d; ++e)
            if (strcmp(f->dim[d].name, f->dim[e].name) == 0)
                return fail(ERR_DATA, "%s: two dimensions have the name %s; rename one", out,
                            f->dim[d].name);
    }
    return OK;
}

static Status check_var(const NetcdfFile *f, int v, const char *out)
{
    const char *name = f->var[v].name;
    if (!is_name(name))
        return fail(ERR_DATA, "%s: '%s' is no name of a variable in NetCDF; rename it", out,
                    name ? name : "");
    for (int e = 0; e < v; ++e)
        if (strcmp(name, f->var[e].name) == 0)
            return fail(ERR_DATA, "%s: two variables have the name %s; rename one", out, name);
    for (int d = 0; d < f->dims; ++d)
        if (strcmp(name, f->dim[d].name) == 0 && !is_coordinate(f, v, d))
            return fail(ERR_DATA,
                        "%s: the variable %s has the name of a dimension, but is not its "
                        "coordinate; rename it",
                        out, name);
    for (int i = 1; i < f->var[v].ndim; ++i)
        if (f->dim[f->var[v].dim[i]].size == NETCDF_UNLIMITED)
            return fail(ERR_BUG, "%s: %s: only the first dimension may be unlimited", out, name);
    return OK;
}

static Status check_file(const NetcdfFile *f, const char *out)
{
    TRY(check_dims(f, out));
    for (int v = 0; v < f->vars; ++v) TRY(check_var(f, v, out));
    hdf5_lock();
    bool can = f->deflate == 0 || H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0;
    hdf5_unlock();
    if (can) return OK;
    return fail(ERR_CONFIG, "%s: this HDF5 has no deflate; write the file without compression",
                out);
}

/* ---- layout ---- */

/* A file that is being laid out; its arrays are owned by put_layout. */
typedef struct Layout {
    const NetcdfFile *file;
    hid_t root;
    /* array of each variable, scale of each dimension, and references to them */
    hid_t *dataset, *scale;
    hobj_ref_t *var_ref, *scale_ref;
} Layout;

static bool grows(const NetcdfFile *f, const NetcdfVar *var)
{
    return var->ndim > 0 && f->dim[var->dim[0]].size == NETCDF_UNLIMITED;
}

/* Chooses chunks (NetcdfFile.deflate) if the variable grows or is compressed, else no chunks. */
static void set_storage(const NetcdfFile *f, const NetcdfVar *var, hid_t create)
{
    hsize_t chunk[NETCDF_VAR_DIMS_MAX];
    bool growing = grows(f, var), packed = f->deflate > 0 && var->ndim > 1;
    if (!growing && !packed) {
        H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY);
        H5Pset_fill_time(create, H5D_FILL_TIME_NEVER);
        return;
    }
    for (int i = 0; i < var->ndim; ++i) {
        int64_t size = f->dim[var->dim[i]].size;
        chunk[i] = i >= var->ndim - 2 && size > 0 ? (hsize_t)size : 1;
    }
    if (var->ndim == 1) chunk[0] = ROWS_CHUNK;
    H5Pset_chunk(create, var->ndim, chunk);
    if (packed) {
        H5Pset_shuffle(create);
        H5Pset_deflate(create, (unsigned)f->deflate);
    }
}

/* Returns properties of a new array: no time of creation, and attributes keep their order. */
static hid_t create_new(void)
{
    hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(create, false);
    H5Pset_attr_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    return create;
}

static hid_t create_var(const NetcdfFile *f, const NetcdfVar *var, hid_t root)
{
    hsize_t dim[NETCDF_VAR_DIMS_MAX], most[NETCDF_VAR_DIMS_MAX];
    hid_t create = create_new(), space = H5Screate(H5S_SCALAR);
    double fill = var->fill ? *var->fill : MISSING;
    for (int i = 0; i < var->ndim; ++i) {
        dim[i] = (hsize_t)f->dim[var->dim[i]].size;
        most[i] = f->dim[var->dim[i]].size == NETCDF_UNLIMITED ? H5S_UNLIMITED : dim[i];
    }
    if (var->ndim > 0) H5Sset_extent_simple(space, var->ndim, dim, most);
    if (var->fill || element_is_float(var->type))
        H5Pset_fill_value(create, H5T_NATIVE_DOUBLE, &fill);
    set_storage(f, var, create);
    hid_t dataset = H5Dcreate2(root, var->name, element_native(var->type), space, H5P_DEFAULT,
                               create, H5P_DEFAULT);
    H5Sclose(space);
    H5Pclose(create);
    return dataset;
}

/* Creates the scale of a dimension that has no coordinate; its elements take no space. */
static hid_t create_plain_scale(const NetcdfDim *d, hid_t root)
{
    hsize_t size = (hsize_t)d->size, most = d->size == NETCDF_UNLIMITED ? H5S_UNLIMITED : size;
    hsize_t chunk = ROWS_CHUNK;
    hid_t create = create_new(), space = H5Screate_simple(1, &size, &most);
    if (d->size == NETCDF_UNLIMITED) H5Pset_chunk(create, 1, &chunk);
    hid_t dataset =
        H5Dcreate2(root, d->name, H5T_IEEE_F32BE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    H5Sclose(space);
    H5Pclose(create);
    return dataset;
}

static bool put_attrs(hid_t object, const NetcdfAttr *attr, int count)
{
    bool good = true;
    for (int i = 0; good && i < count; ++i)
        good = attr[i].text ? h5_put_text(object, attr[i].name, attr[i].text) >= 0
                            : h5_put_numbers(object, attr[i].name, H5T_IEEE_F64LE,
                                             H5T_NATIVE_DOUBLE, &attr[i].number, 1) >= 0;
    return good;
}

/* Writes the attributes that make the array of dimension d a scale. */
static bool put_scale(const Layout *l, int d, bool coordinate)
{
    char name[80];
    int32_t id = d;
    snprintf(name, sizeof name, "This is a netCDF dimension but not a netCDF variable.%10lld",
             (long long)l->file->dim[d].size);
    return h5_put_text(l->scale[d], "CLASS", "DIMENSION_SCALE") >= 0 &&
           h5_put_text(l->scale[d], "NAME", coordinate ? l->file->dim[d].name : name) >= 0 &&
           h5_put_numbers(l->scale[d], "_Netcdf4Dimid", H5T_STD_I32LE, H5T_NATIVE_INT32, &id, 0) >=
               0;
}

/* Writes DIMENSION_LIST: for each dimension of variable v a list with a reference to its scale. */
static bool put_dimension_list(const Layout *l, int v)
{
    const NetcdfVar *var = &l->file->var[v];
    hvl_t list[NETCDF_VAR_DIMS_MAX];
    for (int i = 0; i < var->ndim; ++i) list[i] = (hvl_t){1, &l->scale_ref[var->dim[i]]};
    hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ);
    herr_t rc =
        h5_put_numbers(l->dataset[v], "DIMENSION_LIST", type, type, list, (hsize_t)var->ndim);
    H5Tclose(type);
    return rc >= 0;
}

/* An element of REFERENCE_LIST: a variable, and the index of its dimension that has the scale. */
typedef struct ScaleUse {
    hobj_ref_t var;
    int32_t dimension;
} ScaleUse;

static bool put_reference_list(const Layout *l, int d)
{
    const NetcdfFile *f = l->file;
    hsize_t uses = 0;
    ScaleUse *use = mem_new((size_t)(f->vars * NETCDF_VAR_DIMS_MAX) * sizeof *use);
    for (int v = 0; v < f->vars; ++v)
        for (int i = 0; i < f->var[v].ndim && l->dataset[v] != l->scale[d]; ++i)
            if (f->var[v].dim[i] == d) use[uses++] = (ScaleUse){l->var_ref[v], i};
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof *use);
    H5Tinsert(type, "dataset", HOFFSET(ScaleUse, var), H5T_STD_REF_OBJ);
    H5Tinsert(type, "dimension", HOFFSET(ScaleUse, dimension), H5T_NATIVE_INT32);
    bool good =
        uses == 0 || h5_put_numbers(l->scale[d], "REFERENCE_LIST", type, type, use, uses) >= 0;
    H5Tclose(type);
    mem_free(&use);
    return good;
}

static bool put_flags(const NetcdfVar *var, hid_t dataset)
{
    int32_t *flag = mem_new((size_t)var->classes * sizeof *flag);
    for (int i = 0; i < var->classes; ++i) flag[i] = i;
    herr_t rc = h5_put_numbers(dataset, "flag_values", element_native(var->type), H5T_NATIVE_INT32,
                               flag, (hsize_t)var->classes);
    mem_free(&flag);
    return rc >= 0 && h5_put_text(dataset, "flag_meanings", var->flag_meanings) >= 0;
}

static bool put_var_attrs(const Layout *l, int v, bool is_scale)
{
    const NetcdfVar *var = &l->file->var[v];
    hid_t type = element_native(var->type);
    bool good = put_attrs(l->dataset[v], var->attr, var->attrs);
    if (good && var->fill)
        good =
            h5_put_numbers(l->dataset[v], "_FillValue", type, H5T_NATIVE_DOUBLE, var->fill, 1) >= 0;
    if (good && var->classes > 0) good = put_flags(var, l->dataset[v]);
    if (good && var->ndim > 0 && !is_scale) good = put_dimension_list(l, v);
    return good;
}

/* Creates all arrays; the scales of dimensions without a coordinate come first. */
static bool create_arrays(Layout *l)
{
    const NetcdfFile *f = l->file;
    bool good = true;
    for (int d = 0; good && d < f->dims; ++d) {
        if (find_coordinate(f, d) >= 0) continue;
        l->scale[d] = create_plain_scale(&f->dim[d], l->root);
        good = l->scale[d] >= 0 &&
               H5Rcreate(&l->scale_ref[d], l->root, f->dim[d].name, H5R_OBJECT, -1) >= 0;
    }
    for (int v = 0; good && v < f->vars; ++v) {
        l->dataset[v] = create_var(f, &f->var[v], l->root);
        good = l->dataset[v] >= 0 &&
               H5Rcreate(&l->var_ref[v], l->root, f->var[v].name, H5R_OBJECT, -1) >= 0;
    }
    return good;
}

static bool put_all_attrs(Layout *l)
{
    const NetcdfFile *f = l->file;
    bool good = true;
    char versions[80];
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    snprintf(versions, sizeof versions, "version=2,weft=%s,hdf5=%u.%u.%u", WEFT_VERSION, major,
             minor, release);
    good = h5_put_text(l->root, "_NCProperties", versions) >= 0 &&
           put_attrs(l->root, f->attr, f->attrs);
    for (int d = 0; good && d < f->dims; ++d) {
        int v = find_coordinate(f, d);
        if (v >= 0) l->scale[d] = l->dataset[v], l->scale_ref[d] = l->var_ref[v];
        good = put_scale(l, d, v >= 0);
    }
    for (int v = 0; good && v < f->vars; ++v) {
        bool is_scale = f->var[v].ndim == 1 && is_coordinate(f, v, f->var[v].dim[0]);
        good = put_var_attrs(l, v, is_scale);
    }
    for (int d = 0; good && d < f->dims; ++d) good = put_reference_list(l, d);
    return good;
}

/* Lays out the file that `user`, a NetcdfFile, describes (a PartPut). */
static herr_t put_layout(void *user, hid_t file)
{
    const NetcdfFile *f = user;
    Layout l = {.file = f, .root = file};
    l.dataset = mem_new((size_t)f->vars * sizeof *l.dataset);
    l.scale = mem_new((size_t)f->dims * sizeof *l.scale);
    l.var_ref = mem_new((size_t)f->vars * sizeof *l.var_ref);
    l.scale_ref = mem_new((size_t)f->dims * sizeof *l.scale_ref);
    for (int v = 0; v < f->vars; ++v) l.dataset[v] = -1;
    for (int d = 0; d < f->dims; ++d) l.scale[d] = -1;
    bool good = create_arrays(&l) && put_all_attrs(&l);
    for (int d = 0; d < f->dims; ++d)
        if (l.scale[d] >= 0 && find_coordinate(f, d) < 0 && H5Dclose(l.scale[d]) < 0) good = false;
    for (int v = 0; v < f->vars; ++v)
        if (l.dataset[v] >= 0 && H5Dclose(l.dataset[v]) < 0) good = false;
    mem_free(&l.dataset);
    mem_free(&l.scale);
    mem_free(&l.var_ref);
    mem_free(&l.scale_ref);
    return good ? 0 : -1;
}

/* Returns the bytes of all elements, with f->reserved_rows rows along unlimited dimensions. */
static int64_t count_bytes(const NetcdfFile *f)
{
    int64_t sum = 0;
    for (int v = 0; v < f->vars; ++v) {
        int64_t bytes = (int64_t)element_bytes(f->var[v].type);
        for (int i = 0; i < f->var[v].ndim; ++i) {
            int64_t size = f->dim[f->var[v].dim[i]].size;
            bytes *= size == NETCDF_UNLIMITED ? f->reserved_rows : size;
        }
        sum += bytes;
    }
    return sum;
}

/* ---- rows ---- */

static bool open_vars(NetcdfWriter *w, const NetcdfFile *f)
{
    bool good = true;
    w->vars = f->vars;
    w->var = mem_new((size_t)f->vars * sizeof *w->var);
    for (int v = 0; v < f->vars; ++v) {
        OpenVar *var = &w->var[v];
        *var = (OpenVar){
            .type = f->var[v].type, .ndim = f->var[v].ndim, .grows = grows(f, &f->var[v])};
        var->dim_index = var->ndim > 0 ? f->var[v].dim[0] : -1;
        for (int i = 0; i < var->ndim; ++i) var->dim[i] = (hsize_t)f->dim[f->var[v].dim[i]].size;
        var->dataset = H5Dopen2(w->file, f->var[v].name, H5P_DEFAULT);
        good = good && var->dataset >= 0;
    }
    return good;
}

static Status open_file(NetcdfWriter *w, const NetcdfFile *f)
{
    hdf5_lock();
    w->file = part_open_hdf5(&w->part);
    bool good = w->file >= 0 && open_vars(w, f);
    Status st = good ? OK : part_fail(&w->part, h5_error_text());
    hdf5_unlock();
    return st;
}

Status netcdf_writer_new(NetcdfWriter **writer, const char *out, bool force, const NetcdfFile *file)
{
    NetcdfWriter *w = mem_new(sizeof *w);
    NetcdfFile description = *file;
    w->file = -1;
    *writer = NULL;
    Status st = check_file(file, out);
    if (st == OK)
        st = part_new_ordered(&w->part, out, force, count_bytes(file), put_layout, &description);
    if (st != OK) {
        mem_free(&w);
        return st;
    }
    /* the layout has no space for rows along unlimited dimensions yet */
    st = part_reserve(&w->part, count_bytes(file));
    if (st == OK) st = open_file(w, file);
    if (st != OK) netcdf_drop(&w);
    *writer = w;
    return st;
}

/* Extends a variable that grows, if needed, so that it has at least `rows` rows. */
static bool extend(OpenVar *var, hsize_t rows)
{
    if (!var->grows || rows <= var->dim[0]) return true;
    var->dim[0] = rows;
    return H5Dset_extent(var->dataset, var->dim) >= 0;
}

static bool write_rows(OpenVar *var, hsize_t first, hsize_t count, const void *values)
{
    hid_t type = element_native(var->type);
    hsize_t start[NETCDF_VAR_DIMS_MAX] = {first}, part[NETCDF_VAR_DIMS_MAX];
    if (var->ndim == 0)
        return H5Dwrite(var->dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    if (!extend(var, first + count)) return false;
    memcpy(part, var->dim, sizeof part);
    part[0] = count;
    hid_t to = H5Dget_space(var->dataset), from = H5Screate_simple(var->ndim, part, NULL);
    bool good = H5Sselect_hyperslab(to, H5S_SELECT_SET, start, NULL, part, NULL) >= 0 &&
                H5Dwrite(var->dataset, type, from, to, H5P_DEFAULT, values) >= 0;
    H5Sclose(from);
    H5Sclose(to);
    return good;
}

Status netcdf_write(NetcdfWriter *w, int var, int64_t first, int64_t count, const void *values)
{
    Status st = OK;
    hdf5_lock();
    if (!write_rows(&w->var[var], (hsize_t)first, (hsize_t)count, values))
        st = part_fail(&w->part, h5_error_text());
    hdf5_unlock();
    return st;
}

/* Extends all variables that share an unlimited dimension to the length of the longest of them. */
static bool equalise(NetcdfWriter *w)
{
    bool good = true;
    for (int v = 0; v < w->vars; ++v)
        for (int o = 0; good && w->var[v].grows && o < w->vars; ++o)
            if (w->var[o].dim_index == w->var[v].dim_index)
                good = extend(&w->var[v], w->var[o].dim[0]);
    return good;
}

static bool close_file(NetcdfWriter *w)
{
    bool good = true;
    for (int v = 0; v < w->vars; ++v)
        if (w->var[v].dataset >= 0 && H5Dclose(w->var[v].dataset) < 0) good = false;
    if (w->file >= 0 && H5Fclose(w->file) < 0) good = false;
    return good;
}

Status netcdf_finish(NetcdfWriter **writer)
{
    NetcdfWriter *w = *writer;
    hdf5_lock();
    bool good = equalise(w);
    if (!close_file(w)) good = false;
    Status st = good ? OK : part_fail(&w->part, h5_error_text());
    hdf5_unlock();
    if (st == OK)
        st = part_finish(&w->part);
    else
        part_drop(&w->part);
    mem_free(&w->var);
    mem_free(writer);
    return st;
}

void netcdf_drop(NetcdfWriter **writer)
{
    NetcdfWriter *w = *writer;
    if (!w) return;
    hdf5_lock();
    close_file(w);
    hdf5_unlock();
    part_drop(&w->part);
    mem_free(&w->var);
    mem_free(writer);
}
