/* Limits the leak checker (AddressSanitizer builds; does nothing elsewhere) to weft's leaks: MPI
 * never frees some of what MPI_Init allocates, and MPI_Finalize unloads plugins that still have
 * memory allocated, which cannot be distinguished from weft's leaks afterwards. */
#ifndef WEFT_PARALLEL_LEAKS_H
#define WEFT_PARALLEL_LEAKS_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAKS_CHECKED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define LEAKS_CHECKED
#endif

#ifdef LEAKS_CHECKED
#include <sanitizer/lsan_interface.h>
#define leaks_ignore_begin __lsan_disable
#define leaks_ignore_end   __lsan_enable
#define leaks_check        __lsan_do_leak_check /* now, and not again at exit */
#else
static inline void leaks_ignore_begin(void) {}
static inline void leaks_ignore_end(void) {}
static inline void leaks_check(void) {}
#endif

#endif
