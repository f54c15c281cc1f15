// The definition of an operator: its tensors, attributes, chips and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "exe_graph/runtime/infer_datatype_context.h"
#include "exe_graph/runtime/infer_shape_context.h"
#include "exe_graph/runtime/tiling_context.h"

namespace ops {

enum Option { OPTIONAL = 1, REQUIRED = 2 };

// An input or output. The lists of all tensors of an operator have one length: entry i of each is combination i.
class OpParamDef {
public:
    explicit OpParamDef(const char* name) : name_(name) {}

    OpParamDef& ParamType(Option type) { return Set(type_, type); }
    OpParamDef& DataType(std::vector<ge::DataType> types) { return Set(data_types_, std::move(types)); }
    OpParamDef& Format(std::vector<ge::Format> formats) { return Set(formats_, std::move(formats)); }
    OpParamDef& UnknownShapeFormat(std::vector<ge::Format> formats)
    {
        return Set(unknown_shape_formats_, std::move(formats));
    }
    OpParamDef& AutoContiguous() { return Set(auto_contiguous_, true); }

    const std::string& name() const { return name_; }
    bool required() const { return type_ == REQUIRED; }
    const std::vector<ge::DataType>& data_types() const { return data_types_; }
    const std::vector<ge::Format>& formats() const { return formats_; }
    const std::vector<ge::Format>& unknown_shape_formats() const { return unknown_shape_formats_; }
    bool auto_contiguous() const { return auto_contiguous_; }

private:
    template <typename T>
    OpParamDef& Set(T& field, T value)
    {
        field = std::move(value);
        return *this;
    }

    std::string name_;
    Option type_ = OPTIONAL;
    std::vector<ge::DataType> data_types_;
    std::vector<ge::Format> formats_;
    std::vector<ge::Format> unknown_shape_formats_;
    bool auto_contiguous_ = false;
};

// An attribute: a bool, an int64_t or a list of int64_t. The overloads with a value give its default.
class OpAttrDef {
public:
    using Value = std::variant<bool, int64_t, std::vector<int64_t>>;

    explicit OpAttrDef(const char* name) : name_(name) {}

    OpAttrDef& AttrType(Option type)
    {
        type_ = type;
        return *this;
    }
    OpAttrDef& Bool() { return Set(false, false); }
    OpAttrDef& Bool(bool value) { return Set(value, true); }
    OpAttrDef& Int() { return Set(int64_t{0}, false); }
    OpAttrDef& Int(int64_t value) { return Set(value, true); }
    OpAttrDef& ListInt() { return Set(std::vector<int64_t>{}, false); }
    OpAttrDef& ListInt(std::vector<int64_t> value) { return Set(std::move(value), true); }

    const std::string& name() const { return name_; }
    bool required() const { return type_ == REQUIRED; }
    bool has_default() const { return has_default_; }
    const Value& value() const { return value_; }  // the default; without one, an empty value of the type

private:
    OpAttrDef& Set(Value value, bool has_default)
    {
        value_ = std::move(value);
        has_default_ = has_default;
        return *this;
    }

    std::string name_;
    Option type_ = REQUIRED;
    Value value_ = false;
    bool has_default_ = false;
};

using TilingFunction = ge::graphStatus (*)(gert::TilingContext*);
using InferShapeFunction = ge::graphStatus (*)(gert::InferShapeContext*);
using InferDataTypeFunction = ge::graphStatus (*)(gert::InferDataTypeContext*);

class OpAICoreDef {
public:
    OpAICoreDef& SetTiling(TilingFunction function)
    {
        tiling_ = function;
        return *this;
    }
    OpAICoreDef& AddConfig(const char* soc)
    {
        socs_.emplace_back(soc);
        return *this;
    }
    // Off: a call of which all outputs are empty neither tiles nor launches.
    OpAICoreDef& LaunchWithZeroEleOutputTensors(bool launch)
    {
        launches_when_empty_ = launch;
        return *this;
    }

    TilingFunction tiling() const { return tiling_; }
    const std::vector<std::string>& socs() const { return socs_; }
    bool launches_when_empty() const { return launches_when_empty_; }

private:
    TilingFunction tiling_ = nullptr;
    std::vector<std::string> socs_;
    bool launches_when_empty_ = false;
};

class OpDef {
public:
    explicit OpDef(const char* type) : type_(type) {}

    OpParamDef& Input(const char* name) { return GetOrAdd(inputs_, name); }
    OpParamDef& Output(const char* name) { return GetOrAdd(outputs_, name); }
    OpAttrDef& Attr(const char* name) { return GetOrAdd(attrs_, name); }
    OpAICoreDef& AICore() { return ai_core_; }
    OpDef& SetInferShape(InferShapeFunction function)
    {
        infer_shape_ = function;
        return *this;
    }
    OpDef& SetInferDataType(InferDataTypeFunction function)
    {
        infer_data_type_ = function;
        return *this;
    }

    const std::string& type() const { return type_; }
    const std::deque<OpParamDef>& inputs() const { return inputs_; }
    const std::deque<OpParamDef>& outputs() const { return outputs_; }
    const std::deque<OpAttrDef>& attrs() const { return attrs_; }
    const OpAICoreDef& ai_core() const { return ai_core_; }
    InferShapeFunction infer_shape() const { return infer_shape_; }
    InferDataTypeFunction infer_data_type() const { return infer_data_type_; }

    // Of two definitions with one name the first is kept, and marked.
    void MarkDuplicate() { duplicate_ = true; }
    bool duplicate() const { return duplicate_; }

private:
    // Deques, so that a reference that a definition keeps stays good.
    template <typename Def>
    static Def& GetOrAdd(std::deque<Def>& defs, const char* name)
    {
        for (Def& def : defs) {
            if (def.name() == name) {
                return def;
            }
        }
        return defs.emplace_back(name);
    }

    std::string type_;
    std::deque<OpParamDef> inputs_;
    std::deque<OpParamDef> outputs_;
    std::deque<OpAttrDef> attrs_;
    OpAICoreDef ai_core_;
    InferShapeFunction infer_shape_ = nullptr;
    InferDataTypeFunction infer_data_type_ = nullptr;
    bool duplicate_ = false;
};

}  // namespace ops
