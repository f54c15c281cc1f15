// Small test cases, each run in a process of its own, so that numbers of objects in messages are known.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "objects.h"

using namespace moegrad::hostacl;

inline std::map<std::string, void (*)()>& Cases()
{
    static std::map<std::string, void (*)()> cases;
    return cases;
}

struct Registration {
    Registration(const char* name, void (*body)()) { Cases()[name] = body; }
};

#define CASE(name)                                       \
    static void name();                                  \
    static const Registration name##_registration{#name, name}; \
    static void name()

[[noreturn]] inline void Die(const char* file, int line, const std::string& what)
{
    std::printf("%s:%d: %s\n", file, line, what.c_str());
    std::exit(1);
}

inline std::string Message()
{
    const char* const text = aclGetRecentErrMsg();
    return text == nullptr ? "" : text;
}

inline void ExpectText(const char* file, int line, const std::string& got, const std::string& expected)
{
    // A star at the end stands for anything, such as an address.
    const bool open = !expected.empty() && expected.back() == '*';
    const std::string part = open ? expected.substr(0, expected.size() - 1) : expected;
    if (open ? got.compare(0, part.size(), part) != 0 : got != part) {
        Die(file, line, "expected: " + expected + "\n     got: " + got);
    }
}

inline void ExpectCode(const char* file, int line, const char* call, int got, int expected)
{
    if (got != expected) {
        Die(file, line, std::string(call) + " gave " + std::to_string(got) + ", expected " + std::to_string(expected) +
                            ": " + Message());
    }
}

#define OK(call) ExpectCode(__FILE__, __LINE__, #call, (call), 0)
#define TRUE(condition) ((condition) ? void() : Die(__FILE__, __LINE__, "not so: " #condition))
#define REFUSED(call, code, text)                             \
    do {                                                      \
        ExpectCode(__FILE__, __LINE__, #call, (call), code);  \
        ExpectText(__FILE__, __LINE__, Message(), text);      \
    } while (false)
#define NO_TENSOR(call, text)                            \
    do {                                                 \
        TRUE((call) == nullptr);                         \
        ExpectText(__FILE__, __LINE__, Message(), text); \
    } while (false)

// Starts the ACL on device 0; object #1 is the context of the device.
inline void Begin()
{
    OK(aclInit(nullptr));
    OK(aclrtSetDevice(0));
}

inline void End()
{
    OK(aclrtResetDevice(0));
    OK(aclFinalize());
}

inline void* Device(size_t bytes)
{
    void* data = nullptr;
    OK(aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
    return data;
}

inline uint8_t* Bytes(void* address) { return static_cast<uint8_t*>(address); }

// What device memory holds, seen as a client sees it.
inline std::vector<uint8_t> Read(const void* device, size_t bytes)
{
    std::vector<uint8_t> host(bytes);
    OK(aclrtMemcpy(host.data(), bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    return host;
}

inline bool All(const std::vector<uint8_t>& bytes, uint8_t value)
{
    for (const uint8_t byte : bytes) {
        if (byte != value) {
            return false;
        }
    }
    return true;
}
