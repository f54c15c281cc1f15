// Reads commands from standard input, one a line, and answers each with one line. "." stands for nothing in a field.
//
//     tensor NAME DTYPE FORMAT DIMS STRIDES OFFSET STORAGE HEX   device memory with these bytes, "." for a null address
//     shape NAME DTYPE DIMS                                      a tensor without memory, for infer
//     list NAME VALUES
//     drop NAME                                                  destroys a tensor or list; the name stays
//     prepare OP INPUTS ATTRS OUTPUTS                            names or "-"; attributes i3, b1, lNAME, l-
//     prepare_null OP WHICH                                      without an address for `workspaceSize` or `executor`
//     run OP
//     read NAME
//     infer OP INPUTS ATTRS
//     gather DIMS STRIDES OFFSET STORAGE                         of the numbers 0, 1, 2, ...
#include <cstdio>
#include <cstring>
#include <deque>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "../../hostmodel/acl/objects.h"
#include "../../hostmodel/oprun/kernel.h"
#include "../../hostmodel/oprun/oprun.h"
#include "../../hostmodel/oprun/view.h"

namespace {

using Words = std::vector<std::string>;

Words Split(const std::string& text, char separator)
{
    Words words;
    std::istringstream in(text);
    for (std::string word; std::getline(in, word, separator);) {
        words.push_back(word);
    }
    return words;
}

std::vector<int64_t> Numbers(const std::string& text)
{
    std::vector<int64_t> numbers;
    for (const std::string& word : text == "." ? Words{} : Split(text, ',')) {
        numbers.push_back(std::stoll(word));
    }
    return numbers;
}

struct Memory {
    void* data = nullptr;
    std::size_t bytes = 0;
};

std::map<std::string, const aclTensor*> tensors;
std::map<std::string, Memory> memories;
std::map<std::string, const aclIntArray*> lists;
std::deque<aclTensor> shapes;
aclOpExecutor* executor = nullptr;
uint64_t workspace_bytes = 0;

std::string Message(int status)
{
    const char* text = aclGetRecentErrMsg();
    return std::to_string(status) + (text == nullptr ? "" : " " + std::string(text));
}

std::string MakeTensor(const Words& words)
{
    const std::vector<int64_t> dims = Numbers(words[4]);
    const std::vector<int64_t> strides = Numbers(words[5]);
    const int64_t storage = std::stoll(words[7]);
    Memory memory;
    if (words[8] != ".") {
        memory.bytes = words[8].size() / 2;
        std::vector<uint8_t> bytes;
        for (std::size_t i = 0; i < memory.bytes; ++i) {
            bytes.push_back(static_cast<uint8_t>(std::stoul(words[8].substr(2 * i, 2), nullptr, 16)));
        }
        if (aclrtMalloc(&memory.data, memory.bytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS ||
            aclrtMemcpy(memory.data, memory.bytes, bytes.data(), memory.bytes, ACL_MEMCPY_HOST_TO_DEVICE) !=
                ACL_SUCCESS) {
            return Message(-1);
        }
    }
    memories[words[1]] = memory;
    const aclTensor* made = aclCreateTensor(
        dims.data(), dims.size(), static_cast<aclDataType>(std::stoi(words[2])),
        words[5] == "." ? nullptr : strides.data(), std::stoll(words[6]), static_cast<aclFormat>(std::stoi(words[3])),
        &storage, 1, memory.data);
    tensors[words[1]] = made;
    return Message(made == nullptr ? -1 : 0);
}

std::string MakeShape(const Words& words)
{
    aclTensor& tensor = shapes.emplace_back();
    tensor.view_dims = Numbers(words[3]);
    tensor.dtype = static_cast<aclDataType>(std::stoi(words[2]));
    tensor.format = ACL_FORMAT_ND;
    tensors[words[1]] = &tensor;
    return "0";
}

std::string Drop(const std::string& name)
{
    return Message(lists.count(name) != 0 ? aclDestroyIntArray(lists[name]) : aclDestroyTensor(tensors[name]));
}

std::vector<const aclTensor*> Tensors(const std::string& names)
{
    std::vector<const aclTensor*> found;
    for (const std::string& name : names == "." ? Words{} : Split(names, ',')) {
        found.push_back(name == "-" ? nullptr : tensors.at(name));
    }
    return found;
}

std::vector<moegrad::oprun::Attr> Attrs(const std::string& words)
{
    std::vector<moegrad::oprun::Attr> attrs;
    for (const std::string& word : words == "." ? Words{} : Split(words, ',')) {
        const std::string value = word.substr(1);
        if (word[0] == 'i') {
            attrs.push_back(int64_t{std::stoll(value)});
        } else if (word[0] == 'b') {
            attrs.push_back(value == "1");
        } else {
            attrs.push_back(value == "-" ? nullptr : lists.at(value));
        }
    }
    return attrs;
}

std::string Prepare(const Words& words)
{
    constexpr uint64_t kUntouched = 77;
    auto* const untouched = reinterpret_cast<aclOpExecutor*>(&executor);
    workspace_bytes = kUntouched;
    executor = untouched;
    const int status = moegrad::oprun::Prepare(words[1].c_str(), Tensors(words[2]), Attrs(words[3]), Tensors(words[4]),
                                               &workspace_bytes, &executor);
    if (status != 0 && (workspace_bytes != kUntouched || executor != untouched)) {
        return "touched";
    }
    return status == 0 ? "0 " + std::to_string(workspace_bytes) : Message(status);
}

std::string PrepareNull(const Words& words)
{
    const bool no_size = words[2] == "workspaceSize";
    return Message(moegrad::oprun::Prepare(words[1].c_str(), {}, {}, {}, no_size ? nullptr : &workspace_bytes,
                                           no_size ? &executor : nullptr));
}

std::string Run(const std::string& op)
{
    void* workspace = nullptr;
    if (workspace_bytes != 0) {
        aclrtMalloc(&workspace, workspace_bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    }
    int status = moegrad::oprun::Run(op.c_str(), workspace, workspace_bytes, executor, nullptr);
    if (status == 0) {
        status = aclrtSynchronizeStream(nullptr);
    }
    const std::string answer = Message(status);
    if (workspace != nullptr) {
        aclrtFree(workspace);
    }
    return answer;
}

std::string Read(const std::string& name)
{
    const Memory& memory = memories.at(name);
    std::vector<uint8_t> bytes(memory.bytes);
    if (aclrtMemcpy(bytes.data(), bytes.size(), memory.data, memory.bytes, ACL_MEMCPY_DEVICE_TO_HOST) != ACL_SUCCESS) {
        return Message(-1);
    }
    std::string hex = "0 ";
    for (const uint8_t byte : bytes) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", byte);
        hex += digits;
    }
    return hex;
}

std::string Infer(const Words& words)
{
    std::vector<moegrad::oprun::InferredTensor> inferred;
    const int status =
        moegrad::oprun::InferShapes(words[1].c_str(), Tensors(words[2]), Attrs(words[3]), &inferred);
    if (status != 0) {
        return Message(status);
    }
    std::string text = "0";
    for (const auto& tensor : inferred) {
        text += " " + tensor.name + ":" + std::to_string(tensor.dtype);
        for (const int64_t dim : tensor.dims) {
            text += "," + std::to_string(dim);
        }
    }
    return text;
}

std::string Gather(const Words& words)
{
    std::vector<int32_t> storage(std::stoul(words[4]));
    for (std::size_t i = 0; i < storage.size(); ++i) {
        storage[i] = static_cast<int32_t>(i);
    }
    moegrad::oprun::View view;
    view.dims = Numbers(words[1]);
    view.strides = Numbers(words[2]);
    view.element_bytes = sizeof(int32_t);
    view.first = reinterpret_cast<uint8_t*>(storage.data() + std::stoll(words[3]));
    const auto extent = view.extent("view");
    std::vector<int32_t> gathered(static_cast<std::size_t>(view.elements()));
    moegrad::oprun::Gather(view, reinterpret_cast<uint8_t*>(gathered.data()));
    std::string text = view.contiguous() ? "contiguous " : "strided ";
    text += extent.bytes == 0 ? "0 0" : std::to_string((static_cast<const uint8_t*>(extent.address) -
                                                         reinterpret_cast<uint8_t*>(storage.data())) / 4) +
                                            " " + std::to_string(extent.bytes / 4);
    for (const int32_t number : gathered) {
        text += " " + std::to_string(number);
    }
    return text;
}

std::string Answer(const Words& words)
{
    if (words[0] == "tensor") {
        return MakeTensor(words);
    }
    if (words[0] == "shape") {
        return MakeShape(words);
    }
    if (words[0] == "list") {
        const std::vector<int64_t> values = Numbers(words[2]);
        lists[words[1]] = aclCreateIntArray(values.data(), values.size());
        return "0";
    }
    if (words[0] == "drop") {
        return Drop(words[1]);
    }
    if (words[0] == "prepare") {
        return Prepare(words);
    }
    if (words[0] == "prepare_null") {
        return PrepareNull(words);
    }
    if (words[0] == "run") {
        return Run(words[1]);
    }
    if (words[0] == "read") {
        return Read(words[1]);
    }
    if (words[0] == "infer") {
        return Infer(words);
    }
    return words[0] == "gather" ? Gather(words) : "unknown command";
}

// Everything but the line breaks of a message.
std::string OneLine(std::string text)
{
    for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
        text.replace(at, 1, "\\n");
    }
    return text;
}

}  // namespace

int main()
{
    // Misfit so has a kernel with other parameters than its definition says; Tilingless lacks all but a kernel.
    const moegrad::oprun::KernelLauncher borrowed = moegrad::oprun::FindKernel("Careless", 0);
    moegrad::oprun::RegisterKernel("Misfit", 0, borrowed);
    moegrad::oprun::RegisterKernel("Tilingless", 0, borrowed);
    if (aclInit(nullptr) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) {
        std::cout << Message(-1) << "\n";
        return 1;
    }
    for (std::string line; std::getline(std::cin, line);) {
        std::cout << OneLine(Answer(Split(line, ' '))) << "\n";
    }
    return 0;
}
