#pragma once

#include <cstdint>

#include "backends/real/kernels.hpp"

/// real/formulas on arrays of the host, for float and double.
namespace stagecraft::cpu {

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
