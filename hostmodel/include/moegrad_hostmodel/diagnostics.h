// Collected findings: where (API call, kernel file and line), what, and how to mend it. Text and JSON.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "catalogue.h"

namespace moegrad::hostmodel {

// A place in the kernel. API functions take one as their last argument, defaulted to the caller's line: the built-ins
// must be default arguments themselves, or a template would name its own line.
struct Where {
    const char* file;
    int line;

    static constexpr Where Here(const char* file = __builtin_FILE(), int line = __builtin_LINE())
    {
        return {file, line};
    }
};

#define MGH_HERE const ::moegrad::hostmodel::Where& where = ::moegrad::hostmodel::Where::Here()

// An API call at a place.
struct Site {
    const char* api;
    Where where;
};

// Numbers call sites so that shadow memory can name them in four bytes.
class SiteTable {
public:
    uint32_t Intern(const Site& site)
    {
        if (!sites_.empty() && Same(sites_[last_], site)) {
            return last_;
        }
        const auto key = std::make_tuple(site.api, site.where.file, site.where.line);
        const auto found = index_.emplace(key, static_cast<uint32_t>(sites_.size()));
        if (found.second) {
            sites_.push_back(site);
        }
        return last_ = found.first->second;
    }
    const Site& at(uint32_t index) const { return sites_[index]; }

private:
    static bool Same(const Site& a, const Site& b)
    {
        return a.api == b.api && a.where.line == b.where.line && a.where.file == b.where.file;
    }

    std::vector<Site> sites_;
    std::map<std::tuple<const char*, const char*, int>, uint32_t> index_;
    uint32_t last_ = 0;
};

// A piece of a message. Trivial, so that the many calls of Text cost the compiler little.
class Part {
public:
    Part(const char* text) : kind_(Kind::kText), text_(text), size_(std::strlen(text)) {}
    Part(const std::string& text) : kind_(Kind::kText), text_(text.data()), size_(text.size()) {}
    Part(double value) : kind_(Kind::kReal), real_(value) {}
    template <typename I, typename = std::enable_if_t<std::is_integral_v<I>>>
    Part(I value) : kind_(std::is_signed_v<I> ? Kind::kSigned : Kind::kUnsigned), whole_(static_cast<uint64_t>(value))
    {
    }

    void AppendTo(std::string& out) const
    {
        char digits[32];
        switch (kind_) {
            case Kind::kText: out.append(text_, size_); return;
            case Kind::kSigned: out += std::to_string(static_cast<int64_t>(whole_)); return;
            case Kind::kUnsigned: out += std::to_string(whole_); return;
            case Kind::kReal: std::snprintf(digits, sizeof digits, "%.9g", real_); out += digits; return;
        }
    }

private:
    enum class Kind : uint8_t { kText, kSigned, kUnsigned, kReal };
    Kind kind_;
    const char* text_ = nullptr;
    std::size_t size_ = 0;
    union {
        uint64_t whole_ = 0;
        double real_;
    };
};

[[gnu::noinline, gnu::cold]] inline std::string Concatenate(std::initializer_list<Part> parts)
{
    std::string out;
    for (const Part& part : parts) {
        part.AppendTo(out);
    }
    return out;
}

template <typename... Parts>
std::string Text(const Parts&... parts)
{
    return Concatenate({Part(parts)...});
}

inline std::string Describe(const Site& site)
{
    return Text(site.api, " at ", site.where.file, ":", site.where.line);
}

inline std::string JsonText(const std::string& raw)
{
    static const char* kHex = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : raw) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20) {
            out += "\\u00";
            out += kHex[byte >> 4];
            out += kHex[byte & 15];
        } else {
            out += c;
        }
    }
    return out + "\"";
}

struct Diagnostic {
    std::string name;
    Severity severity;
    std::string api;
    std::string file;
    int line;
    uint32_t core;
    std::string message;
    std::string mend;
    uint64_t count;

    std::string AsText() const
    {
        return Text(file, ":", line, ": ", severity == Severity::kError ? "error" : "warning", " [", name, "] ", api,
                    ": ", message, " (core ", core, ", ", count, count == 1 ? " time" : " times", "); mend: ", mend);
    }

    std::string AsJson() const
    {
        return Text("{\"name\": ", JsonText(name), ", \"severity\": \"",
                    severity == Severity::kError ? "error" : "warning", "\", \"api\": ", JsonText(api),
                    ", \"file\": ", JsonText(file), ", \"line\": ", line, ", \"core\": ", core,
                    ", \"count\": ", count, ", \"message\": ", JsonText(message), ", \"mend\": ", JsonText(mend), "}");
    }
};

// Keeps the first finding for each name and place, and counts the rest.
class Diagnostics {
public:
    explicit Diagnostics(std::size_t limit = 1000) : limit_(limit) {}

    [[gnu::noinline, gnu::cold]] void Report(const char* name, const Site& site, uint32_t core, std::string message)
    {
        const auto key = std::make_tuple(std::string(name), std::string(site.where.file), site.where.line,
                                         std::string(site.api));
        const auto known = index_.find(key);
        if (known != index_.end()) {
            ++list_[known->second].count;
            return;
        }
        const CatalogueEntry& entry = Lookup(name);
        errors_ += entry.severity == Severity::kError ? 1 : 0;
        if (list_.size() >= limit_) {
            return;
        }
        index_.emplace(key, list_.size());
        list_.push_back({name, entry.severity, site.api, site.where.file, site.where.line, core, std::move(message),
                         entry.mend, 1});
    }

    const std::vector<Diagnostic>& list() const { return list_; }
    std::size_t errors() const { return errors_; }
    bool Has(const std::string& name) const
    {
        for (const Diagnostic& found : list_) {
            if (found.name == name) {
                return true;
            }
        }
        return false;
    }

private:
    std::size_t limit_;
    std::size_t errors_ = 0;
    std::vector<Diagnostic> list_;
    std::map<std::tuple<std::string, std::string, int, std::string>, std::size_t> index_;
};

}  // namespace moegrad::hostmodel
