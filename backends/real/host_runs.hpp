#pragma once

#include <functional>

#include "backends/real/clocks.hpp"
#include "backends/real/layer_runs.hpp"

namespace stagecraft::real {

/// Times operations on the clock of the host.
class HostStopwatch : public Stopwatch {
 public:
  explicit HostStopwatch(std::size_t nodes) : times(nodes) {}
  void start(LayerPass part, std::size_t node) override {
    part_ = part, node_ = node;
    since_ = steady_seconds();
  }
  void stop() override { times.seconds_of(part_, node_) += steady_seconds() - since_; }

  NodeTimes times;

 protected:
  LayerPass part_ = LayerPass::Forward;  ///< The operation that runs.
  std::size_t node_ = 0;

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

/// Calls work(thread) on that number of threads at the same time, on the processors of a real run. Throws what the
/// first of them that failed threw, after all have ended.
void on_threads(int threads, const std::function<void(int thread)>& work);

/// Calls once(thread, counts) on threads that begin each run together, so that each is measured in the company of the
/// others: on the processors of a real run, for these seconds, and as often as the constants of layer_runs.hpp say.
/// They meet once for each `block` of runs: members of a group wait for each other inside of the runs anyway. Where a
/// thread throws, let_go() ends the waits of the others inside of their runs, and the exception is thrown.
void repeat_together(int threads, double seconds, const std::function<void(int thread, bool counts)>& once,
                     int block = 1, const std::function<void()>& let_go = {});

}  // namespace stagecraft::real
