// What a launch with <<<...>>> becomes on the host: the kernel runs on the host model, and findings are exceptions.
#pragma once

#include <malloc.h>

#include <stdexcept>
#include <tuple>
#include <type_traits>

#include "kernel_operator.h"

namespace moegrad_test {

// An allocation as the kernel gets it. Its size is what the allocator gave, so some of it is never written.
template <typename T>
T Place(moegrad::hostmodel::Runner& runner, T argument)
{
    if constexpr (std::is_pointer_v<T>) {
        if (argument == nullptr) {
            return nullptr;
        }
        moegrad::hostmodel::ArraySpec spec;
        spec.data = argument;
        spec.bytes = malloc_usable_size(argument);
        spec.role = moegrad::hostmodel::Role::kInOut;
        return reinterpret_cast<T>(runner.AddArray(spec));
    } else {
        return argument;
    }
}

template <typename... Parameters, typename... Arguments>
void Start(void (*kernel)(Parameters...), uint32_t blocks, void*, Arguments... arguments)
{
    moegrad::hostmodel::Runner runner("launch", blocks, {});
    const std::tuple<Parameters...> bound{Place<Parameters>(runner, arguments)...};
    const moegrad::hostmodel::Report report = runner.Run([&] { std::apply(kernel, bound); });
    if (!report.ok()) {
        throw std::runtime_error(report.AsText());
    }
}

}  // namespace moegrad_test
