#include <cmath>
#include <limits>

#include "backends/cuda/kernels/each.hpp"
#include "backends/cuda/kernels/rows.hpp"

namespace stagecraft::cuda {
namespace {

/// The word of a row, or -1 when its number is not that of a known one.
template <class T>
__device__ std::int64_t word_of(T number, std::int64_t vocabulary) {
  if (!(number >= 0 && number < static_cast<T>(vocabulary)) || number != std::floor(number)) return -1;
  return static_cast<std::int64_t>(number);
}

/// A word that is not known makes its row NaN.
template <class T>
struct Embed {
  const Wide<T>* input;
  const T *words, *positions;
  std::int64_t vocabulary, rows, columns;
  T* to;
  __device__ void operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t word = word_of(input[row], vocabulary);
    to[row * columns + column] =
        static_cast<T>(word < 0 ? std::numeric_limits<Wide<T>>::quiet_NaN()
                                : words[word * columns + column] + positions[row % rows * columns + column]);
  }
};

constexpr unsigned kWordThreads = 128;

/// The block of the first row with a word adds all rows with that word, in their order; the others have nothing to do.
/// Threads compare one row each, so a row is compared once by the block and not once for each column.
template <class T>
__global__ void words_kernel(std::int64_t rows, std::int64_t columns, std::int64_t vocabulary, const Wide<T>* input,
                             const T* gradient, Wide<T>* d_words) {
  const auto shared = shared_memory<int>();  // Whether each row of a tile has the word, which do, and how many.
  const unsigned list = kWordThreads, count = 2 * kWordThreads;
  const std::int64_t row = blockIdx.x, word = word_of(input[row], vocabulary);
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

template <class T>
void forward(const Device& device, const real::Call& call) {
  const Operation& op = *call.operation;
  const T* const words = static_cast<const T*>(call.weights);
  each_in_rows(device, call.output.rows, op.columns,
               Embed<T>{numbers<Wide<T>>(call.inputs[0]), words, words + real::second_block(op, sizeof(T)), op.inner,
                        op.rows, op.columns, numbers<T>(call.output)});
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
  const std::int64_t rows = call.samples * op.rows, columns = op.columns, numbers_each = columns * op.rows;
  auto* const d_words = static_cast<Wide<T>*>(d_weights);
  const T* const gradient = numbers<T>(d_output);
  launch(words_kernel<T>, dim3(static_cast<unsigned>(rows)), dim3(kWordThreads), (2 * kWordThreads + 1) * sizeof(int),
         device.stream, rows, columns, std::int64_t{op.inner}, numbers<Wide<T>>(call.inputs[0]), gradient, d_words);
  each(device, numbers_each,
       AddPositions<T>{call.samples, numbers_each, gradient, d_words + real::second_block(op, sizeof(T))});
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
