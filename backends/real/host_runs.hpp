#pragma once

#include <functional>
#include <utility>

#include "backends/real/clocks.hpp"
#include "backends/real/layer_runs.hpp"

namespace stagecraft::real {

/// Times operations on the clock of the host.
class HostStopwatch : public Stopwatch {
 public:
  explicit HostStopwatch(std::size_t nodes) : times(nodes) {}
  void start(LayerPass part, std::size_t node) override {
    part_ = part;
    sum_ = &times.seconds_of(part, node);
    since_ = steady_seconds();
  }
  void stop() override { *std::exchange(sum_, nullptr) += steady_seconds() - since_; }

  NodeTimes times;

 protected:
  LayerPass part_ = LayerPass::Forward;
  double* sum_ = nullptr;  ///< Where the time of the operation goes that runs; null between two.

 private:
  double since_ = 0;
};

/// Drives arrays out of the caches, as the forwards and backwards of an iteration do between two updates.
class CacheFlush {
 public:
  explicit CacheFlush(std::size_t bytes) : numbers_(bytes, 0) {}
  void operator()() {
    constexpr std::size_t kLine = 64;
    for (std::size_t i = 0; i < numbers_.size(); i += kLine) ++numbers_[i];
  }

 private:
  std::vector<char> numbers_;
};

/// What an iteration touches between two updates, as far as that matters.
std::size_t touched_bytes(const ProfileRequest&);

/// Calls work(thread) on that number of threads at the same time, on the processors of a real run.
void on_threads(int threads, const std::function<void(int thread)>& work);

/// Calls once(thread, counts) on threads that begin each run together, so that each is measured in the company of the
/// others: on the processors of a real run, for these seconds, and as often as the constants of layer_runs.hpp say.
/// They meet once for each `block` of runs: members of a group wait for each other inside of the runs anyway.
void repeat_together(int threads, double seconds, const std::function<void(int thread, bool counts)>& once,
                     int block = 1);

}  // namespace stagecraft::real
