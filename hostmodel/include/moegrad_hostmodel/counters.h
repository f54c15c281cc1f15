// What a run did, and the time that documented rates give it. Rates are in one table; see docs/hostmodel.md.
#pragma once

#include <cstdint>
#include <string>

#include "chip.h"
#include "diagnostics.h"

namespace moegrad::hostmodel {

// Lower bounds from printed figures, not measurements: they rank two kernels, they do not predict one.
struct Rates {
    double clock_hz = kIs3510 ? 1.65e9 : 1.8e9;
    double gm_bytes_per_second = kIs3510 ? 1.7e12 : 1.6e12;  // shared by all cores, both directions
    double gm_unaligned_factor = 0.7;                        // a transfer that does not start 512-byte aligned
    uint32_t gm_piece_bytes = 128;                           // transfers are moved in whole pieces of at least this
    double vector_cycles_per_repeat = 1.0;                   // 256 bytes a cycle
    double reduce_cycles_per_repeat = 2.0;                   // reductions: two to five times the latency of Add
};

struct Counters {
    uint64_t gm_bytes_in = 0;
    uint64_t gm_bytes_out = 0;
    uint64_t transfers_in = 0;
    uint64_t transfers_out = 0;
    uint64_t vector_ops = 0;
    uint64_t vector_repeats = 0;
    uint64_t reduce_repeats = 0;
    uint64_t scalar_gm_reads = 0;
    uint64_t scalar_gm_writes = 0;
    uint64_t scalar_ub_reads = 0;
    uint64_t scalar_ub_writes = 0;
    uint64_t barriers = 0;
    uint64_t barriers_all = 0;
    uint64_t events_set = 0;
    uint64_t events_waited = 0;
    uint64_t sync_alls = 0;
    uint64_t auto_syncs = 0;
    double mte2_weighted_bytes = 0;  // with whole pieces and the price of a bad alignment
    double mte3_weighted_bytes = 0;

    void AddTransfer(bool in, uint64_t address, uint64_t block_bytes, uint64_t blocks)
    {
        const Rates rates;
        const uint64_t piece = rates.gm_piece_bytes;
        const double whole = static_cast<double>((block_bytes + piece - 1) / piece * piece * blocks);
        const double weighted = address % 512 == 0 ? whole : whole / rates.gm_unaligned_factor;
        (in ? gm_bytes_in : gm_bytes_out) += block_bytes * blocks;
        (in ? transfers_in : transfers_out) += 1;
        (in ? mte2_weighted_bytes : mte3_weighted_bytes) += weighted;
    }

    Counters& operator+=(const Counters& other)
    {
        gm_bytes_in += other.gm_bytes_in;
        gm_bytes_out += other.gm_bytes_out;
        transfers_in += other.transfers_in;
        transfers_out += other.transfers_out;
        vector_ops += other.vector_ops;
        vector_repeats += other.vector_repeats;
        reduce_repeats += other.reduce_repeats;
        scalar_gm_reads += other.scalar_gm_reads;
        scalar_gm_writes += other.scalar_gm_writes;
        scalar_ub_reads += other.scalar_ub_reads;
        scalar_ub_writes += other.scalar_ub_writes;
        barriers += other.barriers;
        barriers_all += other.barriers_all;
        events_set += other.events_set;
        events_waited += other.events_waited;
        sync_alls += other.sync_alls;
        auto_syncs += other.auto_syncs;
        mte2_weighted_bytes += other.mte2_weighted_bytes;
        mte3_weighted_bytes += other.mte3_weighted_bytes;
        return *this;
    }

    double VectorSeconds() const
    {
        const Rates rates;
        return (static_cast<double>(vector_repeats) * rates.vector_cycles_per_repeat +
                static_cast<double>(reduce_repeats) * rates.reduce_cycles_per_repeat) / rates.clock_hz;
    }

    std::string AsJson() const
    {
        const auto mean = [](uint64_t bytes, uint64_t n) {
            return n == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(n);
        };
        return Text("{\"gm_bytes_in\": ", gm_bytes_in, ", \"gm_bytes_out\": ", gm_bytes_out,
                    ", \"transfers_in\": ", transfers_in, ", \"transfers_out\": ", transfers_out,
                    ", \"mean_bytes_in\": ", mean(gm_bytes_in, transfers_in),
                    ", \"mean_bytes_out\": ", mean(gm_bytes_out, transfers_out), ", \"vector_ops\": ", vector_ops,
                    ", \"vector_repeats\": ", vector_repeats, ", \"reduce_repeats\": ", reduce_repeats,
                    ", \"scalar_gm_reads\": ", scalar_gm_reads, ", \"scalar_gm_writes\": ", scalar_gm_writes,
                    ", \"scalar_ub_reads\": ", scalar_ub_reads, ", \"scalar_ub_writes\": ", scalar_ub_writes,
                    ", \"barriers\": ", barriers, ", \"barriers_all\": ", barriers_all,
                    ", \"events_set\": ", events_set, ", \"events_waited\": ", events_waited,
                    ", \"sync_alls\": ", sync_alls, ", \"auto_syncs\": ", auto_syncs, "}");
    }
};

// The slowest core's vector time, and the shared bandwidth's time for each direction.
struct ModelledTime {
    double vector_seconds = 0;
    double mte2_seconds = 0;
    double mte3_seconds = 0;

    void Add(const Counters& core)
    {
        const Rates rates;
        vector_seconds = core.VectorSeconds() > vector_seconds ? core.VectorSeconds() : vector_seconds;
        mte2_seconds += core.mte2_weighted_bytes / rates.gm_bytes_per_second;
        mte3_seconds += core.mte3_weighted_bytes / rates.gm_bytes_per_second;
    }

    // Loads and stores share the bandwidth; compute hides behind them or the other way round.
    double Bound() const
    {
        const double moves = mte2_seconds + mte3_seconds;
        return moves > vector_seconds ? moves : vector_seconds;
    }

    std::string AsJson() const
    {
        return Text("{\"vector_us\": ", vector_seconds * 1e6, ", \"mte2_us\": ", mte2_seconds * 1e6,
                    ", \"mte3_us\": ", mte3_seconds * 1e6, ", \"bound_us\": ", Bound() * 1e6, "}");
    }
};

}  // namespace moegrad::hostmodel
