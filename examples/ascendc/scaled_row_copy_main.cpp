// Runs scaled_row_copy on the host model, on several seeds, and checks it bit by bit.
//
//     g++ $(moegrad hostmodel --cflags) scaled_row_copy_main.cpp -o scaled_row_copy && ./scaled_row_copy
//
// In a checkout that is not installed, from this folder: g++ -std=c++17 -O1 -fwrapv -ffp-contract=off
// -DMOEGRAD_CHIP=ascend910b -I ../../hostmodel/include scaled_row_copy_main.cpp -o scaled_row_copy
#include <cstdio>
#include <vector>

#include "scaled_row_copy.h"

namespace {

// What one element must be: a product in float, rounded once.
uint16_t Expected(bfloat16_t value, float weight) { return bfloat16_t(value.AsFloat() * weight).bits(); }

}  // namespace

int main()
{
    using namespace moegrad::hostmodel;
    const int64_t count = 301;
    const int64_t width = 1001;
    const int64_t sources = 200;
    const uint32_t cores = 8;
    std::vector<bfloat16_t> rows(sources * width);
    std::vector<int32_t> index(count);
    std::vector<float> weight(count);
    for (int64_t i = 0; i < sources * width; ++i) {
        rows[i] = bfloat16_t(static_cast<float>(i % 911) * 0.37f - 150.0f);
    }
    for (int64_t r = 0; r < count; ++r) {
        index[r] = r % 7 == 3 ? -1 : static_cast<int32_t>(r * 31 % sources);
        weight[r] = static_cast<float>(r) * 0.013f - 1.0f;
    }

    int failures = 0;
    for (uint64_t seed = 0; seed < 3; ++seed) {
        std::vector<bfloat16_t> out(count * width);
        LaunchSettings settings;
        settings.options.seed = seed;
        settings.name = "scaled_row_copy";
        const ScaledRowCopyTiling tiling{count, width, (count + cores - 1) / cores};
        const Report report =
            LaunchWith(settings, scaled_row_copy, cores, In(rows), In(index), In(weight), Out(out), tiling);
        int64_t wrong = 0;
        for (int64_t r = 0; r < count; ++r) {
            for (int64_t j = 0; j < width; ++j) {
                const uint16_t bits = index[r] < 0 ? 0 : Expected(rows[index[r] * width + j], weight[r]);
                wrong += out[r * width + j].bits() == bits ? 0 : 1;
            }
        }
        std::printf("%s%lld elements differ (seed %llu)\n", report.AsText().c_str(), static_cast<long long>(wrong),
                    static_cast<unsigned long long>(seed));
        failures += report.ok() && wrong == 0 ? 0 : 1;
    }
    return failures;
}
