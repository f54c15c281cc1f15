// The operators and kernels of the process. Entered while libraries are loaded, read by every call.
#include <map>
#include <mutex>
#include <utility>

#include "kernel.h"
#include "register/op_def_factory.h"

namespace {

struct Registry {
    std::mutex mutex;
    std::map<std::string, ops::OpDef> operators;
    std::map<std::pair<std::string, std::size_t>, moegrad::oprun::KernelLauncher> kernels;
};

// Made on first use, because registrations run before main in no fixed order.
Registry& TheRegistry()
{
    static Registry registry;
    return registry;
}

}  // namespace

namespace ops {

int OpDefFactory::OpDefRegister(const char* type, Creator creator)
{
    OpDef definition = creator(type);
    Registry& registry = TheRegistry();
    const std::lock_guard<std::mutex> lock(registry.mutex);
    const auto [entry, is_new] = registry.operators.emplace(type, std::move(definition));
    if (!is_new) {
        entry->second.MarkDuplicate();
    }
    return 0;
}

const OpDef* OpDefFactory::Find(const std::string& type)
{
    Registry& registry = TheRegistry();
    const std::lock_guard<std::mutex> lock(registry.mutex);
    const auto found = registry.operators.find(type);
    return found == registry.operators.end() ? nullptr : &found->second;
}

std::vector<std::string> OpDefFactory::GetAllOp()
{
    Registry& registry = TheRegistry();
    const std::lock_guard<std::mutex> lock(registry.mutex);
    std::vector<std::string> types;
    for (const auto& [type, definition] : registry.operators) {
        types.push_back(type);
    }
    return types;
}

}  // namespace ops

namespace moegrad::oprun {

int RegisterKernel(const char* op_type, std::size_t column, KernelLauncher launcher)
{
    Registry& registry = TheRegistry();
    const std::lock_guard<std::mutex> lock(registry.mutex);
    registry.kernels.emplace(std::make_pair(std::string(op_type), column), launcher);
    return 0;
}

KernelLauncher FindKernel(const std::string& op_type, std::size_t column)
{
    Registry& registry = TheRegistry();
    const std::lock_guard<std::mutex> lock(registry.mutex);
    const auto found = registry.kernels.find({op_type, column});
    return found == registry.kernels.end() ? nullptr : found->second;
}

std::vector<std::size_t> KernelColumns(const std::string& op_type)
{
    Registry& registry = TheRegistry();
    const std::lock_guard<std::mutex> lock(registry.mutex);
    std::vector<std::size_t> columns;
    for (const auto& [key, launcher] : registry.kernels) {
        if (key.first == op_type) {
            columns.push_back(key.second);
        }
    }
    return columns;
}

}  // namespace moegrad::oprun
