// The kernels of the CPU backend against bare Eigen on the same shapes with the same flags: matrix products of Linear,
// then what the other kernels cost for each number. Both sides take turns; medians of thread CPU time. First touches of
// memory are paid before.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include <fmt/core.h>
#include <Eigen/Core>

#include "backends/cpu/kernels.hpp"
#include "sim/core/numbers.hpp"

using namespace stagecraft;

namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Median seconds of each side; the sides take turns for about `budget` seconds.
std::vector<double> medians(const std::vector<std::function<void()>>& sides, double budget = 0.6) {
  std::vector<std::vector<double>> seconds(sides.size());
  for (const auto& side : sides) side();
  for (const double end = cpu_seconds() + budget; cpu_seconds() < end || seconds[0].size() < 5;)
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const double start = cpu_seconds();
      sides[i]();
      seconds[i].push_back(cpu_seconds() - start);
    }
  std::vector<double> result;
  for (const auto& s : seconds) result.push_back(median(s));
  return result;
}

/// A tensor of the kernels with numbers between -1 and 1.
template <class T>
real::Tensor filled(real::Kernels& kernels, std::int64_t rows, std::int64_t columns) {
  auto* const data = static_cast<T*>(kernels.allocate(static_cast<std::size_t>(rows * columns) * sizeof(T)));
  for (std::int64_t i = 0; i < rows * columns; ++i) data[i] = static_cast<T>(i * 7919 % 2048 - 1024) / 1024;
  return {data, rows, columns};
}

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
void linear(int rows, int inner, int columns) {
  const auto kernels = cpu::make_kernels(sizeof(T));
  Operation op;
  op.kind = OperationKind::Linear;
  op.rows = rows, op.columns = columns, op.inner = inner;
  const std::int64_t weights = real::blocks(op, sizeof(T)).total;
  const real::Tensor inputs[] = {filled<T>(*kernels, rows, inner)};
  const real::Tensor d_output = filled<T>(*kernels, rows, columns), d_weights = filled<T>(*kernels, 1, weights);
  const std::vector<real::Gradient> d_inputs = {{filled<T>(*kernels, rows, inner), false}};
  real::Call call;
  call.operation = &op;
  call.inputs = inputs;
  call.weights = filled<T>(*kernels, 1, weights).data;
  call.output = filled<T>(*kernels, rows, columns);

  const Matrix<T> x = Matrix<T>::Random(rows, inner), w = Matrix<T>::Random(columns, inner);
  const Matrix<T> dy = Matrix<T>::Random(rows, columns);
  Matrix<T> y = dy, dx = x, dw = w;
  const std::vector<double> s = medians(
      {[&] { kernels->forward(call); }, [&] { y.noalias() = x * w.transpose(); },
       [&] { kernels->input_gradient(call, d_output, d_inputs); }, [&] { dx.noalias() = dy * w; },
       [&] { kernels->weight_gradient(call, d_output, d_weights.data); }, [&] { dw.noalias() += dy.transpose() * x; }},
      2);
  const char* const names[] = {"forward", "input gradient", "weight gradient"};
  for (std::size_t i = 0; i < 3; ++i)
    fmt::print("{:<7}{:>4} x {:>4} x {:>4}  {:<16}{:>8.1f}{:>8.1f}{:>7.2f}\n", sizeof(T) == 4 ? "float" : "double",
               rows, inner, columns, names[i], 2e-9 * rows * inner * columns / s[2 * i],
               2e-9 * rows * inner * columns / s[2 * i + 1], s[2 * i + 1] / s[2 * i]);
}

Operation operation(OperationKind kind, int rows, int columns) {
  Operation op;
  op.kind = kind;
  op.rows = rows, op.columns = columns;
  if (kind == OperationKind::Attention) op.heads = columns / 64;
  return op;
}

template <class T>
void others(const Operation& op, std::int64_t samples) {
  const auto kernels = cpu::make_kernels(sizeof(T));
  const std::int64_t rows = samples * op.rows,
                     width = op.kind == OperationKind::Attention ? 3 * op.columns : op.columns;
  const real::Tensor inputs[] = {filled<T>(*kernels, rows, width)};
  const real::Tensor d_output = filled<T>(*kernels, rows, op.columns);
  const std::vector<real::Gradient> d_inputs = {{filled<T>(*kernels, rows, width), false}};
  real::Call call;
  call.operation = &op;
  call.samples = samples;
  call.inputs = inputs;
  call.weights = filled<T>(*kernels, 1, 3 * op.columns).data;
  call.output = filled<T>(*kernels, rows, op.columns);
  call.saved = filled<T>(*kernels, samples, std::max<std::int64_t>(real::keeps(op).numbers, 1));
  const std::vector<double> s =
      medians({[&] { kernels->forward(call); }, [&] { kernels->input_gradient(call, d_output, d_inputs); }});
  const double numbers = 1e-9 * static_cast<double>(rows) * op.columns;
  fmt::print("{:<7}{:<34}{:>8.2f}{:>10.2f}\n", sizeof(T) == 4 ? "float" : "double", to_text(op), s[0] / numbers,
             s[1] / numbers);
}

template <class T>
void all_linear() {
  linear<T>(128, 512, 512);
  linear<T>(256, 512, 2048);
  linear<T>(256, 2048, 512);
  linear<T>(64, 1024, 1024);
  linear<T>(32, 64, 64);
}

template <class T>
void all_others() {
  for (const OperationKind kind : {OperationKind::Relu, OperationKind::Tanh, OperationKind::Gelu,
                                   OperationKind::LayerNorm, OperationKind::Attention})
    others<T>(operation(kind, 128, 512), 2);
}

}  // namespace

int main() {
  fmt::print("rows x inner x columns     GFLOP/s:           ours   Eigen  ratio\n");
  all_linear<float>();
  all_linear<double>();
  fmt::print("\nns for each number of the output           forward  backward\n");
  all_others<float>();
  all_others<double>();
}
