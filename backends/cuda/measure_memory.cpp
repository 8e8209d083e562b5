#include "backends/cuda/measure_memory.hpp"

#include <algorithm>
#include <deque>

#include "backends/cuda/capture.hpp"
#include "backends/real/layer_runs.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::cuda {
namespace {

/// The rows that one part adds to others, from b to a: a is read and written, b is read.
class Sum {
 public:
  Sum(Yard& yard, int device, std::size_t bytes)
      : kernels_(queue_kernels(yard, device)),
        bytes_(bytes),
        a_(kernels_->allocate(bytes)),
        b_(kernels_->allocate(bytes)) {
    for (void* row : {a_, b_}) kernels_->zero(row, bytes);
  }
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;
  ~Sum() {
    kernels_->release(a_, bytes_);
    kernels_->release(b_, bytes_);
  }

  void times(int count) {
    const auto numbers = static_cast<std::int64_t>(bytes_ / kernels_->width());
    for (int i = 0; i < count; ++i) kernels_->add({b_, 1, numbers}, {a_, 1, numbers});
  }

 private:
  std::unique_ptr<real::Kernels> kernels_;
  std::size_t bytes_;
  void *a_, *b_;
};

/// What the parts that are busy read and write in a second, together: the median of some rounds. Work that nobody looks
/// at goes before and behind, so that all are busy while they are looked at.
Bandwidth bandwidth_of(Yard& yard, int busy, std::size_t bytes) {
  constexpr int kRounds = 5, kSums = 8;
  std::vector<std::unique_ptr<Sum>> sums;
  for (int d = 0; d < busy; ++d) sums.push_back(std::make_unique<Sum>(yard, d, bytes));
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    std::deque<Event> begins, ends;
    for (int d = 0; d < busy; ++d) {
      Sum& sum = *sums[d];
      const int queue = yard.compute_queue(d);
      sum.times(kSums / 2);
      yard.queues().select(queue);
      begins.emplace_back(cudaEventDefault).record(yard.queues().stream(queue));
      sum.times(kSums);
      ends.emplace_back(cudaEventDefault).record(yard.queues().stream(queue));
      sum.times(kSums / 2);
    }
    yard.finish();
    double rate = 0;
    for (int d = 0; d < busy; ++d) {
      const auto i = static_cast<std::size_t>(d);
      rate += 3.0 * kSums * static_cast<double>(bytes) / std::max(1e-9, 1e-3 * ends[i].milliseconds_since(begins[i]));
    }
    rates.push_back(rate);
  }
  return Bandwidth{median(rates)};
}

}  // namespace

MeasuredGpu measure_gpu(Yard& yard) {
  const VirtualDevices& devices = yard.devices();
  cudaDeviceProp gpu{};
  check(cudaGetDeviceProperties(&gpu, devices.gpu(0)), "cudaGetDeviceProperties");
  // Two rows of twice the level-two cache each, so that little of them is found there.
  const std::size_t bytes = std::max(std::size_t{1} << 18, 2 * static_cast<std::size_t>(std::max(0, gpu.l2CacheSize)));
  MeasuredGpu measured;
  measured.multiprocessors = gpu.multiProcessorCount;
  measured.group = devices.group();
  measured.parts = devices.count();
  measured.part = devices.multiprocessors(0);
  measured.memory_alone = bandwidth_of(yard, 1, bytes);
  // One part alone was seen to get as much, however little all get together.
  measured.memory = std::max(measured.memory_alone, bandwidth_of(yard, devices.count(), bytes));
  return measured;
}

}  // namespace stagecraft::cuda
