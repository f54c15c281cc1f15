// All that the host ACL knows, and the inner functions that its files share. Everything is guarded by one lock.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "handles.h"
#include "memory.h"
#include "objects.h"
#include "pool.h"

namespace moegrad::hostacl {

constexpr int32_t kDevices = 8;

// A piece of queued work: 0, or an error code with the text set.
using Task = std::function<int()>;

// Tasks run in order, but only when somebody waits for them.
struct Stream {
    uint64_t number;
    int32_t device;
    uint64_t context;
    std::deque<Task> tasks;
    int error;               // of the first task that failed since the last wait
    std::string error_text;  // its message
};

struct Context {
    uint64_t number;
    int32_t device;
    bool made_by_set_device;
    std::shared_ptr<Stream> default_stream;
};

struct Event {
    uint64_t number;
    int32_t device;
    uint32_t flags;      // ACL_EVENT_...
    uint64_t recorded;   // how often it was recorded
    uint64_t completed;  // how many of these records have run
    std::weak_ptr<Stream> stream;  // of the last record
    std::chrono::steady_clock::time_point time;
};

struct Executor {
    uint64_t number;
    std::string api;
    int32_t device;
    uint64_t workspace_bytes;
    std::vector<Extent> extents;
    std::vector<uint64_t> tensors;  // numbers of the tensors of `extents`; 0 for none
    Work work;
    bool repeatable = false;  // stays after the second phase
};

struct Device {
    uint32_t uses = 0;        // calls of aclrtSetDevice less those of aclrtResetDevice
    void* context = nullptr;  // made by aclrtSetDevice
};

struct State {
    bool acl_started = false;
    bool aclnn_started = false;
    std::array<Device, kDevices> devices;
    Table<Context, Kind::kContext> contexts;
    Table<Stream, Kind::kStream> streams;  // without the default streams
    Table<Event, Kind::kEvent> events;
    Table<Executor, Kind::kExecutor> executors;
    Pool<aclTensor> tensors{"tensor"};
    Pool<aclIntArray> int_arrays{"int array"};
    Memory memory;
};

std::recursive_mutex& Mutex();

// Never null.
std::unique_ptr<State>& StatePointer();
inline State& Now() { return *StatePointer(); }

// The message that aclGetRecentErrMsg would return, which is forgotten; empty if there is none.
std::string TakeRecentError();

// The context of the calling thread, null if it has none.
std::shared_ptr<Context> ThreadContext();
void SetThreadContext(void* handle);

void* AddContext(int32_t device, bool made_by_set_device);
// A context takes its streams with it.
void RemoveContext(const Context& context);

// Runs what is queued; the first error of it.
int Finish(Stream& stream);
int FinishDevice(int32_t device);

// Runs what is queued in `stream` until `done`, or until nothing is left; errors stay with the stream.
void RunUntil(Stream& stream, const std::function<bool()>& done);

}  // namespace moegrad::hostacl
