#include "backends/cuda/queued_communicator.hpp"

#include <fmt/core.h>

namespace stagecraft::cuda {
namespace {

class QueuedCommunicator final : public real::GroupCommunicator {
 public:
  QueuedCommunicator(GpuRuntime& runtime, MemberThreads& threads, std::vector<int> devices)
      : runtime_(runtime), threads_(threads), devices_(std::move(devices)), arrivals_(devices_.size()) {}

  int size() const override { return static_cast<int>(devices_.size()); }

  void exchange(int rank, const real::Tensor& array, std::size_t,
                const std::function<void(std::span<const real::Tensor>)>& use) override {
    arrivals_[rank] = {array, &use, end_of(rank)};
    if (++arrived_ < size()) return threads_.pause();
    arrived_ = 0;
    wait_for_others();
    std::vector<real::Tensor> arrays;
    for (const Arrival& a : arrivals_) arrays.push_back(a.array);
    for (int r = 0; r < size(); ++r) {
      runtime_.queues().select(queue(r));
      (*arrivals_[r].use)(arrays);
      arrivals_[r].end = end_of(r);
    }
    wait_for_others();
    runtime_.queues().select(queue(rank));
    for (int r = 0; r < size(); ++r)
      if (r != rank) threads_.release(devices_[r]);
  }

 private:
  struct Arrival {
    real::Tensor array;
    const std::function<void(std::span<const real::Tensor>)>* use = nullptr;
    Point end;  ///< The end of what the member has enqueued so far.
  };

  int queue(int rank) const { return runtime_.used(devices_[rank]); }
  Point end_of(int rank) { return runtime_.queues().end(queue(rank), nullptr); }

  /// A member writes over its array when the others have read it, so they are waited for on both sides of an exchange.
  void wait_for_others() {
    for (int r = 0; r < size(); ++r) {
      runtime_.queues().select(queue(r));
      for (const Arrival& other : arrivals_) runtime_.queues().wait(queue(r), other.end);
    }
  }

  GpuRuntime& runtime_;
  MemberThreads& threads_;
  std::vector<int> devices_;
  std::vector<Arrival> arrivals_;
  int arrived_ = 0;
};

}  // namespace

std::unique_ptr<real::GroupCommunicator> queued_communicator(GpuRuntime& runtime, MemberThreads& threads,
                                                             std::vector<int> devices) {
  for (const int a : devices)
    for (const int b : devices)
      if (!runtime.devices().reaches(a, b))
        throw BackendError(
            fmt::format("GPU {} cannot reach the memory of GPU {}, which devices of a group read: fewer "
                        "devices in a group, or --backend cpu",
                        runtime.devices().gpu(a), runtime.devices().gpu(b)));
  return std::make_unique<QueuedCommunicator>(runtime, threads, std::move(devices));
}

}  // namespace stagecraft::cuda
