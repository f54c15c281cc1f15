// Copies x to z on one core. Tiling key 7 makes it store past the end, key 8 leave the last element out, key 9 wait for
// a buffer that never gets free.
#include "kernel_operator.h"

#include "careless_tiling.h"

extern "C" __global__ __aicore__ void careless(GM_ADDR x, GM_ADDR extra, GM_ADDR last, GM_ADDR z, GM_ADDR workspace,
                                               GM_ADDR tiling)
{
    GET_TILING_DATA_WITH_STRUCT(CarelessTiling, data, tiling);
    (void)extra;
    (void)last;
    (void)workspace;
    AscendC::TPipe pipe;
    AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, 1> rows;
    pipe.InitBuffer(rows, 1, data.elements * sizeof(float));
    AscendC::GlobalTensor<float> from;
    AscendC::GlobalTensor<float> to;
    from.SetGlobalBuffer((__gm__ float*)x, data.elements);
    to.SetGlobalBuffer((__gm__ float*)z, data.elements);
    const uint32_t bytes = static_cast<uint32_t>(data.elements * sizeof(float));
    const AscendC::DataCopyExtParams copy{1, bytes, 0, 0, 0};
    const AscendC::DataCopyExtParams shorter{1, static_cast<uint32_t>(bytes - sizeof(float)), 0, 0, 0};
    AscendC::LocalTensor<float> row = rows.AllocTensor<float>();
    AscendC::DataCopyPad(row, from, copy, AscendC::DataCopyPadExtParams<float>{false, 0, 0, 0.0f});
    rows.EnQue(row);
    row = rows.DeQue<float>();
    if (TILING_KEY_IS(9)) {
        rows.AllocTensor<float>();
    } else if (TILING_KEY_IS(8)) {
        AscendC::DataCopyPad(to, row, shorter);
    } else {
        AscendC::DataCopyPad(to[TILING_KEY_IS(7) ? 1 : 0], row, copy);
    }
    rows.FreeTensor(row);
}
