// Start and end, and what is left over at the end.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>

#include "aclnn/aclnn_base.h"
#include "call.h"

namespace moegrad::hostacl {

namespace {

std::string Plural(size_t count, const char* what) { return Text(count, " ", what, count == 1 ? "" : "s"); }

std::string Shape(const std::vector<int64_t>& dims)
{
    std::string text;
    for (const int64_t dim : dims) {
        text += (text.empty() ? "" : "x") + std::to_string(dim);
    }
    return text.empty() ? "scalar" : text;
}

std::string Unfinished(const Stream& stream)
{
    const size_t queued = stream.tasks.size();
    return queued == 0 ? "" : Text(": ", Plural(queued, "task"), " that nobody waited for");
}

// What the client did not release, in the order of creation.
std::map<uint64_t, std::string> Leftovers()
{
    State& state = Now();
    std::map<uint64_t, std::string> left;
    for (const Block* block : state.memory.Alive()) {
        left[block->number] = Text(block->Name(), ": ", block->bytes, " bytes");
    }
    for (const auto& [handle, context] : state.contexts.objects()) {
        const Stream& stream = *context->default_stream;
        if (!context->made_by_set_device) {
            left[context->number] = Text("context #", context->number, Unfinished(stream));
        } else if (!stream.tasks.empty()) {
            left[context->number] = Text("default stream of device ", context->device, Unfinished(stream));
        }
    }
    for (const auto& [handle, stream] : state.streams.objects()) {
        left[stream->number] = Text("stream #", stream->number, Unfinished(*stream));
    }
    for (const auto& [handle, event] : state.events.objects()) {
        left[event->number] = Text("event #", event->number);
    }
    for (const auto& [handle, executor] : state.executors.objects()) {
        left[executor->number] = Text("executor #", executor->number, " of ", executor->api, ": workspace of ",
                                      executor->workspace_bytes, " bytes, ",
                                      executor->repeatable ? "repeatable" : "second phase never called");
    }
    state.tensors.ForEach([&](uint64_t number, const aclTensor& tensor) {
        left[number] =
            Text("tensor #", number, ": ", Shape(tensor.view_dims), " of type ", static_cast<int>(tensor.dtype));
    });
    state.int_arrays.ForEach([&](uint64_t number, const aclIntArray& array) {
        left[number] = Text("int array #", number, ": ", Plural(array.values.size(), "number"));
    });
    return left;
}

// Lists leftovers and damage, one line each, on stderr too, and releases everything.
std::vector<std::string> End()
{
    std::vector<std::string> lines;
    for (const auto& [number, what] : Leftovers()) {
        lines.push_back("not released: " + what);
    }
    for (const std::string& damage : Now().memory.AllDamage()) {
        lines.push_back("damaged: " + damage);
    }
    for (const std::string& line : lines) {
        std::fprintf(stderr, "host ACL: %s\n", line.c_str());
    }
    StatePointer() = std::make_unique<State>();
    return lines;
}

int EndWell(const Call& call)
{
    const std::vector<std::string> lines = End();
    if (lines.empty()) {
        return ACL_SUCCESS;
    }
    std::string text = Plural(lines.size(), "problem");
    for (const std::string& line : lines) {
        text += "\n" + line;
    }
    return call.Fail(ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED, text);
}

// Sets no error: the strings of this thread are gone by now.
void AtExit()
{
    const std::lock_guard<std::recursive_mutex> lock(Mutex());
    if (Now().acl_started || Now().aclnn_started) {
        std::fputs("host ACL: the process ends without aclFinalize\n", stderr);
        End();
    }
}

int Start(const Call& call, const char* config, bool* started)
{
    if (config != nullptr && *config != '\0' && !std::ifstream(config).good()) {
        return call.Fail(ACL_ERROR_INVALID_FILE, "configPath names no readable file: ", config);
    }
    static const bool registered = std::atexit(AtExit) == 0;
    *started = registered;
    return registered ? ACL_SUCCESS : call.Fail(ACL_ERROR_INTERNAL_ERROR, "the process takes no exit handler");
}

}  // namespace

std::recursive_mutex& Mutex()
{
    static std::recursive_mutex mutex;
    return mutex;
}

std::unique_ptr<State>& StatePointer()
{
    static std::unique_ptr<State> state = std::make_unique<State>();
    return state;
}

}  // namespace moegrad::hostacl

using namespace moegrad::hostacl;

// A second aclInit changes nothing and one aclFinalize ends them all, as documented.
aclError aclInit(const char* configPath)
{
    const Call call("aclInit");
    if (Now().acl_started) {
        return call.Fail(ACL_ERROR_REPEAT_INITIALIZE, "the ACL is initialised already");
    }
    return Start(call, configPath, &Now().acl_started);
}

aclError aclFinalize(void)
{
    const Call call("aclFinalize");
    if (!Now().acl_started) {
        return call.Fail(ACL_ERROR_REPEAT_FINALIZE, "the ACL is not initialised");
    }
    return EndWell(call);
}

aclnnStatus aclnnInit(const char* configPath)
{
    const Call call("aclnnInit");
    return Start(call, configPath, &Now().aclnn_started);
}

// Where aclInit was called as well, the rest is left to aclFinalize.
aclnnStatus aclnnFinalize(void)
{
    const Call call("aclnnFinalize");
    if (const int error = call.NeedInit()) {
        return error;
    }
    Now().aclnn_started = false;
    return Now().acl_started ? ACLNN_SUCCESS : EndWell(call);
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion)
{
    const Call call("aclrtGetVersion");
    for (const int32_t* output : {majorVersion, minorVersion, patchVersion}) {
        if (const int error = call.NeedArgument(output, "a version")) {
            return error;
        }
    }
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return ACL_SUCCESS;
}
