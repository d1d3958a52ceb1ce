/* Cards and GPUs of made-up nodes: cards from a folder that stands for /, GPUs by a made-up NVML
 * (nvml.c), and the ways from GPUs to cards. */
#include "harness.h"
#include "topo.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char root[32];

/* Writes root/path, a small file in folders that may be missing. */
static void put(const char *path, const char *text)
{
    char *name = mem_format("%s%s", root, path), *slash = strrchr(name, '/');
    *slash = 0;
    CHECK_OK(file_make_folders(name));
    *slash = '/';
    FILE *out = fopen(name, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputs(text, out);
    fclose(out);
    mem_free(&name);
}

static void root_begin(void)
{
    snprintf(root, sizeof root, "/tmp/weft-root-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
}

static void root_end(void)
{
    char *command = mem_format("rm -r %s", root);
    CU_ASSERT_EQUAL(system(command), 0);
    mem_free(&command);
}

static void test_cards(void)
{
    Hardware h = {0};
    root_begin();
    put("/sys/class/net/lo/operstate", "unknown\n");
    put("/sys/class/net/docker0/speed", "10000\n");
    put("/sys/class/net/eth1/speed", "-1\n");
    put("/sys/class/net/eth1/operstate", "down\n");
    put("/sys/class/net/eth1/device/numa_node", "-1\n");
    put("/sys/class/net/eth0/speed", "25000\n");
    put("/sys/class/net/eth0/operstate", "up\n");
    put("/sys/class/net/eth0/device/numa_node", "1\n");
    put("/sys/class/net/bond0/speed", "50000\n");
    put("/sys/class/net/bond0/operstate", "up\n");
    put("/sys/class/net/bond0/bonding/mode", "802.3ad 4\n");
    put("/sys/class/infiniband/mlx5_0/device/numa_node", "0\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/mlx5_0/ports/2/rate", "10 Gb/sec (4X)\n");
    put("/sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n");
    hardware_add_cards(&h, root);
    static const Card expected[] = {
        {"mlx5_0", 0, 5e10, 0, true, true, 0, true},
        {"mlx5_0/2", 0, 1.25e9, 0, false, true, 0, true},
        {"bond0", 0, 6.25e9, 0, true, true, -1, false},
        {"eth0", 0, 3.125e9, 0, true, true, 1, false},
        {"eth1", 0, 0, 0, false, true, -1, false},
    };
    CU_ASSERT_EQUAL_FATAL(h.card_count, 5);
    for (int i = 0; i < 5; ++i) {
        CU_ASSERT_STRING_EQUAL(h.card[i].name, expected[i].name);
        CU_ASSERT_EQUAL(h.card[i].bytes_per_s, expected[i].bytes_per_s);
        CU_ASSERT_EQUAL(h.card[i].up, expected[i].up);
        CU_ASSERT_EQUAL(h.card[i].numa, expected[i].numa);
    }
    hardware_fini(&h);
    root_end();
}

/* The made-up NVMLs are in the folder of this program. Once one is loaded, its name finds it.
 * place: "/", or "/old/" for one that lacks what old drivers lack. */
static bool load_nvml(const char *place)
{
    char path[512];
    if (!program_path(path, sizeof path)) return false;
    snprintf(strrchr(path, '/'), 32, "%slibnvidia-ml.so.1", place);
    if (!dlopen(path, RTLD_NOW)) printf("  %s\n", dlerror());
    return dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD) != NULL;
}

static void test_gpus(void)
{
    static const char *const words[4][4] = {{"X", "NV2", "PHB", "SYS"},
                                            {"NV2", "X", "SYS", "SYS"},
                                            {"PHB", "SYS", "X", "NV12"},
                                            {"SYS", "SYS", "NV12", "X"}};
    Hardware h = {0};
    CU_ASSERT_FATAL(load_nvml("/"));
    root_begin();
    put("/sys/bus/pci/devices/0000:ba:00.0/numa_node", "1\n");
    hardware_add_gpus(&h, root);
    CU_ASSERT_EQUAL_FATAL(h.gpu_count, 4);
    CU_ASSERT_STRING_EQUAL(h.gpu[1].name, "Test GPU B");
    CU_ASSERT_STRING_EQUAL(h.gpu[1].bus, "0000:ba:00.0");
    CU_ASSERT_EQUAL(h.gpu[1].numa, 1);
    CU_ASSERT_EQUAL(h.gpu[0].numa, -1);
    CU_ASSERT_PTR_NULL(h.note);
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) CU_ASSERT_STRING_EQUAL(h.gpu[a].gpu_link[b], words[a][b]);
    hardware_fini(&h);
    static const char *const faults[][2] = {{"broken", "Driver/library version mismatch"},
                                            {"lost", "GPU is lost"}};
    for (int i = 0; i < 2; ++i) {
        setenv("WEFT_TEST_NVML", faults[i][0], 1);
        hardware_add_gpus(&h, root);
        unsetenv("WEFT_TEST_NVML");
        CU_ASSERT_EQUAL(h.gpu_count, 0);
        CU_ASSERT_PTR_NULL(h.gpu);
        CU_ASSERT_PTR_NOT_NULL_FATAL(h.note);
        CU_ASSERT_PTR_NOT_NULL(strstr(h.note, faults[i][1]));
        hardware_fini(&h);
    }
    root_end();
}

/* An old driver does not tell which links end at switches; everything else is known. A child loads
 * its library, since a process finds only one by its name. */
static void test_old_driver(void)
{
    int status = -1;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        Hardware h = {0};
        if (!load_nvml("/old/")) _exit(4);
        root_begin();
        hardware_add_gpus(&h, root);
        root_end();
        _exit(h.gpu_count != 4                              ? 1
              : strcmp(h.gpu[0].gpu_link[1], "NV2") != 0    ? 2
              : strncmp(h.gpu[2].gpu_link[3], "NV", 2) == 0 ? 3
                                                            : 0);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
}

/* Makes a folder root/path, and a link to it. */
static void put_device(const char *path, const char *link)
{
    char *folder = mem_format("%s%s", root, path), *name = mem_format("%s%s", root, link);
    char *slash = strrchr(name, '/');
    *slash = 0;
    CHECK_OK(file_make_folders(folder));
    CHECK_OK(file_make_folders(name));
    *slash = '/';
    CU_ASSERT_EQUAL(symlink(folder, name), 0);
    mem_free(&name);
    mem_free(&folder);
}

/* Two GPUs and four cards: under the GPU's switch, under another switch of its port, at its host
 * bridge, elsewhere; and one that is not on PCI. */
static void test_ways(void)
{
    static const char *const words[2][5] = {{"PIX", "PXB", "PHB", "SYS", ""},
                                            {"SYS", "SYS", "SYS", "NODE", ""}};
#define PORT "/sys/devices/pci0000:00/0000:00:01.0/"
    Hardware h = {0};
    root_begin();
    put_device(PORT "0000:01:00.0/0000:02:00.0/0000:03:00.0", "/sys/bus/pci/devices/0000:03:00.0");
    put_device("/sys/devices/pci0000:80/0000:81:00.0", "/sys/bus/pci/devices/0000:81:00.0");
    put_device(PORT "0000:01:00.0/0000:02:01.0/0000:04:00.0", "/sys/class/infiniband/a/device");
    put_device(PORT "0000:01:00.0/0000:02:02.0/0000:05:00.0/0000:06:00.0/0000:07:00.0",
               "/sys/class/infiniband/b/device");
    put_device("/sys/devices/pci0000:00/0000:00:02.0", "/sys/class/net/c/device");
    put_device("/sys/devices/pci0000:c0/0000:c1:00.0", "/sys/class/net/d/device");
    put("/sys/class/net/d/device/numa_node", "1\n");
    put_device("/sys/devices/virtual/e", "/sys/class/net/e/device");
    put("/sys/class/infiniband/a/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/b/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/b/ports/2/state", "4: ACTIVE\n");
    hardware_add_cards(&h, root);
    hardware_add_gpu(&h, mem_text("GPU"), mem_text("0000:03:00.0"), 0);
    hardware_add_gpu(&h, mem_text("GPU"), mem_text("0000:81:00.0"), 1);
    hardware_join_cards(&h, root);
    CU_ASSERT_EQUAL_FATAL(h.card_count, 6);
    CU_ASSERT_STRING_EQUAL(h.card[2].name, "b/2");
    for (int i = 0; i < 2; ++i)
        for (int k = 0; k < 6; ++k)
            CU_ASSERT_STRING_EQUAL(h.gpu[i].card_link[k], words[i][k < 2 ? k : k - 1]);
    hardware_fini(&h);
    root_end();
}

TEST_MAIN("devices", {"cards", test_cards}, {"an old driver", test_old_driver}, {"GPUs", test_gpus},
          {"ways to cards", test_ways})
