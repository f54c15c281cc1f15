// What can be wrong in the tiling function of Careless, or in its kernel.
#pragma once

enum Fault {
    NONE,
    UNSET_FIELD,
    UNSET_BYTE,
    DEPENDENT_FIELD,
    NO_KEY,
    NO_BLOCKS,
    TOO_MANY_BLOCKS,
    UNSET_WORKSPACE,
    TWO_WORKSPACES,
    TWO_STRUCTS,
    HUGE_STRUCT,
    RAW_TOO_LARGE,
    WRONG_ATTR,
    WRONG_ATTR_TYPE,
    WRONG_INPUT,
    WRONG_OUTPUT,
    PLACE_AFTER_ABSENT,
    SILENT,
    SPEAKING,
    THROWING,
    STORE_PAST_END,
    LEAVE_UNWRITTEN,
    HANG,
};
