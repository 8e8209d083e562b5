#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/cuda/cudnn.hpp"

/// Descriptors of the emulated cuDNN, and what it checks when they are complete.
namespace stagecraft::emulated_gpu::dnn {

using namespace stagecraft::cuda::cudnn;

/// A call that cuDNN would refuse, and why.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Four = std::array<std::int64_t, 4>;

struct Object {
  DescriptorType type{};
  bool complete = false;
  std::map<Attribute, std::vector<char>> values;

  void set(Attribute, AttributeType, std::int64_t count, const void*);
  void finish();
  bool has(Attribute name) const { return values.contains(name); }
  template <class Value>
  std::vector<Value> list_of(Attribute name) const {
    const std::vector<char>& bytes = values.at(name);
    std::vector<Value> list(bytes.size() / sizeof(Value));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(list.data()));
    return list;
  }
  template <class Value>
  Value one(Attribute name) const {
    return list_of<Value>(name).at(0);
  }
  const Object& object(Attribute name) const { return *static_cast<const Object*>(one<Descriptor>(name)); }
};

/// A complete tensor.
struct TensorInfo {
  std::int64_t id = 0, alignment = 0;
  Four sizes{}, strides{};
  DataType type{};
  bool is_virtual = false, is_value = false;

  explicit TensorInfo(const Object&);
  std::int64_t numbers() const { return sizes[0] * sizes[1] * sizes[2] * sizes[3]; }
  std::int64_t last() const;  ///< Offset of the last number.
  bool operator==(const TensorInfo&) const = default;
};

/// What the operation reads and writes.
std::vector<TensorInfo> inputs_of(const Object& operation);
TensorInfo result_of(const Object& operation);
/// Every tensor of a graph by its number. Refused if a number has two meanings, or if what an operation reads is
/// virtual and no earlier operation made it.
std::map<std::int64_t, TensorInfo> tensors_of(const Object& graph);
std::vector<const Object*> operations_of(const Object& graph);

/// Numbers by tensor, in the order of its indices.
using Numbers = std::map<std::int64_t, std::vector<float>>;
/// Computes the operation and rounds its result to the type of the tensor.
void compute(const Object& operation, Numbers&);
float rounded(float, DataType);

}  // namespace stagecraft::emulated_gpu::dnn
