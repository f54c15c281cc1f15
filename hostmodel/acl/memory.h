// Memory of devices, and memory of the host that the run time knows: guarded, poisoned, and quarantined after release.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace moegrad::hostacl {

enum class Space { kDevice, kHost };

struct Block {
    uint64_t number;  // in the order of creation
    Space space;
    int32_t device;
    uint64_t bytes;
    uint8_t* data;
    std::string gone;  // how it ended, such as "freed"; empty while it is alive

    std::string Name() const;
};

class Memory {
public:
    // Arguments of kernels start at multiples of this.
    static constexpr uint64_t kAlignment = 512;

    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();

    // Null if the host has not enough.
    Block* Allocate(Space space, int32_t device, uint64_t bytes);

    // Poisons the block and keeps it for a while, so that uses of it are recognised. `how` completes "which was ...".
    void Release(Block* block, const std::string& how);

    // The block, alive or gone, that has `address` in it or in the guard zones around it; null if there is none.
    Block* Around(const void* address);

    // Why [address, address + bytes) is not memory of this space, put after the name of an argument; empty if it is.
    // Host memory that the run time did not allocate passes: nothing is known of it.
    std::string Trouble(const void* address, uint64_t bytes, Space space);

    // Writes around the block, or in it if it is gone; empty if there were none. Each is told once.
    static std::string Damage(Block* block);

    // Damage of all blocks, and of those that left the quarantine since the last call.
    std::vector<std::string> AllDamage();

    std::vector<Block*> Alive();
    uint64_t BytesInUse(int32_t device);

private:
    void LeaveQuarantine();

    std::map<const uint8_t*, Block> blocks_;  // by the start of the guard zone in front
    std::deque<Block*> quarantine_;
    uint64_t quarantined_bytes_ = 0;
    std::vector<std::string> late_damage_;
};

}  // namespace moegrad::hostacl
