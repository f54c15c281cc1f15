#include "memory.h"

#include <cstdlib>
#include <cstring>

#include "handles.h"
#include "text.h"

namespace moegrad::hostacl {

namespace {

constexpr uint64_t kZoneBytes = Memory::kAlignment;
constexpr uint8_t kZoneByte = 0xC5;
constexpr uint8_t kFreshByte = 0xA5;
constexpr uint8_t kGoneByte = 0xDE;
constexpr uint64_t kQuarantineBytes = uint64_t{16} << 20;
constexpr size_t kQuarantineBlocks = 1024;

// The zone behind starts right after the last byte and is at least kZoneBytes long.
uint64_t TotalBytes(uint64_t bytes)
{
    return kZoneBytes + (bytes + kZoneBytes - 1) / kZoneBytes * kZoneBytes + kZoneBytes;
}

// Where [begin, begin + bytes) first differs from `value`; `bytes` if nowhere.
uint64_t FirstOther(const uint8_t* begin, uint64_t bytes, uint8_t value)
{
    if (bytes == 0 || (begin[0] == value && std::memcmp(begin, begin + 1, bytes - 1) == 0)) {
        return bytes;
    }
    uint64_t at = 0;
    while (begin[at] == value) {
        ++at;
    }
    return at;
}

}  // namespace

std::string Block::Name() const
{
    return Text(space == Space::kDevice ? "device memory #" : "host memory #", number);
}

Memory::~Memory()
{
    for (const auto& [start, block] : blocks_) {
        std::free(block.data - kZoneBytes);
    }
}

Block* Memory::Allocate(Space space, int32_t device, uint64_t bytes)
{
    const uint64_t total = TotalBytes(bytes);
    auto* const start = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, total));
    if (start == nullptr) {
        return nullptr;
    }
    std::memset(start, kZoneByte, total);
    std::memset(start + kZoneBytes, kFreshByte, bytes);
    const Block block{NextNumber(), space, device, bytes, start + kZoneBytes, {}};
    return &blocks_.emplace(start, block).first->second;
}

void Memory::Release(Block* block, const std::string& how)
{
    block->gone = how;
    std::memset(block->data, kGoneByte, block->bytes);
    quarantine_.push_back(block);
    quarantined_bytes_ += block->bytes;
    while (quarantine_.size() > kQuarantineBlocks || quarantined_bytes_ > kQuarantineBytes) {
        LeaveQuarantine();
    }
}

void Memory::LeaveQuarantine()
{
    Block* const block = quarantine_.front();
    quarantine_.pop_front();
    quarantined_bytes_ -= block->bytes;
    const std::string damage = Damage(block);
    if (!damage.empty()) {
        late_damage_.push_back(damage);
    }
    uint8_t* const start = block->data - kZoneBytes;
    blocks_.erase(start);
    std::free(start);
}

Block* Memory::Around(const void* address)
{
    const auto* const byte = static_cast<const uint8_t*>(address);
    auto after = blocks_.upper_bound(byte);
    if (after == blocks_.begin()) {
        return nullptr;
    }
    auto& [start, block] = *--after;
    return byte < start + TotalBytes(block.bytes) ? &block : nullptr;
}

std::string Memory::Trouble(const void* address, uint64_t bytes, Space space)
{
    if (address == nullptr) {
        return "is null";
    }
    const Block* const block = Around(address);
    if (block == nullptr) {
        return space == Space::kHost ? "" : Text("is no device memory: ", address);
    }
    if (block->space != space) {
        return Text("is in ", block->Name(), ", expected ", space == Space::kHost ? "host" : "device", " memory");
    }
    if (!block->gone.empty()) {
        return Text("is in ", block->Name(), ", which was ", block->gone);
    }
    const int64_t begin = static_cast<const uint8_t*>(address) - block->data;
    const auto offset = static_cast<uint64_t>(begin);
    if (begin < 0 || offset > block->bytes || bytes > block->bytes - offset) {
        return Text("covers ", bytes, " bytes from byte ", begin, " of ", block->Name(), ", which has ", block->bytes);
    }
    return "";
}

std::string Memory::Damage(Block* block)
{
    uint8_t* const start = block->data - kZoneBytes;
    uint8_t* const end = block->data + block->bytes;
    const uint64_t behind_bytes = TotalBytes(block->bytes) - kZoneBytes - block->bytes;
    const uint64_t front = FirstOther(start, kZoneBytes, kZoneByte);
    const uint64_t behind = FirstOther(end, behind_bytes, kZoneByte);
    const uint64_t inside = block->gone.empty() ? block->bytes : FirstOther(block->data, block->bytes, kGoneByte);

    std::string found;
    if (front < kZoneBytes) {
        found = Text("at byte ", static_cast<int64_t>(front) - static_cast<int64_t>(kZoneBytes), ", before its start");
    } else if (inside < block->bytes) {
        found = Text("at byte ", inside, ", after it was ", block->gone);
    } else if (behind < behind_bytes) {
        found = Text("at byte ", block->bytes + behind, ", behind its end");
    } else {
        return "";
    }
    std::memset(start, kZoneByte, kZoneBytes);
    std::memset(end, kZoneByte, behind_bytes);
    if (!block->gone.empty()) {
        std::memset(block->data, kGoneByte, block->bytes);
    }
    return Text(block->Name(), " (", block->bytes, " bytes) was written ", found);
}

std::vector<std::string> Memory::AllDamage()
{
    std::vector<std::string> all;
    all.swap(late_damage_);
    for (auto& [start, block] : blocks_) {
        const std::string damage = Damage(&block);
        if (!damage.empty()) {
            all.push_back(damage);
        }
    }
    return all;
}

std::vector<Block*> Memory::Alive()
{
    std::vector<Block*> alive;
    for (auto& [start, block] : blocks_) {
        if (block.gone.empty()) {
            alive.push_back(&block);
        }
    }
    return alive;
}

uint64_t Memory::BytesInUse(int32_t device)
{
    uint64_t bytes = 0;
    for (const Block* block : Alive()) {
        bytes += block->space == Space::kDevice && block->device == device ? block->bytes : 0;
    }
    return bytes;
}

}  // namespace moegrad::hostacl
