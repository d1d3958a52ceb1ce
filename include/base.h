/* base: foundations of every module: status and messages, log, memory, clock, phases, files,
 * processes, leases, random numbers, hashes, text, JSON, protocol buffers. The module uses no MPI,
 * no HDF5 and no device. No function is collective. */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include "base/status.h"
#include "base/memory.h"
#include "base/system.h"
#include "base/isolated.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/cpu.h"
#include "base/phase.h"
#include "base/json.h"
#include "base/json_scan.h"
#include "base/lease.h"
#include "base/proto.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#endif
