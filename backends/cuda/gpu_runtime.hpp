#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backends/cuda/arena.hpp"
#include "backends/cuda/driver.hpp"
#include "backends/cuda/launch_limit.hpp"
#include "backends/cuda/virtual_devices.hpp"
#include "backends/real/kernels.hpp"

namespace stagecraft::cuda {

/// Makes the arithmetic of one stream; `width` is the bytes of a number.
using KernelMaker = std::function<std::unique_ptr<real::Kernels>(cudaStream_t, int multiprocessors, std::size_t width)>;

/// The streams and memories of all virtual devices of a run, and which stream each device works on at the moment. A
/// queue is the number of a stream.
class GpuRuntime {
 public:
  /// `gpus`: as VirtualDevices have it.
  GpuRuntime(int devices, KernelMaker, std::size_t width, bool fills_new_memory, std::vector<int> gpus = {});
  GpuRuntime(const GpuRuntime&) = delete;
  GpuRuntime& operator=(const GpuRuntime&) = delete;
  ~GpuRuntime();

  VirtualDevices& devices() { return devices_; }
  const VirtualDevices& devices() const { return devices_; }
  Queues& queues() { return queues_; }
  std::size_t width() const { return width_; }
  std::size_t wide_width() const { return real::wide_width(width_); }  ///< Bytes of a number of weight gradients.
  Arena& arena(int device) { return arenas_[device]; }

  int new_queue(int device, bool for_messages);
  int compute_queue(int device) const { return device; }
  /// Kernels of the stream, made on first use. While a recorder is set, they write to it.
  real::Kernels& kernels(int queue);
  /// Records work instead of enqueuing it, until null is passed. All work enqueued earlier must end before the work
  /// that follows the recorded commands.
  void write_to(CommandRecorder*);
  CommandRecorder* recorder() { return recorder_; }

  /// From now on work of the device goes to this queue, which may be another device's.
  void use(int device, int queue) { used_[device] = queue; }
  int used(int device) const { return used_[device]; }

  /// `on_host`: in pinned memory of the host, next to the device's own.
  void* take(int device, std::size_t bytes, bool on_host = false);
  void give(int device, void*);
  bool is_on_host(int device, const void* inside) const { return host_arenas_[device].holds(inside); }
  /// Copies on this queue from pinned memory of the host to the device, or back with `to_host`.
  void copy_with_host(int queue, bool to_host, const void* data, void* target, std::size_t bytes);
  /// Makes the queue wait for all work that still uses the memory at this address, of whichever device.
  void wait_for_users(int queue, const void* inside);
  /// Marks the memory at this address as used by what the queue enqueues now: it is not reused before that
  /// is over.
  void hold(int queue, const void* inside);
  /// Sets how everything below waits; by default at most five minutes.
  void wait_by(WaitPolicy policy) {
    launch_limit_.wait_by(policy);
    wait_policy_ = std::move(policy);
  }
  /// Limits the work of all queues while a LimitedLaunches makes it the limit of the thread.
  LaunchLimit& launch_limit() { return launch_limit_; }
  const LaunchLimit& launch_limit() const { return launch_limit_; }
  /// Copies from the memory of one device to another one's on this queue, also where neither reaches the other.
  void copy_between(int queue, int from, int to, const void* data, void* target, std::size_t bytes);
  void finish(int queue);
  void finish();  ///< All queues.
  /// Whether all queues are empty within `seconds`: only then can anything be given back. Later waits have this limit,
  /// too.
  bool finishes_within(double seconds) noexcept;
  /// From now on nothing waits for what was enqueued so far.
  void forget();
  /// The layout of all memory, as Arena has it.
  std::vector<std::uint64_t> layout() const;
  /// From now on devices count the steps of Adam themselves, at most `max_steps` of each stage.
  void count_steps(int max_steps) { most_steps_ = max_steps; }
  int most_steps() const { return most_steps_; }  ///< 0: the host passes the step.
  /// From now on takes more memory from the GPUs only when nothing fits.
  void stop_growing();
  std::size_t reserved() const;  ///< Bytes taken from the GPUs.

 private:
  void* more(int device, std::size_t bytes);
  void* more_on_host(std::size_t bytes);
  [[noreturn]] void refuse_memory(int device, std::size_t bytes, bool on_host) const;

  VirtualDevices devices_;
  KernelMaker maker_;
  std::size_t width_;
  bool fills_;
  Queues queues_;
  std::vector<int> device_of_;                                       ///< Indexed by queue.
  std::vector<std::unique_ptr<real::Kernels>> kernels_, recording_;  ///< Indexed by queue.
  CommandRecorder* recorder_ = nullptr;
  std::vector<Arena> arenas_, host_arenas_;  ///< Indexed by device.
  std::vector<void*> blocks_, host_blocks_;
  std::vector<int> used_;
  WaitPolicy wait_policy_ = at_most(300);
  LaunchLimit launch_limit_;
  int most_steps_ = 0;
};

/// The kernels of a device, on whichever stream it works at the moment, in the memory of the runtime: on the device or,
/// for what is only copied, on its host.
std::unique_ptr<real::Kernels> queue_kernels(GpuRuntime&, int device, bool on_host = false);

}  // namespace stagecraft::cuda
