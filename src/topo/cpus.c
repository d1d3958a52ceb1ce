/* Writes and reads sets of CPUs as text: "0-3,8". */
#include "topo/hardware.h"

#include <string.h>

char *cpus_write(char *out, size_t room, const cpu_set_t *cpus)
{
    size_t used = 0;
    out[0] = 0;
    for (int first = 0; first < CPU_SETSIZE; ++first) {
        int last = first;
        if (!CPU_ISSET(first, cpus)) continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, cpus)) ++last;
        char range[32];
        snprintf(range, sizeof range, last > first ? "%s%d-%d" : "%s%d", used ? "," : "", first,
                 last);
        if (used + strlen(range) + 5 > room) {
            snprintf(out + used, room - used, used ? ",..." : "...");
            break;
        }
        strcpy(out + used, range);
        used += strlen(range);
        first = last;
    }
    return out;
}

/* Reads the number of a CPU and moves *text past it. */
static bool read_cpu(const char **text, int *cpu)
{
    const char *at = *text;
    for (*cpu = 0; *at >= '0' && *at <= '9' && *cpu < CPU_SETSIZE; ++at)
        *cpu = 10 * *cpu + (*at - '0');
    bool read = at > *text && *cpu < CPU_SETSIZE;
    *text = at;
    return read;
}

bool cpus_read(const char *text, cpu_set_t *cpus)
{
    CPU_ZERO(cpus);
    for (int first, last; *text;) {
        if (!read_cpu(&text, &first)) return false;
        last = first;
        if (*text == '-') {
            ++text;
            if (!read_cpu(&text, &last) || last < first) return false;
        }
        for (int cpu = first; cpu <= last; ++cpu) CPU_SET(cpu, cpus);
        if (*text == ',' && text[1])
            ++text;
        else if (*text)
            return false;
    }
    return true;
}
