/* The host ACL: what a client of two operators needs of the Ascend Computing Language run time, on the host. */
#pragma once

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 15
#define ACL_PATCH_VERSION 0

#ifdef __cplusplus
extern "C" {
#endif

/* `configPath` is null, empty, or names a readable file, of which nothing is used. */
ACL_FUNC_VISIBILITY aclError aclInit(const char* configPath);
/* Releases all that is left; leftovers are listed on stderr and make it fail. aclInit may follow. */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);

ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion);

/* The calling thread's latest error, once; null if there is none. Valid until the thread's next call of it. */
ACL_FUNC_VISIBILITY const char* aclGetRecentErrMsg(void);

#ifdef __cplusplus
}
#endif
