#pragma once

#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "tests/backends/cpu/trial.hpp"

namespace stagecraft::test {

constexpr int kOddSizes[] = {1, 3, 17, 33, 129, 1000};

/// A trial with shapes drawn from the odd sizes.
inline Trial drawn_trial(OperationKind kind, Rng& rng) {
  const auto size = [&](int last) { return kOddSizes[rng.integer(0, last)]; };
  Trial t;
  t.op.kind = kind;
  t.op.rows = size(2);
  t.op.columns = size(5);
  t.samples = rng.integer(1, 3);
  t.columns = {t.op.columns};
  switch (kind) {
    case OperationKind::Input:
    case OperationKind::LayerNorm:
    case OperationKind::Relu:
    case OperationKind::Tanh:
    case OperationKind::Gelu:
    case OperationKind::RmsNorm:
    case OperationKind::Silu:
      break;
    case OperationKind::GatedSilu:
      t.op.inner = 2 * t.op.columns;
      t.columns = {t.op.inner};
      break;
    case OperationKind::Rotary: {
      t.op.heads = rng.integer(1, 4);
      t.op.rotary = 2 * size(2), t.op.head_width = t.op.rotary + rng.integer(0, 1) * size(1);
      t.op.columns = t.op.heads * t.op.head_width + rng.integer(0, 1) * size(3);
      t.columns = {t.op.columns};
      break;
    }
    case OperationKind::Linear:
      t.op.inner = size(5);
      t.op.bias = rng.integer(0, 1) == 1;
      t.columns = {t.op.inner};
      break;
    case OperationKind::Attention:
      t.op.rows = size(4);
      t.op.key_value_heads = rng.integer(1, 4);
      t.op.heads = t.op.key_value_heads * rng.integer(1, 3);
      t.op.columns = t.op.heads * size(2);
      t.op.causal = rng.integer(0, 1) == 1;
      t.columns = {query_key_value_columns(head_shape(t.op))};
      break;
    case OperationKind::Embedding:
      t.op.inner = size(4);
      t.op.positions = rng.integer(0, 1) == 1;
      t.columns = {1};
      break;
    case OperationKind::Add:
      t.columns.assign(static_cast<std::size_t>(rng.integer(1, 4)), t.op.columns);
      break;
    case OperationKind::Concat:
      t.columns = {size(5), size(3), size(4)};
      t.op.columns = t.columns[0] + t.columns[1] + t.columns[2];
      break;
    case OperationKind::CrossEntropy:
      t.columns.push_back(1);
      t.scale = 1.0 / 64;
      break;
    case OperationKind::MeanSquare:
    case OperationKind::SumSquare:
      t.columns.push_back(t.op.columns);
      t.scale = kind == OperationKind::MeanSquare ? 1.0 / 64 : 1;
      break;
    default:
      throw InternalError("no shapes are drawn for " + std::string(to_text(kind)));
  }
  t.name = to_text(t.op) + ", " + std::to_string(t.samples) + " samples";
  return t;
}

/// Every kind that the real backends compute, without the data of a task.
inline std::vector<OperationKind> kinds_with_kernels() {
  std::vector<OperationKind> kinds;
  for (int kind = 1; kind <= static_cast<int>(OperationKind::SumSquare); ++kind)
    if (real::has_kernel({.kind = static_cast<OperationKind>(kind)})) kinds.push_back(static_cast<OperationKind>(kind));
  return kinds;
}

/// Each kind often, and the shapes of the tests of the CPU.
inline std::vector<Trial> many_trials() {
  Rng rng(11, "odd shapes");
  std::vector<Trial> trials = real_trials();
  for (const OperationKind kind : kinds_with_kernels())
    for (int i = 0; i < 6; ++i) trials.push_back(drawn_trial(kind, rng));
  return trials;
}

}  // namespace stagecraft::test
