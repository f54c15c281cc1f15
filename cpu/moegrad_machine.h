/*
 * What a kernel asks of the machine it runs on, once a process and module.
 *
 * A core cannot have the whole of a last-level cache that a socket shares, nor does a virtual machine tell who else
 * is there. Its own second-level cache tells its share: 32 of those, but 32 MiB where they are small. Where the whole is
 * less, that counts. Linux tells in /sys; what sysconf says may be a sum over sockets, and counts only where /sys is
 * silent.
 */
#ifndef MOEGRAD_MACHINE_H
#define MOEGRAD_MACHINE_H

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define MACHINE_CACHE_BYTES ((int64_t)32 << 20) /* a core's share where the second level tells no more */
#define MACHINE_SHARE 32                        /* second-level caches that the share is as large as */

/* The number at the start of a file on the first processor's cache number `index` in /sys, times 2^10 where a K follows
 * and 2^20 where an M does; 0 where there is none. */
static inline int64_t machine_sysfs(int index, const char *name) {
    char path[64], unit = 0;
    long number = 0;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    const int fields = fscanf(file, "%ld%c", &number, &unit);
    fclose(file);
    if (fields < 1 || number <= 0) return 0;
    return (int64_t)number << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0);
}

static inline int64_t machine_find_cache(void) {
    int64_t last = 0, second = 0;
    for (int index = 0; index < 5; index++) {
        const int64_t bytes = machine_sysfs(index, "size");
        if (machine_sysfs(index, "level") == 2) second = bytes;
        if (bytes > last) last = bytes;
    }
#ifdef _SC_LEVEL3_CACHE_SIZE
    if (last <= 0) last = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    const int64_t share = MACHINE_SHARE * second > MACHINE_CACHE_BYTES ? MACHINE_SHARE * second : MACHINE_CACHE_BYTES;
    return last > 0 && last < share ? last : share;
}

/* Bytes of the last-level cache that one core can use. */
static inline int64_t last_level_cache_bytes(void) {
    static int64_t bytes; /* two threads that meet here find the same */
    int64_t known = __atomic_load_n(&bytes, __ATOMIC_RELAXED);
    if (known == 0) __atomic_store_n(&bytes, known = machine_find_cache(), __ATOMIC_RELAXED);
    return known;
}

#endif
