#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "backends/real/gradient_buckets.hpp"
#include "backends/real/program_executor.hpp"
#include "backends/real/transport.hpp"
#include "sim/cluster/conditions.hpp"
#include "sim/program/timeline.hpp"

namespace stagecraft::real {

/// Sleeps where it should compute, and moves as many bytes as the messages have. Collectives that are folded into one
/// instruction move the bytes of all of them at once.
///
/// An op sleeps until its duration after it was due to begin: when the last of what it waits for was due to end, for
/// ops of its device, or has ended, for messages. So a sleep that ends late does not make the next one end late. With
/// a dilation all sleeps take that many times as long. `Conditions` says what changes and jitter of the cluster do.
class Emulation : public Actions, public RemoteBuffers {
 public:
  Emulation(const Program&, const Cluster&, double dilation = 1);

  void compute(InstructionId) override;
  void follow_times(const Times& times) override { times_ = &times; }
  void when_part_done(PartDone call) override { part_done_ = std::move(call); }
  void interrupt() override;
  void carry(int transfer) override { move(p_.bytes(p_.transfers[transfer])); }
  void collective(int index) override;

  std::size_t bytes(int transfer) const override { return p_.bytes(p_.transfers[transfer]); }
  void pack(int transfer, void* into) override;
  void unpack(int, const void*) override {}
  std::size_t share_bytes(InstructionId member) override;
  void pack_share(InstructionId member, void* into) override;
  void finish(int index, std::span<const void* const>) override { collective(index); }
  std::size_t number_bytes(int) const override { return 1; }
  void add_up(int index, std::span<const void* const> parts, std::size_t bytes, void* sum) override;
  void finish_sum(int index, const void*) override { move(array_bytes(p_.collectives[index])); }

  /// Seconds from when each sleep here was due to end until it ended.
  std::vector<double> lateness() const;

 private:
  double due_to_begin(InstructionId) const;
  double due_to_end(InstructionId, double begin, double share) const;
  void sleep_until(double seconds);
  std::uint64_t array_bytes(const CollectiveCall&) const;
  void move(std::uint64_t bytes) const;

  const Program& p_;
  const Cluster& cluster_;
  Conditions conditions_;
  double dilation_;
  GradientBuckets buckets_;
  PartDone part_done_;
  const Times* times_ = nullptr;
  IdVector<InstructionId, double> due_, late_;  ///< Ends of ops on the steady clock, and what they were late by.
  std::vector<char> from_;
  mutable std::atomic<char> sink_{0};  ///< Keeps the compiler from leaving out the copies.
  std::mutex mutex_;
  std::condition_variable interruption_;
  bool interrupted_ = false;
};

}  // namespace stagecraft::real
