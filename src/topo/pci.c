/* Finds the word for the path between two PCI devices from their places in the tree of PCI, which
 * the paths of their folders in /sys show:
 *     /sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0
 *                  host bridge    port     switch: up    switch: down    device
 * Two devices of one switch have the upper port of the switch in common. The words are those of
 * nvidia-smi topo -m. */
#include "topo/hardware.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Resolves the link to a device's folder into `path`, PATH_MAX bytes. Returns the part of `path`
 * from the host bridge on; NULL: the device is not on PCI. */
static const char *pci_path(const char *root, const char *link, char *path)
{
    char *name = mem_format("%s%s", root, link);
    const char *found = realpath(name, path) ? strstr(path, "/pci") : NULL;
    mem_free(&name);
    return found ? found + 1 : NULL;
}

static int components(const char *path)
{
    int count = 0;
    for (; *path; ++path) count += *path == '/';
    return count;
}

/* Returns the length of the common beginning of two paths, in whole components. */
static size_t common_length(const char *a, const char *b)
{
    size_t length = 0;
    for (size_t i = 0;; ++i) {
        bool ends_a = !a[i] || a[i] == '/', ends_b = !b[i] || b[i] == '/';
        if (ends_a && ends_b) length = i;
        if (a[i] != b[i] || !a[i]) return length;
    }
}

const char *pci_word(const char *root, const char *a, const char *b, int numa_a, int numa_b)
{
    /* number of components below the upper port of a switch: its lower port, and the device */
    enum { IN_SWITCH = 2 };
    char path_a[PATH_MAX], path_b[PATH_MAX];
    const char *pci_a = pci_path(root, a, path_a), *pci_b = pci_path(root, b, path_b);
    if (!pci_a || !pci_b) return "";
    size_t common = common_length(pci_a, pci_b);
    if (memchr(pci_a, '/', common)) {
        bool one_switch =
            components(pci_a + common) <= IN_SWITCH && components(pci_b + common) <= IN_SWITCH;
        return one_switch ? "PIX" : "PXB";
    }
    if (common > 0) return "PHB";
    return numa_a >= 0 && numa_a == numa_b ? "NODE" : "SYS";
}
