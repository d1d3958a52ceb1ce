/* Writes the file of a machine's times, which machine_read reads. Leaves out Machine.rates. */
#include "times_file.h"

#include <errno.h>
#include <string.h>

static void put_text(FILE *out, int key, const char *text)
{
    fprintf(out, "%s: ", machine_keys[key]);
    text_quote(out, text);
    fputc('\n', out);
}

static void put_range(FILE *out, const char *name, TimeRange range)
{
    fprintf(out, "%s: [%.4g, %.4g, %.4g]", name, range.low, range.median, range.high);
}

static void put_link(FILE *out, int key, Link link)
{
    fprintf(out, "%s: {latency_s: %.4g, byte_s: %.4g}\n", machine_keys[key], link.latency_s,
            link.s_per_byte);
}

static void put_operation(FILE *out, const OperationTime *time)
{
    fputs("  - {key: ", out);
    text_quote(out, time->key);
    for (int p = 0; p < OPERATION_PART_COUNT; ++p) {
        if (!time->has[p]) continue;
        fputs(", ", out);
        put_range(out, operation_part_names[p], time->part[p]);
    }
    fputs("}\n", out);
}

static void put_machine(FILE *out, const Machine *m)
{
    fprintf(out,
            "# Times in seconds, measured by weft bench machine; ranges: a tenth of the times is "
            "below the first number,\n# half below the second, nine tenths below the third.\n");
    fprintf(out, "%s: %d\n", machine_keys[KEY_VERSION], MACHINE_VERSION);
    put_text(out, KEY_HOST, m->host);
    put_text(out, KEY_CPU, m->cpu);
    put_text(out, KEY_MEASURED, m->measured);
    put_text(out, KEY_SETUP, m->setup);
    fprintf(out, "%s: %d\n%s: %d\n", machine_keys[KEY_RANKS], m->ranks, machine_keys[KEY_THREADS],
            m->threads);
    fprintf(out, "%s: %.4g\n%s: %.4g\n", machine_keys[KEY_MOVE], m->move_s_per_byte,
            machine_keys[KEY_ACTION], m->action_s);
    put_range(out, machine_keys[KEY_UPDATE], m->update_s);
    fputc('\n', out);
    put_range(out, machine_keys[KEY_REST], m->rest_s);
    fputc('\n', out);
    if (m->nodes > 1) fprintf(out, "%s: %d\n", machine_keys[KEY_NODES], m->nodes);
    if (m->memory_bytes > 0) fprintf(out, "%s: %.4g\n", machine_keys[KEY_MEMORY], m->memory_bytes);
    if (m->memory_bytes_per_s > 0)
        fprintf(out, "%s: {bytes_s: %.4g}\n", machine_keys[KEY_MEMORY_RATE], m->memory_bytes_per_s);
    if (m->read_bytes_per_s > 0)
        fprintf(out, "%s: {read_bytes_s: %.4g, save_bytes_s: %.4g}\n", machine_keys[KEY_FILES],
                m->read_bytes_per_s, m->save_bytes_per_s);
    if (m->has_message) put_link(out, KEY_MESSAGE, m->message_link);
    if (m->has_network) put_link(out, KEY_NETWORK, m->network_link);
    if (m->nodes > 1)
        fprintf(out, "%s: {compute: %.4g}\n", machine_keys[KEY_OVERLAP], m->overlap_compute);
    if (m->sum_count > 0) fprintf(out, "%s:\n", machine_keys[KEY_SUMS]);
    for (int i = 0; i < m->sum_count; ++i)
        fprintf(out, "  - {ranks: %d, latency_s: %.4g, byte_s: %.4g}\n", m->sum_time[i].ranks,
                m->sum_time[i].link.latency_s, m->sum_time[i].link.s_per_byte);
    fprintf(out, "%s:%s\n", machine_keys[KEY_OPERATIONS], m->operation_count ? "" : " []");
    for (int i = 0; i < m->operation_count; ++i) put_operation(out, &m->operation[i]);
}

Status machine_write(const Machine *machine, const char *path)
{
    FILE *out = file_create_stream(path);
    if (!out) return fail(ERR_IO, "%s: cannot be written: %s", path, file_error(errno));
    put_machine(out, machine);
    return file_close_stream(out, path);
}
