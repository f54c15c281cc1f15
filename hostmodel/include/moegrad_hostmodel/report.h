// What a launch hands back: status, findings, counters, modelled time; as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "session.h"

namespace moegrad::hostmodel {

enum Status : int32_t { kClean = 0, kFindings = 1, kBadLaunch = 2 };

struct Report {
    int32_t status = kClean;
    std::string kernel;
    uint32_t block_count = 0;
    Options options;
    std::vector<Diagnostic> diagnostics;
    Counters counters;
    ModelledTime time;

    bool ok() const { return status == kClean; }

    bool Has(const std::string& name) const
    {
        for (const Diagnostic& found : diagnostics) {
            if (found.name == name) {
                return true;
            }
        }
        return false;
    }

    std::string AsText() const
    {
        std::string out;
        for (const Diagnostic& found : diagnostics) {
            out += found.AsText() + "\n";
        }
        return out + Text(kernel, " on ", kChipName, ", ", block_count, " blocks: ",
                          status == kClean ? "clean" : "not clean", "; in ", counters.gm_bytes_in, " B, out ",
                          counters.gm_bytes_out, " B, bound ", time.Bound() * 1e6, " us\n");
    }

    std::string AsJson() const
    {
        const auto flag = [](bool on) { return on ? "true" : "false"; };
        std::string list;
        for (const Diagnostic& found : diagnostics) {
            list += (list.empty() ? "" : ", ") + found.AsJson();
        }
        return Text("{\"status\": ", status, ", \"kernel\": ", JsonText(kernel), ", \"chip\": \"", kChipName,
                    "\", \"arch\": ", kArch, ", \"block_count\": ", block_count, ", \"seed\": ", options.seed,
                    ", \"saturate\": ", flag(options.saturate), ", \"auto_sync\": ", flag(options.auto_sync),
                    ", \"strict_ub\": ", flag(options.strict_ub), ", \"fused_mac\": ", flag(options.fused_mac),
                    ", \"diagnostics\": [", list, "], \"counters\": ", counters.AsJson(), ", \"time\": ",
                    time.AsJson(), "}");
    }
};

}  // namespace moegrad::hostmodel
