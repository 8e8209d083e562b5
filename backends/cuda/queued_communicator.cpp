// Exchanges between the virtual devices of a group inside of an instruction: the last member that comes enqueues the
// work for all.

#include "backends/cuda/queued_communicator.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace stagecraft::cuda {
namespace {

using real::Tensor;
using Sizes = std::span<const std::int64_t>;

class QueuedCommunicator final : public real::GroupCommunicator {
 public:
  QueuedCommunicator(GpuRuntime& runtime, CooperativeThreads& threads, QueuedGroup group, GroupCarrier carry)
      : runtime_(runtime),
        threads_(threads),
        group_(std::move(group)),
        carry_(std::move(carry)),
        arrivals_(group_.devices.size()) {
    for (int r = 0; r < size(); ++r)
      if (here(r)) ranks_here_.push_back(r);
    for (const int to : ranks_here_)
      for (int from = 0; from < size(); ++from) all_read_ = all_read_ && reads(to, from);
  }

  int size() const override { return static_cast<int>(group_.devices.size()); }

  void exchange(int rank, const Tensor& array, std::size_t width, const UseArrays& use) override {
    exchange_parts(rank, array, width, std::vector<std::int64_t>(group_.devices.size(), array.size()), use);
  }

  void exchange_parts(int rank, const Tensor& array, std::size_t width, Sizes sizes, const UseArrays& use) override {
    arrivals_[rank] = {array, &use, end_of(rank)};
    if (++arrived_ < ranks_here_.size()) return threads_.pause();
    arrived_ = 0;
    wait_for_others();
    const std::vector<Staged> staged = stage(width, sizes);
    for (const int r : ranks_here_) {
      runtime_.queues().select(queue(r));
      (*arrivals_[r].use)(arrays_for(r, staged));
      for (const Staged& s : staged)
        if (s.to == r && s.array) runtime_.give(group_.devices[r], s.array.data);
      arrivals_[r].end = end_of(r);
    }
    wait_for_others();
    runtime_.queues().select(queue(rank));
    for (const int r : ranks_here_)
      if (r != rank) threads_.release(group_.devices[r]);
  }

  /// Through the memory of the GPUs where not all members read each other's; the counts come first.
  void exchange_on_host(int rank, HostNumbers numbers, const UseNumbers& use) override {
    if (all_read_) return GroupCommunicator::exchange_on_host(rank, numbers, use);
    const auto count = static_cast<std::int32_t>(numbers.size());
    const std::vector<std::int32_t> counts =
        gathered(rank, {&count, 1}, std::vector<std::int64_t>(group_.devices.size(), 1));
    const std::vector<std::int32_t> joined = gathered(rank, numbers, {counts.begin(), counts.end()});
    std::vector<HostNumbers> of_members;
    for (const std::int32_t* begin = joined.data(); const std::int32_t n : counts) {
      of_members.emplace_back(begin, static_cast<std::size_t>(n));
      begin += n;
    }
    use(of_members);
  }

 private:
  struct Arrival {
    Tensor array;
    const UseArrays* use = nullptr;
    Point end;  ///< The end of what the member has enqueued so far.
  };
  /// The copy of an array for a member here that cannot read it.
  struct Staged {
    int from, to;
    Tensor array;
  };

  bool here(int rank) const { return group_.devices[rank] >= 0; }
  bool reads(int rank, int other) const {
    return here(other) && runtime_.devices().reaches(group_.devices[rank], group_.devices[other]);
  }
  int queue(int rank) const { return runtime_.used(group_.devices[rank]); }
  cudaStream_t stream(int rank) const { return runtime_.queues().stream(queue(rank)); }
  Point end_of(int rank) { return runtime_.queues().end(queue(rank), nullptr); }

  /// A member writes over its array when the others have read it, so they are waited for on both sides of an exchange.
  void wait_for_others() {
    for (const int r : ranks_here_) {
      runtime_.queues().select(queue(r));
      for (const int other : ranks_here_) runtime_.queues().wait(queue(r), arrivals_[other].end);
    }
  }

  /// Brings the arrays that members here cannot read to their memory. The order of the messages is the same in all
  /// processes: by sender, then by receiver.
  std::vector<Staged> stage(std::size_t width, Sizes sizes) {
    std::vector<Staged> staged;
    std::vector<MessageEnd> ends;
    for (int from = 0; from < size() && !all_read_; ++from)
      for (int to = 0; to < size(); ++to) {
        const std::size_t bytes = static_cast<std::size_t>(sizes[from]) * width;
        if (here(from) && !here(to))
          ends.push_back(
              {group_.members[from], group_.members[to], arrivals_[from].array.data, bytes, true, stream(from)});
        if (!here(to) || reads(to, from)) continue;
        void* const copy = bytes > 0 ? memory_of(to, bytes) : nullptr;
        staged.push_back({from, to, like(arrivals_[to].array, copy, sizes[from])});
        if (!here(from))
          ends.push_back({group_.members[to], group_.members[from], copy, bytes, false, stream(to)});
        else if (copy)
          runtime_.copy_between(queue(to), group_.devices[from], group_.devices[to], arrivals_[from].array.data, copy,
                                bytes);
      }
    if (!ends.empty()) carry(ends);
    return staged;
  }

  void* memory_of(int rank, std::size_t bytes) {
    runtime_.queues().select(queue(rank));
    return runtime_.take(group_.devices[rank], bytes);
  }

  static Tensor like(const Tensor& array, void* data, std::int64_t numbers) {
    const bool is_whole = array.size() == numbers;
    return {data, is_whole ? array.rows : 1, is_whole ? array.columns : numbers, array.is_wide};
  }

  void carry(const std::vector<MessageEnd>& ends) {
    carry_(ends);
    if (runtime_.recorder()) return;
    for (const int r : ranks_here_) {
      runtime_.queues().select(queue(r));
      submitted_event(stream(r));
    }
  }

  std::vector<Tensor> arrays_for(int rank, const std::vector<Staged>& staged) const {
    std::vector<Tensor> arrays;
    for (const Arrival& a : arrivals_) arrays.push_back(a.array);
    for (const Staged& s : staged)
      if (s.to == rank) arrays[s.from] = s.array;
    return arrays;
  }

  /// The numbers of all members one after the other, of which each brings as many as `sizes` has. Copies from and to
  /// the host may block in the driver until the queue is empty, so that is waited for before.
  std::vector<std::int32_t> gathered(int rank, HostNumbers numbers, const std::vector<std::int64_t>& sizes) {
    constexpr std::size_t kWidth = sizeof(std::int32_t);
    std::vector<std::int32_t> joined(
        static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})));
    runtime_.finish(queue(rank));
    auto* const sent = static_cast<std::int32_t*>(memory_of(rank, std::max(numbers.size_bytes(), kWidth)));
    auto* const on_gpu = static_cast<std::int32_t*>(memory_of(rank, std::max(joined.size(), std::size_t{1}) * kWidth));
    copy(rank, numbers.data(), sent, numbers.size(), cudaMemcpyHostToDevice);
    exchange_parts(rank, {sent, 1, std::ssize(numbers)}, kWidth, sizes, [&](std::span<const Tensor> arrays) {
      for (std::int32_t* to = on_gpu; const Tensor& from : arrays) {
        copy(rank, static_cast<const std::int32_t*>(from.data), to, from.size(), cudaMemcpyDeviceToDevice);
        to += from.size();
      }
    });
    runtime_.finish(queue(rank));
    copy(rank, on_gpu, joined.data(), joined.size(), cudaMemcpyDeviceToHost);
    runtime_.finish(queue(rank));
    for (void* const memory : {sent, on_gpu}) runtime_.give(group_.devices[rank], memory);
    return joined;
  }

  void copy(int rank, const std::int32_t* from, std::int32_t* to, std::size_t count, cudaMemcpyKind kind) {
    if (count == 0) return;
    check(cudaMemcpyAsync(to, from, count * sizeof *from, kind, stream(rank)), "cudaMemcpyAsync");
    submitted(stream(rank), "cudaMemcpyAsync");
  }

  GpuRuntime& runtime_;
  CooperativeThreads& threads_;
  QueuedGroup group_;
  GroupCarrier carry_;
  std::vector<int> ranks_here_;
  bool all_read_ = true;  ///< Every member here reads the arrays of all members.
  std::vector<Arrival> arrivals_;
  std::size_t arrived_ = 0;
};

}  // namespace

std::unique_ptr<real::GroupCommunicator> queued_communicator(GpuRuntime& runtime, CooperativeThreads& threads,
                                                             QueuedGroup group, GroupCarrier carry) {
  return std::make_unique<QueuedCommunicator>(runtime, threads, std::move(group), std::move(carry));
}

}  // namespace stagecraft::cuda
