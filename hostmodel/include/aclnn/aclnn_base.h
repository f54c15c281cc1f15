/* Start, end and status codes of the operator interface. */
#pragma once

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

static const aclnnStatus ACLNN_SUCCESS = 0;

static const aclnnStatus ACLNN_ERR_PARAM_NULLPTR = 161001;
static const aclnnStatus ACLNN_ERR_PARAM_INVALID = 161002;

static const aclnnStatus ACLNN_ERR_RUNTIME_ERROR = 361001;

static const aclnnStatus ACLNN_ERR_INNER = 561000;
static const aclnnStatus ACLNN_ERR_INNER_INFERSHAPE_ERROR = 561001;
static const aclnnStatus ACLNN_ERR_INNER_TILING_ERROR = 561002;
static const aclnnStatus ACLNN_ERR_INNER_FIND_KERNEL_ERROR = 561003;
static const aclnnStatus ACLNN_ERR_INNER_CREATE_EXECUTOR = 561101;
static const aclnnStatus ACLNN_ERR_INNER_NOT_TRANS_EXECUTOR = 561102;
static const aclnnStatus ACLNN_ERR_INNER_NULLPTR = 561103;
static const aclnnStatus ACLNN_ERR_INNER_WRONG_ATTR_INFO_SIZE = 561104;
static const aclnnStatus ACLNN_ERR_INNER_KEY_CONFILICT = 561105; /* spelled so */
static const aclnnStatus ACLNN_ERR_INNER_INVALID_IMPL_MODE = 561106;
static const aclnnStatus ACLNN_ERR_INNER_OPP_PATH_NOT_FOUND = 561107;
static const aclnnStatus ACLNN_ERR_INNER_LOAD_JSON_FAILED = 561108;
static const aclnnStatus ACLNN_ERR_INNER_JSON_VALUE_NOT_FOUND = 561109;
static const aclnnStatus ACLNN_ERR_INNER_JSON_FORMAT_INVALID = 561110;
static const aclnnStatus ACLNN_ERR_INNER_JSON_DTYPE_INVALID = 561111;
static const aclnnStatus ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND = 561112;
static const aclnnStatus ACLNN_ERR_INNER_OP_FILE_INVALID = 561113;
static const aclnnStatus ACLNN_ERR_INNER_ATTR_NUM_OUT_OF_BOUND = 561114;
static const aclnnStatus ACLNN_ERR_INNER_ATTR_LEN_NOT_ENOUGH = 561115;
static const aclnnStatus ACLNN_ERR_INNER_INPUT_NUM_IN_JSON_TOO_LARGE = 561116;
static const aclnnStatus ACLNN_ERR_INNER_INPUT_JSON_IS_NULL = 561117;
static const aclnnStatus ACLNN_ERR_INNER_STATIC_WORKSPACE_INVALID = 561118;
static const aclnnStatus ACLNN_ERR_INNER_STATIC_BLOCK_DIM_INVALID = 561119;

/* The lighter of two ways to start: operators need this or aclInit; both together are fine too. */
ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char* configPath);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif
