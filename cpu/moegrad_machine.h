/*
 * What a kernel asks of the machine it runs on, once a process and module.
 *
 * Linux says in /sys how large a cache is that a core shares with its neighbours. What sysconf says may be the sum
 * over a socket (320 MiB where a core can use 32), so it counts only where /sys is silent.
 */
#ifndef MOEGRAD_MACHINE_H
#define MOEGRAD_MACHINE_H

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define MACHINE_CACHE_BYTES ((int64_t)32 << 20) /* where nothing tells */

/* Bytes of cache number `index` of the first processor as /sys tells; 0 where it does not. */
static inline int64_t machine_sysfs_cache(int index) {
    char path[64], unit = 0;
    long size = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    const int fields = fscanf(file, "%ld%c", &size, &unit);
    fclose(file);
    if (fields < 1 || size <= 0) return 0;
    return (int64_t)size << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0);
}

static inline int64_t machine_find_cache(void) {
    int64_t bytes = 0;
    for (int index = 0; index < 5; index++) {
        const int64_t found = machine_sysfs_cache(index);
        bytes = found > bytes ? found : bytes;
    }
#ifdef _SC_LEVEL3_CACHE_SIZE
    if (bytes <= 0) bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > 0 ? bytes : MACHINE_CACHE_BYTES;
}

/* Bytes of the last-level cache that one core can use. */
static inline int64_t last_level_cache_bytes(void) {
    static int64_t bytes; /* two threads that meet here find the same */
    int64_t known = __atomic_load_n(&bytes, __ATOMIC_RELAXED);
    if (known == 0) __atomic_store_n(&bytes, known = machine_find_cache(), __ATOMIC_RELAXED);
    return known;
}

#endif
