/* Limits the leak checker of AddressSanitizer builds to weft's leaks; does nothing in other builds.
 * Memory that MPI_Init allocates and never frees is ignored. MPI_Finalize unloads plugins that have
 * not freed all their memory. Afterwards their leaks cannot be distinguished from weft's, so the
 * check is made before MPI_Finalize. */
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
