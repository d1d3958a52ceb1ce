/* Describes CPUs, memory and caches of a node by hwloc. hwloc's search for devices stays off, as by
 * default. Its component x86, which queries the processor and would move this thread from CPU to
 * CPU, is switched off. */
#include "hardware_cpus.h"
#include "base/isolated.h"
#include "hardware_file.h"

#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

/* Sets *kind to the kind of part that an object of this type is. Returns false if such objects are
 * not described. */
static bool part_kind(hwloc_obj_type_t type, PartKind *kind)
{
    switch (type) {
    case HWLOC_OBJ_PACKAGE:
        return *kind = PART_PACKAGE, true;
    case HWLOC_OBJ_NUMANODE:
        return *kind = PART_NUMA, true;
    case HWLOC_OBJ_L3CACHE:
        return *kind = PART_L3, true;
    case HWLOC_OBJ_L2CACHE:
        return *kind = PART_L2, true;
    case HWLOC_OBJ_CORE:
    case HWLOC_OBJ_PU:
        return *kind = PART_CORE, true;
    default:
        return false;
    }
}

/* Copies a set of CPUs. Returns false if the set is empty or has numbers that cpu_set_t cannot
 * hold. */
static bool copy_cpus(hwloc_const_bitmap_t from, cpu_set_t *to)
{
    CPU_ZERO(to);
    if (!from || hwloc_bitmap_weight(from) <= 0 || hwloc_bitmap_last(from) >= CPU_SETSIZE)
        return false;
    for (int cpu = hwloc_bitmap_first(from); cpu >= 0; cpu = hwloc_bitmap_next(from, cpu))
        CPU_SET(cpu, to);
    return true;
}

/* Adds an object as a part and returns the part's index. If copy_cpus refuses the object's CPUs,
 * adds nothing and returns `parent`. */
static int add_object(Hardware *h, hwloc_obj_t object, PartKind kind, int parent)
{
    Part part = {.kind = kind,
                 .parent = parent,
                 .number = (int)(object->os_index == HWLOC_UNKNOWN_INDEX ? object->logical_index
                                                                         : object->os_index)};
    if (!copy_cpus(object->cpuset, &part.cpus)) return parent;
    if (kind == PART_NUMA) part.bytes = (int64_t)object->attr->numanode.local_memory;
    if (kind == PART_L3 || kind == PART_L2) part.bytes = (int64_t)object->attr->cache.size;
    return hardware_add(h, part);
}

/* Adds the NUMA nodes of an object. The first NUMA node becomes the parent of the object's parts;
 * the others are memory of another kind and contain no parts. Returns the index of the first NUMA
 * node, or `parent` if there is none. */
static int add_memory(Hardware *h, hwloc_obj_t object, int parent)
{
    int inner = parent;
    for (hwloc_obj_t child = object->memory_first_child; child; child = child->next_sibling) {
        hwloc_obj_t memory = child;
        while (memory && memory->type != HWLOC_OBJ_NUMANODE) memory = memory->memory_first_child;
        if (!memory) continue;
        int added = add_object(h, memory, PART_NUMA, parent);
        if (inner == parent) inner = added;
    }
    return inner;
}

/* Adds an object and all parts inside it. A NUMA node with the same CPUs as a cache becomes the
 * parent of the cache. A CPU outside of any core is added as a core. */
static void add_tree(Hardware *h, hwloc_obj_t object, int parent)
{
    PartKind kind = PART_PACKAGE;
    bool is_part = part_kind(object->type, &kind), is_cache = kind == PART_L3 || kind == PART_L2;
    int inner = is_cache ? add_memory(h, object, parent) : parent;
    if (is_part) inner = add_object(h, object, kind, inner);
    if (!is_cache) inner = add_memory(h, object, inner);
    if (object->type == HWLOC_OBJ_CORE) return;
    for (hwloc_obj_t child = object->first_child; child; child = child->next_sibling)
        add_tree(h, child, inner);
}

static char *processor_model(hwloc_topology_t topology)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    if (!model) model = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "CPUModel");
    return mem_text(model ? model : "");
}

/* Loads a topology whose source has been set, and describes it in *h. */
static Status describe(Hardware *h, hwloc_topology_t topology)
{
    if (hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(topology) != 0)
        return fail(ERR_CONFIG, "hwloc cannot load the topology: %s", strerror(errno));
    hwloc_const_bitmap_t all = hwloc_topology_get_topology_cpuset(topology);
    if (hwloc_bitmap_last(all) >= CPU_SETSIZE)
        return fail(ERR_CONFIG, "CPU %d: CPUs above %d are not supported", hwloc_bitmap_last(all),
                    CPU_SETSIZE - 1);
    add_tree(h, hwloc_get_root_obj(topology), -1);
    h->cpu = processor_model(topology);
    return OK;
}

/* hwloc's variable with the file names of plug-ins that it must not load */
static const char BLACKLIST[] = "HWLOC_PLUGINS_BLACKLIST";
static const char UNUSED_PLUGINS[] = "hwloc_gl.so,hwloc_opencl.so,hwloc_xml_libxml.so";

void hardware_leave_out_plugins(void)
{
    setenv(BLACKLIST, UNUSED_PLUGINS, 0);
}

Status hardware_add_cpus(Hardware *h)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return fail(ERR_CONFIG, "hwloc cannot start: %s", strerror(errno));
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    Status st = describe(h, topology);
    hwloc_topology_destroy(topology);
    return st;
}

/* ---- XML: read in a separate process, since hwloc may crash on it ---- */

/* Describes the node whose XML is `text`. */
static Status describe_xml(Hardware *h, const char *text, size_t bytes)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return fail(ERR_CONFIG, "hwloc cannot start: %s", strerror(errno));
    Status st = hwloc_topology_set_xmlbuffer(topology, text, (int)bytes) == 0
                    ? describe(h, topology)
                    : fail(ERR_CONFIG, "hwloc does not recognise it");
    hwloc_topology_destroy(topology);
    if (st == OK && h->part_count == 0) return fail(ERR_CONFIG, "it describes no CPUs");
    return st;
}

/* Runs in the separate process. Writes the description as JSON, or an error message, to
 * `answer`. */
static void read_and_answer(const void *text, size_t bytes, FILE *answer)
{
    Hardware h = {0};
    Json json = json_to(answer, false);
    /* in this process hwloc may load libxml2, which reads more XML than hwloc's own parser */
    const char *left_out = getenv(BLACKLIST);
    if (left_out && strcmp(left_out, UNUSED_PLUGINS) == 0) unsetenv(BLACKLIST);
    if (describe_xml(&h, text, bytes) == OK)
        hardware_print(&json, &h);
    else
        fputs(fail_message(), answer);
}

Status hardware_from_xml(Hardware *h, const char *path, const char *text, size_t bytes)
{
    static const IsolatedJob job = {.subject = "hwloc, in the process that reads its XML,",
                                    .memory_bytes = (size_t)1 << 30,
                                    .busy_s = 20,
                                    .clock_s = 60,
                                    .answer_bytes = (size_t)64 << 20,
                                    .work = read_and_answer};
    enum { XML_BYTES_MAX = 64 << 20 };
    YamlNode *root = NULL;
    char *answer;
    *h = (Hardware){0};
    if (bytes > XML_BYTES_MAX) return fail(ERR_CONFIG, "%s: has more than 64 MiB", path);
    TRY(isolated_run(&job, path, text, bytes + 1, &answer, &bytes));
    Status st = OK;
    if (*answer != '{')
        st = fail(ERR_CONFIG, "%s: is no XML of hwloc that can be read: %s", path, answer);
    if (st == OK) st = yaml_parse(&root, path, answer, bytes);
    if (st == OK) st = hardware_from_yaml(h, path, root);
    yaml_node_free(&root);
    mem_free(&answer);
    return st;
}
