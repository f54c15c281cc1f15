// Runs vector_add on the host model and checks it.
//
//     g++ $(moegrad hostmodel --cflags) vector_add_main.cpp -o vector_add && ./vector_add
//
// In a checkout that is not installed, from this folder: g++ -std=c++17 -O1 -fwrapv -ffp-contract=off
// -DMOEGRAD_CHIP=ascend910b -I ../../hostmodel/include vector_add_main.cpp -o vector_add
#include <cstdio>
#include <vector>

#include "vector_add.h"

int main()
{
    using namespace moegrad::hostmodel;
    const int64_t length = 100003;
    const uint32_t cores = 40;
    const int64_t per_core = (length + cores * 8 - 1) / (cores * 8) * 8;
    std::vector<float> x(length);
    std::vector<float> y(length);
    std::vector<float> z(length);
    for (int64_t i = 0; i < length; ++i) {
        x[i] = static_cast<float>(i) * 0.5f;
        y[i] = static_cast<float>(length - i);
    }

    const Report report =
        Launch(vector_add, cores, In(x), In(y), Out(z), VectorAddTiling{length, per_core, 1024});

    int64_t wrong = 0;
    for (int64_t i = 0; i < length; ++i) {
        wrong += z[i] == x[i] + y[i] ? 0 : 1;
    }
    std::printf("%s%lld of %lld elements differ\n", report.AsText().c_str(), static_cast<long long>(wrong),
                static_cast<long long>(length));
    return report.ok() && wrong == 0 ? 0 : 1;
}
