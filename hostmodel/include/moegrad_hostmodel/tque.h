// The queue and pipe types that kernels name: TQue, TQueBind, TBuf, TPipe.
#pragma once

#include <cstdint>
#include <exception>

#include "tpipe.h"

namespace AscendC {

template <TPosition src, TPosition dst, int32_t depth, int32_t mask = 0>
class TQueBind {
public:
    static constexpr TPosition srcPosition = src;
    static constexpr TPosition dstPosition = dst;

    TQueBind() = default;
    TQueBind(const TQueBind&) = delete;
    TQueBind& operator=(const TQueBind&) = delete;

    template <typename T>
    LocalTensor<T> AllocTensor(MGH_HERE)
    {
        using namespace moegrad::hostmodel;
        Buffer& buffer = queue_.Alloc({"AllocTensor", where});
        return TensorMaker::Make<T>(buffer, buffer.begin, buffer.end - buffer.begin);
    }

    // In-place form, for depth 0.
    template <typename T>
    void AllocTensor(LocalTensor<T>& tensor, MGH_HERE)
    {
        tensor = AllocTensor<T>(where);
    }

    template <typename T>
    bool EnQue(const LocalTensor<T>& tensor, MGH_HERE)
    {
        return queue_.Enqueue(moegrad::hostmodel::PlaceOf(tensor), {"EnQue", where});
    }

    template <TPosition srcUser, TPosition dstUser, typename T>
    bool EnQue(const LocalTensor<T>& tensor, MGH_HERE)
    {
        return EnQue(tensor, where);
    }

    template <typename T>
    LocalTensor<T> DeQue(MGH_HERE)
    {
        using namespace moegrad::hostmodel;
        const UbPlace place = queue_.Dequeue({"DeQue", where});
        return TensorMaker::Make<T>(*place.buffer, place.begin, place.limit);
    }

    template <typename T>
    void DeQue(LocalTensor<T>& tensor, MGH_HERE)
    {
        tensor = DeQue<T>(where);
    }

    template <TPosition srcUser, TPosition dstUser, typename T>
    LocalTensor<T> DeQue(MGH_HERE)
    {
        return DeQue<T>(where);
    }

    template <typename T>
    void FreeTensor(const LocalTensor<T>& tensor, MGH_HERE)
    {
        queue_.Release(moegrad::hostmodel::PlaceOf(tensor), {"FreeTensor", where});
    }

    bool HasIdleBuffer() const { return queue_.HasIdle(); }
    bool HasTensorInQue() const { return queue_.waiting() != 0; }
    bool VacantInQue() const { return queue_.waiting() < queue_.depth(); }
    int32_t GetTensorCountInQue() const { return static_cast<int32_t>(queue_.waiting()); }
    void FreeAllEvent() {}

private:
    friend class TPipe;
    // Buffers count against the position that the queue's name shows: the source side of a binding.
    static constexpr TPosition kHome = src == TPosition::GM || src == TPosition::VECCALC ? dst : src;

    moegrad::hostmodel::QueueBase queue_{moegrad::hostmodel::EventsOf(src, dst), static_cast<int>(kHome),
                                         static_cast<uint32_t>(depth)};
};

template <TPosition pos>
inline constexpr TPosition kQueueSource = pos == TPosition::VECIN ? TPosition::GM
                                          : pos == TPosition::VECOUT ? TPosition::VECCALC
                                                                     : pos;
template <TPosition pos>
inline constexpr TPosition kQueueDestination = pos;

template <TPosition pos, int32_t depth, int32_t mask = 0>
class TQue : public TQueBind<kQueueSource<pos>, kQueueDestination<pos>, depth, mask> {};

template <TPosition pos = TPosition::VECCALC>
class TBuf {
public:
    template <typename T = uint8_t>
    LocalTensor<T> Get() const
    {
        return GetWithOffset<T>(Length() / static_cast<uint32_t>(sizeof(T)), 0);
    }

    template <typename T = uint8_t>
    LocalTensor<T> Get(uint32_t elements) const
    {
        return GetWithOffset<T>(elements, 0);
    }

    template <typename T>
    LocalTensor<T> GetWithOffset(uint32_t elements, uint32_t offset, MGH_HERE) const
    {
        using namespace moegrad::hostmodel;
        Core& core = Self();
        const Site site{"TBuf::GetWithOffset", where};
        const int64_t bytes = static_cast<int64_t>(elements) * static_cast<int64_t>(sizeof(T));
        if (buffer_ == nullptr) {
            core.Report("ub-out-of-bounds", site, "the TBuf was not given to InitBuffer");
            return {};
        }
        if (offset % kBlockBytes != 0) {
            core.Report("ub-misaligned", site, Text("the offset is ", offset, ", not a multiple of 32"));
        }
        if (offset + bytes > Length()) {
            core.Report("ub-out-of-bounds", site,
                        Text(elements, " elements from byte ", offset, " of a buffer of ", Length(), " bytes"));
        }
        return TensorMaker::Make<T>(*buffer_, buffer_->begin + offset, bytes);
    }

    uint32_t GetBufLen() const { return Length(); }
    void EnQue() {}
    template <typename T>
    void FreeTensor(const LocalTensor<T>&)
    {
    }

private:
    friend class TPipe;
    uint32_t Length() const { return buffer_ == nullptr ? 0 : buffer_->end - buffer_->begin; }
    moegrad::hostmodel::Buffer* buffer_ = nullptr;
};

class TPipe {
public:
    explicit TPipe(MGH_HERE)
    {
        using namespace moegrad::hostmodel;
        core_ = &Self();
        if (core_->tpipe != nullptr) {
            core_->Report("tpipe-count", {"TPipe", where}, "another TPipe is alive");
        }
        core_->tpipe = this;
        core_->tpipes_made += 1;
        where_ = where;
        ResetCoreState(*core_);
    }
    TPipe(const TPipe&) = delete;
    TPipe& operator=(const TPipe&) = delete;
    ~TPipe() { Destroy(); }

    void Init() {}

    template <typename Queue>
    bool InitBuffer(Queue& queue, uint8_t num, uint32_t len, MGH_HERE)
    {
        return queue.queue_.Init(*core_, num, len, {"InitBuffer", where});
    }

    template <TPosition pos>
    bool InitBuffer(TBuf<pos>& buf, uint32_t len, MGH_HERE)
    {
        using namespace moegrad::hostmodel;
        std::vector<Buffer*> placed;
        const bool fits = PlaceBuffers(*core_, placed, 1, len, static_cast<int>(pos), &buf, {"InitBuffer", where});
        buf.buffer_ = placed[0];
        return fits;
    }

    TEventID FetchEventID(HardEvent event, MGH_HERE)
    {
        using namespace moegrad::hostmodel;
        (void)where;
        const int id = LowestFreeEvent(*core_, event);
        if (id >= 0) {
            core_->events[static_cast<uint32_t>(event)][static_cast<uint32_t>(id)].fetched = true;
        }
        return static_cast<TEventID>(id);
    }
    template <HardEvent event>
    TEventID FetchEventID(MGH_HERE)
    {
        return FetchEventID(event, where);
    }

    template <HardEvent event>
    TEventID AllocEventID(MGH_HERE)
    {
        return static_cast<TEventID>(moegrad::hostmodel::HoldEvent(*core_, event, {"AllocEventID", where}, false));
    }

    template <HardEvent event>
    void ReleaseEventID(TEventID id, MGH_HERE)
    {
        moegrad::hostmodel::DropEvent(*core_, event, id, {"ReleaseEventID", where});
    }

    // Gives all buffers back and starts again at UB offset 0.
    void Reset()
    {
        using namespace moegrad::hostmodel;
        Finish();
        core_->RetireBuffers();
    }

    void Destroy()
    {
        if (core_ == nullptr || core_->tpipe != this) {
            return;
        }
        Reset();
        core_->tpipe = nullptr;
    }

private:
    // Waits for the "buffer free" events that are outstanding, then for everything.
    void Finish()
    {
        using namespace moegrad::hostmodel;
        if (core_->aborted) {
            return;
        }
        CheckQueuesAtEnd(*core_, {"TPipe", where_});
        for (auto& slots : core_->events) {
            for (EventSlot& slot : slots) {
                if (slot.by_queue) {
                    slot = {};
                }
            }
        }
        core_->pipes.BarrierAll();
    }

    moegrad::hostmodel::Core* core_ = nullptr;
    moegrad::hostmodel::Where where_{};
};

inline TPipe* GetTPipePtr() { return moegrad::hostmodel::Self().tpipe; }

inline void InitSocState() { moegrad::hostmodel::ResetCoreState(moegrad::hostmodel::Self()); }

}  // namespace AscendC
