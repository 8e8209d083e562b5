#pragma once

#include <cstdint>
#include <memory>

#include "backends/real/kernels.hpp"
#include "sim/core/ids.hpp"

namespace stagecraft::cpu {

/// Kernels on Eigen, one thread; `width` is 4 or 8 bytes a number, or real::kMixedWidth for mixed precision. Not to be
/// used by two threads at once.
std::unique_ptr<real::Kernels> make_kernels(std::size_t width, DeviceId = {});

/// Whether there is a kernel for this operation.
bool has_kernel(const Operation&);

/// Kernels for mixed precision: they round to 16 bits what a GPU stores in 16 bits.
std::unique_ptr<real::Kernels> make_mixed_kernels();
bool has_mixed_kernel(const Operation&);

// The formulas of backends/real/formulas on arrays of the host; T is float or double.

template <class T>
void update(const OptimizerRule&, const real::UpdateOptions&, std::int64_t count, const T* gradient,
            real::OptimizerState&, const T* from, T* to);

template <class T>
void predict(const OptimizerRule&, Direction, int horizon, std::int64_t count, const real::OptimizerState&,
             const T* from, T* to);

template <class T>
void reconstruct(const OptimizerRule&, Reconstruction, int delay, std::int64_t count, const real::OptimizerState&,
                 const T* from, T* to);

}  // namespace stagecraft::cpu
