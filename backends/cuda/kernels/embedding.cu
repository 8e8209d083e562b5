#include <cmath>
#include <limits>

#include "backends/cuda/kernels/each.hpp"
#include "backends/cuda/kernels/rows.hpp"

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

constexpr unsigned kWordThreads = 128;

/// The block of the first row with a word adds all rows with that word, in their order; the others have nothing to do.
/// Threads compare one row each, so a row is compared once by the block and not once for each column.
template <class T>
__global__ void words_kernel(std::int64_t rows, std::int64_t columns, Vocabulary vocabulary, const Wide<T>* input,
                             const T* gradient, Wide<T>* d_words) {
  const auto shared = shared_memory<int>();  // Whether each row of a tile has the word, which do, and how many.
  const unsigned list = kWordThreads, count = 2 * kWordThreads;
  const std::int64_t row = blockIdx.x, word = vocabulary.place(input[row]);
  int seen_before = word < 0;
  for (std::int64_t earlier = threadIdx.x; earlier < row && !seen_before; earlier += blockDim.x)
    seen_before = input[earlier] == input[row];
  if (joined(seen_before, shared, Larger<int>{})) return;
  for (std::int64_t tile = row; tile < rows; tile += blockDim.x) {
    const std::int64_t mine = tile + threadIdx.x;
    const int has_word = mine < rows && input[mine] == input[row];
    shared[threadIdx.x] = has_word;
    __syncthreads();
    const bool counts = threadIdx.x + 1 == blockDim.x;
    int before = 0;
    if (has_word || counts)
      for (unsigned t = 0; t < threadIdx.x; ++t) before += shared[t];
    if (has_word) shared[list + before] = static_cast<int>(threadIdx.x);
    if (counts) shared[count] = before + has_word;
    __syncthreads();
    for (std::int64_t column = threadIdx.x; column < columns && shared[count] > 0; column += blockDim.x) {
      Wide<T> sum = d_words[word * columns + column];
      for (int n = 0; n < shared[count]; ++n) sum += gradient[(tile + shared[list + n]) * columns + column];
      d_words[word * columns + column] = sum;
    }
    __syncthreads();
  }
}

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
  launch(words_kernel<T>, dim3(static_cast<unsigned>(rows)), dim3(kWordThreads), (2 * kWordThreads + 1) * sizeof(int),
         device.stream, rows, columns, Vocabulary(call), numbers<Wide<T>>(call.inputs[0]), gradient, d_words);
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
