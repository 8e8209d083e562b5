#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "backends/real/device_placement.hpp"
#include "backends/real/program_executor.hpp"

namespace stagecraft::test {

/// What several walks of one process, as if they were processes, have under way between them.
struct MemoryWorld {
  int size = 1;
  std::mutex mutex;
  std::map<int, std::vector<char>> messages, shares;  ///< By transfer; by member.
  std::map<int, bool> taken;                          ///< Transfers.
  std::map<int, std::vector<real::Transport::Pulse>> pulses;
  int lost = -1;  ///< A transfer whose message goes astray.
};

/// A transport through plain memory.
class MemoryTransport : public real::Transport {
 public:
  MemoryTransport(MemoryWorld& world, const Program& p, const real::DevicePlacement& placement,
                  real::RemoteBuffers& buffers)
      : world_(world), p_(p), dealing_(placement), buffers_(buffers) {}

  bool here(DeviceId d) const override { return dealing_.here(d); }

  void send(int transfer) override {
    std::vector<char> bytes(buffers_.bytes(transfer));
    buffers_.pack(transfer, bytes.data());
    const std::lock_guard lock(world_.mutex);
    if (transfer != world_.lost) world_.messages[transfer] = std::move(bytes);
    if (p_.rendezvous) sending_.push_back(transfer);
  }

  void receive(int transfer) override {
    const std::lock_guard lock(world_.mutex);
    receiving_.push_back(transfer);
  }

  void join(int collective, InstructionId member) override {
    std::vector<char> bytes(buffers_.share_bytes(member));
    buffers_.pack_share(member, bytes.data());
    const std::lock_guard lock(world_.mutex);
    world_.shares[member.value] = std::move(bytes);
    if (std::find(reducing_.begin(), reducing_.end(), collective) == reducing_.end()) reducing_.push_back(collective);
  }

  void poll(std::vector<InstructionId>& ended) override {
    const std::lock_guard lock(world_.mutex);
    std::erase_if(receiving_, [&](int t) {
      const auto it = world_.messages.find(t);
      if (it == world_.messages.end()) return false;
      buffers_.unpack(t, it->second.data());
      world_.taken[t] = true;
      ended.push_back(p_.transfers[t].receive);
      return true;
    });
    std::erase_if(sending_, [&](int t) {
      if (!world_.taken[t]) return false;
      ended.push_back(p_.transfers[t].send);
      return true;
    });
    std::erase_if(reducing_, [&](int c) { return add_up(c, ended); });
  }

  std::optional<Pulse> pulse(const Pulse& local) override {
    const std::lock_guard lock(world_.mutex);
    auto& pulses = world_.pulses[round_];
    if (!given_) pulses.push_back(local);
    given_ = true;
    if (static_cast<int>(pulses.size()) < world_.size) return {};
    ++round_;
    given_ = false;
    Pulse sum;
    for (const Pulse& p : pulses) {
      sum.moving += p.moving;
      sum.failed += p.failed;
      sum.stuck += p.stuck;
      sum.unfinished += p.unfinished;
    }
    return sum;
  }

  bool stop_requested_by_launcher() const override { return false; }

 private:
  bool add_up(int collective, std::vector<InstructionId>& ended) {
    const CollectiveCall& c = p_.collectives[collective];
    std::vector<const void*> shares;
    for (int m = 0; m < c.members; ++m) {
      const auto it = world_.shares.find(c.first.value + m);
      if (it == world_.shares.end()) return false;
      shares.push_back(it->second.data());
    }
    buffers_.finish(collective, shares);
    for (int m = 0; m < c.members; ++m)
      if (here(p_.at(InstructionId{c.first.value + m}).device)) ended.emplace_back(c.first.value + m);
    return true;
  }

  MemoryWorld& world_;
  const Program& p_;
  const real::DevicePlacement& dealing_;
  real::RemoteBuffers& buffers_;
  std::vector<int> sending_, receiving_, reducing_;
  int round_ = 0;
  bool given_ = false;
};

}  // namespace stagecraft::test
