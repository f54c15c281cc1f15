// An interpreter of little programs for test_orders.py: loads, adds, stores, flags and barriers in any order.
#include "common.h"

using namespace common;

constexpr int32_t WIDTH = 64;
constexpr int32_t BUFFERS = 4;

template <HardEvent event>
void Flag(int32_t what, int32_t id)
{
    if (what != 1) {
        SetFlag<event>(id);
    }
    if (what != 0) {
        WaitFlag<event>(id);
    }
}

void AnyFlag(int32_t event, int32_t what, int32_t id)
{
    switch (event) {
        case 0: Flag<HardEvent::MTE2_V>(what, id); break;
        case 1: Flag<HardEvent::V_MTE2>(what, id); break;
        case 2: Flag<HardEvent::V_MTE3>(what, id); break;
        case 3: Flag<HardEvent::MTE3_V>(what, id); break;
        case 4: Flag<HardEvent::MTE2_MTE3>(what, id); break;
        case 5: Flag<HardEvent::MTE3_MTE2>(what, id); break;
        case 6: Flag<HardEvent::S_V>(what, id); break;
        case 7: Flag<HardEvent::V_S>(what, id); break;
        case 8: Flag<HardEvent::S_MTE2>(what, id); break;
        case 9: Flag<HardEvent::MTE2_S>(what, id); break;
        case 10: Flag<HardEvent::S_MTE3>(what, id); break;
        case 11: Flag<HardEvent::MTE3_S>(what, id); break;
        default: break;
    }
}

struct Step {
    int32_t kind;
    int32_t a;
    int32_t b;
    int32_t c;
};

// kinds: 0 load buffer a from chunk b; 1 buffer a = buffer b + 1; 2 store buffer a to chunk b;
// 3 flag of event a, b: 0 set, 1 wait, 2 both, id c; 4 barrier of V, MTE2, MTE3 by a;
// 5 first element of buffer a = first element of buffer b, on the scalar pipe
void orders(GM_ADDR x, GM_ADDR steps, GM_ADDR y, int32_t count)
{
    TPipe pipe;
    TBuf<> buffer;
    pipe.InitBuffer(buffer, BUFFERS * WIDTH * sizeof(float));
    LocalTensor<float> all = buffer.Get<float>();
    Duplicate(all, 0.0f, BUFFERS * WIDTH);
    PipeBarrier<PIPE_ALL>();
    GlobalTensor<float> gx;
    GlobalTensor<float> gy;
    gx.SetGlobalBuffer((__gm__ float*)x);
    gy.SetGlobalBuffer((__gm__ float*)y);
    for (int32_t i = 0; i < count; ++i) {
        const Step s = ((__gm__ Step*)steps)[i];
        switch (s.kind) {
            case 0: DataCopy(all[s.a * WIDTH], gx[s.b * WIDTH], WIDTH); break;
            case 1: Adds(all[s.a * WIDTH], all[s.b * WIDTH], 1.0f, WIDTH); break;
            case 2: DataCopy(gy[s.b * WIDTH], all[s.a * WIDTH], WIDTH); break;
            case 3: AnyFlag(s.a, s.b, s.c); break;
            case 5: all[s.a * WIDTH].SetValue(0, all[s.b * WIDTH].GetValue(0)); break;
            default:
                if (s.a == 0) {
                    PipeBarrier<PIPE_V>();
                } else if (s.a == 1) {
                    PipeBarrier<PIPE_MTE2>();
                } else {
                    PipeBarrier<PIPE_MTE3>();
                }
        }
    }
}
MOEGRAD_HOSTMODEL_KERNEL(orders)
