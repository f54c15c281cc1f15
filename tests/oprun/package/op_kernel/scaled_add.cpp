#include "scaled_add_kernel.h"

extern "C" __global__ __aicore__ void scaled_add(GM_ADDR x, GM_ADDR y, GM_ADDR mask, GM_ADDR z, GM_ADDR doubled,
                                                 GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(ScaledAddTiling);
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    GET_TILING_DATA_WITH_STRUCT(ScaledAddTiling, data, tiling);
    (void)mask;
    (void)workspace;
    AscendC::TPipe pipe;
    ScaledAdd kernel;
    kernel.Init(x, y, z, doubled, data, &pipe);
    if (TILING_KEY_IS(1)) {
        kernel.Process(false);
    } else if (TILING_KEY_IS(2)) {
        kernel.Process(true);
    }
}
