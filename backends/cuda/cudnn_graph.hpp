#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backends/cuda/cudnn.hpp"

// Graphs of cuDNN's operations, as objects that check each call.

namespace stagecraft::cuda::cudnn {

/// What cuDNN says about a call that failed.
struct Refusal : CudaError {
  using CudaError::CudaError;
};
void require(Status, const char* what);

/// A descriptor of the backend API. Every function throws Refusal.
class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(DescriptorType);
  OwnedDescriptor(OwnedDescriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  OwnedDescriptor(const OwnedDescriptor&) = delete;
  OwnedDescriptor& operator=(const OwnedDescriptor&) = delete;
  OwnedDescriptor& operator=(OwnedDescriptor&&) = delete;
  ~OwnedDescriptor();

  template <class Value>
  OwnedDescriptor& set(Attribute name, AttributeType type, std::span<const Value> values) {
    return set(name, type, std::ssize(values), values.data());
  }
  template <class Value>
  OwnedDescriptor& set(Attribute name, AttributeType type, const Value& value) {
    return set(name, type, 1, &value);
  }
  OwnedDescriptor& set(Attribute name, const OwnedDescriptor& other) { return set(name, OfDescriptor, other.raw_); }
  OwnedDescriptor& set(Attribute name, Descriptor other) { return set(name, OfDescriptor, 1, &other); }
  /// The number of values that there are; at most `wanted` are written.
  std::int64_t get(Attribute, AttributeType, std::int64_t wanted, void* values) const;
  /// Nothing can be set from now on.
  OwnedDescriptor& finish();
  Descriptor raw() const { return raw_; }

 private:
  OwnedDescriptor& set(Attribute, AttributeType, std::int64_t count, const void* values);

  Descriptor raw_ = nullptr;
};

/// The properties of a GPU that engines are chosen and compiled for.
OwnedDescriptor device_properties(int gpu);

using Four = std::array<std::int64_t, 4>;

/// Batch, heads, rows and columns of an array, and the distances of their numbers.
struct Array {
  Four sizes{}, strides{};
  DataType type = DataType::Float;
};

/// A plan that runs on a GPU, and the bytes of device memory that it works in.
struct ExecutionPlan {
  OwnedDescriptor plan;
  std::int64_t workspace = 0;
};

/// Operations on arrays that cuDNN computes together. Arrays between two operations need not be anywhere.
class OperationGraph {
 public:
  /// An array in device memory, with a number that is not 0.
  Descriptor tensor(const Array& array, std::int64_t id) { return tensor(array, id, Residence::Device); }
  /// A number that the host passes with each execution.
  Descriptor number(std::int64_t id) { return tensor({{1, 1, 1, 1}, {1, 1, 1, 1}}, id, Residence::Host); }
  /// An array that only operations of this graph see.
  Descriptor between(const Array& array) { return tensor(array, next_id_++, Residence::Nowhere); }

  void matmul(Descriptor a, Descriptor b, Descriptor c);  ///< Sums are floats.
  /// y = mode(x, b). `type` is what it computes in; `select` chooses between x and b.
  Descriptor pointwise(Pointwise mode, const Array& result, Descriptor x, Descriptor b = nullptr,
                       Descriptor select = nullptr, DataType type = DataType::Float);
  void pointwise_into(Pointwise mode, Descriptor y, Descriptor x, Descriptor b = nullptr, Descriptor select = nullptr,
                      DataType type = DataType::Float);
  Descriptor index(std::int64_t axis, const Array& like, Descriptor x);
  Descriptor reduce(Reduce, const Array& result, Descriptor x);
  Descriptor reshape(const Array& result, Descriptor x);

  /// The first configuration by heuristic whose engine gives equal bits every time and is supported there. Compiles its
  /// kernels. Throws Refusal.
  ExecutionPlan plan(const OwnedDescriptor& device) const;
  /// Configurations that cuDNN's heuristic names, the best first; those that the device does not support are empty.
  /// Nothing is compiled for it.
  std::vector<OwnedDescriptor> configurations(const OwnedDescriptor& device) const;

 private:
  enum class Residence : std::uint8_t { Device, Host, Nowhere };
  Descriptor tensor(const Array&, std::int64_t id, Residence);
  Descriptor keep(OwnedDescriptor&&);
  void add(OwnedDescriptor&&);

  std::vector<OwnedDescriptor> descriptors_;
  std::vector<Descriptor> operations_;
  std::int64_t next_id_ = 1000;
};

}  // namespace stagecraft::cuda::cudnn
