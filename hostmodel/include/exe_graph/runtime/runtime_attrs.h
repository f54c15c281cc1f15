// The attributes of a call, in the order of the operator's definition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "continuous_vector.h"

namespace gert {

using AttrValue = std::variant<bool, int64_t, TypedContinuousVector<int64_t>>;

class RuntimeAttrs {
public:
    // |problems| collects what a device would let pass.
    RuntimeAttrs(std::vector<AttrValue> values, std::vector<std::string>* problems)
        : values_(std::move(values)), problems_(problems)
    {
    }

    std::size_t GetAttrNum() const { return values_.size(); }

    // Null for an index that the operator does not have, and for an attribute of another type.
    template <typename T>
    const T* GetAttrPointer(std::size_t index) const
    {
        static_assert(std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
                          std::is_base_of_v<ContinuousVector, T>,
                      "an attribute is read as bool, int64_t or a vector of int64_t");
        using Held = std::conditional_t<std::is_base_of_v<ContinuousVector, T>, TypedContinuousVector<int64_t>, T>;
        static_assert(std::is_base_of_v<T, Held> || std::is_same_v<T, Held>, "a list attribute holds int64_t");
        if (index >= values_.size()) {
            problems_->push_back("attribute " + std::to_string(index) + " was asked for, the operator has " +
                                 std::to_string(values_.size()));
            return nullptr;
        }
        const Held* held = std::get_if<Held>(&values_[index]);
        if (held == nullptr) {
            problems_->push_back("attribute " + std::to_string(index) + " was read as another type than its own");
        }
        return held;
    }

    const bool* GetBool(std::size_t index) const { return GetAttrPointer<bool>(index); }
    const int64_t* GetInt(std::size_t index) const { return GetAttrPointer<int64_t>(index); }
    const TypedContinuousVector<int64_t>* GetListInt(std::size_t index) const
    {
        return GetAttrPointer<TypedContinuousVector<int64_t>>(index);
    }

private:
    std::vector<AttrValue> values_;
    std::vector<std::string>* problems_;
};

}  // namespace gert
