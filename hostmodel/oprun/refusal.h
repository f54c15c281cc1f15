// Why a call is refused; thrown inside the runner, caught where it returns to C.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "../acl/objects.h"
#include "aclnn/aclnn_base.h"

namespace moegrad::oprun {

class Refusal : public std::runtime_error {
public:
    // |verbatim|: the words are the operator's own, nothing is put in front of them.
    Refusal(aclnnStatus status, const std::string& text, bool verbatim = false)
        : std::runtime_error(text), status_(status), verbatim_(verbatim)
    {
    }

    aclnnStatus status() const { return status_; }
    bool verbatim() const { return verbatim_; }

private:
    aclnnStatus status_;
    bool verbatim_;
};

// Runs |body|; a refusal becomes its status and the recent error "<op_type>: <text>".
template <typename Body>
aclnnStatus Guarded(const char* op_type, Body body)
{
    const std::string name = op_type == nullptr ? "operator" : op_type;
    try {
        body();
        return ACLNN_SUCCESS;
    } catch (const Refusal& refusal) {
        return hostacl::Fail(refusal.status(), (refusal.verbatim() ? "" : name + ": ") + refusal.what());
    } catch (const std::exception& error) {
        return hostacl::Fail(ACLNN_ERR_INNER, name + ": " + error.what());
    }
}

}  // namespace moegrad::oprun
