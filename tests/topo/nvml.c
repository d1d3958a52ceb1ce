/* A libnvidia-ml.so.1 with four GPUs for tests: 0 and 1 are joined by two NVLinks, 2 and 3 lead to
 * switches with 18 and 12 links, and 0 shares a PCIe host bridge with 2. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0,
    INVALID = 2,
    NOT_SUPPORTED = 3,
    LOST = 15,
    GPUS = 4,
    TO_GPU = 0,
    TO_SWITCH = 2
};

typedef struct Device {
    int number;
} Device;
typedef struct Pci {
    char bus_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} Pci;
static Device devices[GPUS] = {{0}, {1}, {2}, {3}};

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device);
int nvmlDeviceGetName(Device *device, char *name, unsigned bytes);
int nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci);
int nvmlDeviceGetTopologyCommonAncestor(Device *a, Device *b, int *level);
int nvmlDeviceGetNvLinkState(Device *device, unsigned link, int *active);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *device, unsigned link, Pci *remote);
int nvmlDeviceGetNvLinkRemoteDeviceType(Device *device, unsigned link, int *type);

/* Fails if WEFT_TEST_NVML is "broken". */
int nvmlInit_v2(void)
{
    const char *mode = getenv("WEFT_TEST_NVML");
    return mode && strcmp(mode, "broken") == 0 ? INVALID : SUCCESS;
}

int nvmlShutdown(void)
{
    return SUCCESS;
}

const char *nvmlErrorString(int code)
{
    return code == INVALID ? "Driver/library version mismatch"
           : code == LOST  ? "GPU is lost"
                           : "error";
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = GPUS;
    return SUCCESS;
}

/* Fails for GPU 2 if WEFT_TEST_NVML is "lost". */
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device)
{
    const char *mode = getenv("WEFT_TEST_NVML");
    if (mode && strcmp(mode, "lost") == 0 && index == 2) return LOST;
    *device = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetName(Device *device, char *name, unsigned bytes)
{
    snprintf(name, bytes, "Test GPU %c", 'A' + device->number);
    return SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci)
{
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%cA:00.0", 'A' + device->number);
    return SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(Device *a, Device *b, int *level)
{
    *level = a->number + b->number == 2 ? 30 : 50;
    return SUCCESS;
}

/* Number of links of each GPU. */
static const unsigned links[GPUS] = {2, 2, 18, 12};

int nvmlDeviceGetNvLinkState(Device *device, unsigned link, int *active)
{
    if (link >= 18) return INVALID;
    *active = link < links[device->number];
    return SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *device, unsigned link, Pci *remote)
{
    (void)link;
    return device->number < 2 ? nvmlDeviceGetPciInfo_v3(&devices[1 - device->number], remote)
                              : NOT_SUPPORTED;
}

#ifndef OLD_DRIVER
int nvmlDeviceGetNvLinkRemoteDeviceType(Device *device, unsigned link, int *type)
{
    (void)link;
    *type = device->number < 2 ? TO_GPU : TO_SWITCH;
    return SUCCESS;
}
#endif
