// Embeddings of words, with or without learned positions: forward, and the gradients of their tables, added in a fixed
// order.

#include <cmath>
#include <limits>

#include "backends/cuda/kernels/each.hpp"

namespace stagecraft::cuda {
namespace {

/// The words of all devices, and those that are here.
struct Vocabulary {
  std::int64_t total = 0, first = 0, here = 0;
  explicit Vocabulary(const real::Call& call)
      : total(call.words > 0 ? call.words : call.operation->inner),
        first(call.first_word),
        here(call.operation->inner) {}

  template <class T>
  __device__ bool knows(T number) const {
    return number >= 0 && number < static_cast<T>(total) && number == std::floor(number);
  }
  /// Its place among the words that are here; -1: it is not here.
  template <class T>
  __device__ std::int64_t place(T number) const {
    if (!knows(number)) return -1;
    const std::int64_t word = static_cast<std::int64_t>(number) - first;
    return word >= 0 && word < here ? word : -1;
  }
};

/// A word that is not known makes its row NaN; one that another device has leaves the position, if that is here.
template <class T>
struct Embed {
  const Wide<T>* input;
  const T *words, *positions;  ///< From the first row on that is here; null: another device has them.
  Vocabulary vocabulary;
  std::int64_t rows, columns;
  T* to;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t word = vocabulary.place(input[row]);
    Wide<T> sum = 0;
    if (!vocabulary.knows(input[row])) sum = std::numeric_limits<Wide<T>>::quiet_NaN();
    if (word >= 0) sum = words[word * columns + column];
    if (positions) sum += positions[row % rows * columns + column];
    to[row * columns + column] = static_cast<T>(sum);
  }
};

template <class T>
struct PlaceWords {
  Vocabulary vocabulary;
  const T* input;
  int* places;
  __device__ void operator()(std::int64_t row) const { places[row] = static_cast<int>(vocabulary.place(input[row])); }
};

/// Sorts rows by their words; rows with one word stay in their order. Each row counts those before it, in parallel: for
/// the thousands of rows of a micro-batch that takes a GPU less than the passes of a radix sort.
struct SortRows {
  std::int64_t rows;
  const int* places;
  int* sorted;
  __device__ void operator()(std::int64_t row) const {
    const int word = places[row];
    int before = 0;
    for (std::int64_t other = 0; other < rows; ++other)
      before += places[other] < word || (places[other] == word && other < row);
    sorted[before] = static_cast<int>(row);
  }
};

/// The first of the sorted rows with a word adds them all, in their order; the others have nothing to do.
template <class T>
struct AddWords {
  std::int64_t rows, columns;
  const int *places, *sorted;
  const T* gradient;
  Wide<T>* d_words;
  __device__ void operator()(std::int64_t n, std::int64_t column) const {
    const int word = places[sorted[n]];
    if (word < 0 || (n > 0 && places[sorted[n - 1]] == word)) return;
    Wide<T>& place = d_words[word * columns + column];
    Wide<T> sum = place;
    for (; n < rows && places[sorted[n]] == word; ++n) sum += gradient[sorted[n] * columns + column];
    place = sum;
  }
};

/// Adds all samples of one position, in their order.
template <class T>
struct AddPositions {
  std::int64_t samples, numbers;  ///< `numbers`: in one sample.
  const T* gradient;
  Wide<T>* d_positions;
  __device__ void operator()(std::int64_t i) const {
    Wide<T> sum = d_positions[i];
    for (std::int64_t sample = 0; sample < samples; ++sample) sum += gradient[sample * numbers + i];
    d_positions[i] = sum;
  }
};

/// Positions of the rows of a sample that are here.
template <class T, class Number>
Number* positions_of(const real::Call& call, Number* words) {
  const Operation& op = *call.operation;
  if (!op.positions) return nullptr;
  return words + real::second_block(op, sizeof(T)) + std::int64_t{call.first_row} * op.columns;
}

template <class T>
void forward(const Device& device, const real::Call& call) {
  const Operation& op = *call.operation;
  const T* const words = static_cast<const T*>(call.weights);
  each_in_rows(device, call.output.rows, op.columns,
               Embed<T>{numbers<Wide<T>>(call.inputs[0]), words, positions_of<T>(call, words), Vocabulary(call),
                        call.output.rows / call.samples, op.columns, numbers<T>(call.output)});
}

/// A word is a name: its number has no slope.
template <class T>
void input_gradient(const Device& device, const real::Call&, const real::Tensor&,
                    std::span<const real::Gradient> d_inputs) {
  const real::Gradient& to = d_inputs[0];
  if (to.tensor && !to.add)
    check(cudaMemsetAsync(to.tensor.data, 0, static_cast<std::size_t>(to.tensor.size()) * sizeof(T), device.stream),
          "cudaMemsetAsync");
  submitted(device.stream, "cudaMemsetAsync");
}

template <class T>
void weight_gradient(const Device& device, const real::Call& call, const real::Tensor& d_output, void* d_weights) {
  const Operation& op = *call.operation;
  const std::int64_t rows = d_output.rows, columns = op.columns, numbers_each = columns * rows / call.samples;
  auto* const d_words = static_cast<Wide<T>*>(d_weights);
  const T* const gradient = numbers<T>(d_output);
  const Scratch<int> places(*device.memory, rows), sorted(*device.memory, rows);
  each(device, rows, PlaceWords<Wide<T>>{Vocabulary(call), numbers<Wide<T>>(call.inputs[0]), places.data()});
  each(device, rows, SortRows{rows, places.data(), sorted.data()});
  each_in_rows(device, rows, columns, AddWords<T>{rows, columns, places.data(), sorted.data(), gradient, d_words});
  if (Wide<T>* const d_positions = positions_of<T>(call, d_words))
    each(device, numbers_each, AddPositions<T>{call.samples, numbers_each, gradient, d_positions});
}

}  // namespace

template <class T>
OperationKernels embedding_kernels() {
  return {forward<T>, input_gradient<T>, weight_gradient<T>};
}
template OperationKernels embedding_kernels<float>();
template OperationKernels embedding_kernels<double>();
template OperationKernels embedding_kernels<Bfloat16>();

}  // namespace stagecraft::cuda
