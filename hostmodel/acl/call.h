// What every public function does first: take the lock, have a name for its messages, and check the state it needs.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "state.h"
#include "text.h"

namespace moegrad::hostacl {

// Its checks give 0, or an error code with the text set, so that a function may say
//     if (const int error = call.NeedInit()) return error;
class Call {
public:
    explicit Call(std::string name) : lock_(Mutex()), name_(std::move(name)) {}

    template <typename... Parts>
    int Fail(int code, const Parts&... parts) const
    {
        return hostacl::Fail(code, Text(name_, ": ", parts...));
    }

    int NeedInit() const;
    // The context of the thread; implies NeedInit.
    int NeedContext(Context** context) const;
    int NeedDeviceId(int32_t device) const;
    int NeedArgument(const void* pointer, const char* argument) const;
    // The stream of the thread's context that `handle` names, its default stream if it is null.
    int NeedStream(const void* handle, std::shared_ptr<Stream>* stream) const;

    // The live object of this handle.
    template <typename T, Kind kKind>
    int NeedObject(const Table<T, kKind>& table, const void* handle, const char* argument,
                   std::shared_ptr<T>* object) const
    {
        if (const int error = NeedArgument(handle, argument)) {
            return error;
        }
        *object = table.Find(handle);
        if (*object == nullptr) {
            return Fail(ACL_ERROR_RT_INVALID_HANDLE, argument, " ", DescribeHandle(handle, kKind));
        }
        return ACL_SUCCESS;
    }

private:
    std::lock_guard<std::recursive_mutex> lock_;
    std::string name_;
};

}  // namespace moegrad::hostacl
