/* Runs one generated kernel on tensors from a file, without Python: KERNEL is its C file, LAUNCH its launcher.
 *
 *   driver INPUT OUTPUT     both are: int64 counts of sizes and tensors, the sizes, then for each tensor its bytes' count
 *                           and its bytes; the output holds the same tensors afterwards
 */
#include KERNEL

/* What Cython asks before it starts threads: no one holds a GIL here. */
int PyGILState_Check(void) { return 0; }

static void *read_some(FILE *file, size_t bytes) {
    void *data = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!data || fread(data, 1, bytes, file) != bytes) exit(2);
    return data;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    FILE *input = fopen(argv[1], "rb"), *output = fopen(argv[2], "wb");
    if (!input || !output) return 2;
    const int64_t *counts = read_some(input, 16);
    const int64_t *sizes = read_some(input, 8 * (size_t)counts[0]);
    void *tensors[16];
    int64_t bytes[16];
    for (int64_t i = 0; i < counts[1]; i++) {
        bytes[i] = *(int64_t *)read_some(input, 8);
        tensors[i] = read_some(input, (size_t)bytes[i]);
    }
    const int status = LAUNCH(tensors, sizes, 2);
    for (int64_t i = 0; i < counts[1]; i++)
        if (fwrite(tensors[i], 1, (size_t)bytes[i], output) != (size_t)bytes[i]) return 2;
    return fclose(output) ? 2 : status;
}
