/* Reads and writes files of places: a list of processes in YAML. */
#include "config/yaml.h"
#include "value.h"
#include "topo.h"

#include <errno.h>

static const size_t FILE_BYTES = (size_t)1 << 30;

static Status read_places(int *map, int ranks, const char *path, const YamlNode *root)
{
    if (root->kind != YAML_LIST)
        return value_fail(path, root, "expected a list with a process for each of %d ranks, not %s",
                          ranks, yaml_node_kind_name(root));
    if (root->count != ranks)
        return value_fail(path, root, "expected a list with a process for each of %d ranks, not %d",
                          ranks, root->count);
    for (int r = 0; r < ranks; ++r) {
        TRY(value_whole(path, root->item[r], 0, ranks - 1, &map[r]));
        for (int k = 0; k < r; ++k)
            if (map[k] == map[r])
                return value_fail(path, root->item[r], "process %d is listed twice", map[r]);
    }
    return map[0] == 0 ? OK
                       : value_fail(path, root->item[0],
                                    "process 0 must play rank 0: begin the list with 0");
}

Status places_read(int **map, int ranks, const char *path)
{
    YamlNode *root = NULL;
    char *text;
    size_t bytes;
    *map = NULL;
    TRY(file_text(path, FILE_BYTES, &text, &bytes));
    Status st = yaml_parse(&root, path, text, bytes);
    mem_free(&text);
    if (st != OK) return st;
    int *read = mem_new((size_t)ranks * sizeof *read);
    st = read_places(read, ranks, path, root);
    yaml_node_free(&root);
    if (st == OK)
        *map = read;
    else
        mem_free(&read);
    return st;
}

Status places_write(const int *map, int ranks, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    fputs("# process that plays rank 0, 1, ... (grid.rank_map)\n[", out);
    for (int r = 0; r < ranks; ++r) fprintf(out, "%s%d", r ? ", " : "", map[r]);
    fputs("]\n", out);
    return file_close_stream(out, path);
}
