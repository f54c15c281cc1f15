// The error text of each thread, and the log.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "state.h"

namespace moegrad::hostacl {

namespace {

thread_local std::string pending_error;   // empty if there is none
thread_local std::string returned_error;  // keeps the text that aclGetRecentErrMsg returned last

}  // namespace

void SetRecentError(const std::string& text) { pending_error = text; }

aclnnStatus Fail(aclnnStatus status, const std::string& text)
{
    SetRecentError(text);
    return status;
}

std::string TakeRecentError()
{
    std::string text;
    text.swap(pending_error);
    return text;
}

}  // namespace moegrad::hostacl

using namespace moegrad::hostacl;

const char* aclGetRecentErrMsg(void)
{
    returned_error = TakeRecentError();
    return returned_error.empty() ? nullptr : returned_error.c_str();
}

void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line, const char* fmt, ...)
{
    static const char* const names[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
    const char* const least = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");
    if (logLevel < ACL_DEBUG || logLevel > ACL_ERROR || logLevel < (least != nullptr ? std::atoi(least) : ACL_ERROR)) {
        return;
    }
    char text[1024];
    va_list arguments;
    va_start(arguments, fmt);
    std::vsnprintf(text, sizeof text, fmt, arguments);
    va_end(arguments);
    std::fprintf(stderr, "[%s] %s:%u %s: %s\n", names[logLevel], file, line, func, text);
}
