#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft::test {

using Ids = std::vector<InstructionId>;

struct Message {
  InstructionId send, receive;
};

/// Programs by hand. What shares a stream follows in the order it was added; `after` adds to that.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(int devices, bool rendezvous = true) {
    program_.devices = devices;
    program_.rendezvous = rendezvous;
    program_.memory.resize(static_cast<std::size_t>(devices));
    program_.micro_batches.assign(static_cast<std::size_t>(devices), 1 << 20);
    program_.updates.assign(static_cast<std::size_t>(devices), 1);
    program_.delays.assign(static_cast<std::size_t>(devices), 0);
  }

  /// Messages of a pair need not follow each other any more.
  ProgramBuilder& unordered_messages() { return ordered_ = false, *this; }

  /// Ops of a device need not follow each other.
  ProgramBuilder& unordered_ops() { return ops_ordered_ = false, *this; }

  InstructionId compute(int device, double seconds, const Ids& after = {}) {
    Instruction instruction = make(InstructionKind::Forward, device, device);
    instruction.duration = Seconds{seconds};
    return add(instruction, StreamKind::Compute, -1, after);
  }

  Message send(int from, int to, std::uint64_t bytes, const Ids& after = {}, const Ids& receive_after = {}) {
    Instruction sent = make(InstructionKind::Send, from, from);
    Instruction received = make(InstructionKind::Receive, to, from);
    sent.payload = received.payload = static_cast<std::int32_t>(program_.transfers.size());
    received.number = sent.number;
    Transfer transfer;
    transfer.shape = static_cast<std::int32_t>(program_.transfer_shapes.size());
    program_.transfer_shapes.push_back({.bytes = bytes, .route = route(from, to)});
    transfer.send = add(sent, StreamKind::Send, to, after);
    transfer.receive = add(received, StreamKind::Receive, from, receive_after);
    program_.transfers.push_back(transfer);
    return {transfer.send, transfer.receive};
  }

  Ids all_reduce(const std::vector<int>& devices, std::uint64_t bytes, const Ids& after = {}) {
    return collective(CollectiveKind::AllReduce, collective_algorithms::ring, devices, bytes, after);
  }

  /// `nodes` has the node of each device; empty: all devices are on one node.
  Ids collective(CollectiveKind kind, const CollectiveAlgorithm& algorithm, const std::vector<int>& devices,
                 std::uint64_t bytes, const Ids& after = {}, const std::vector<int>& nodes = {}, int rounds = 1) {
    DeviceGroup group{{}, nodes};
    for (const int d : devices) group.devices.emplace_back(d);
    CollectiveCall collective;
    collective.members = static_cast<std::int32_t>(devices.size());
    collective.rounds = rounds;
    collective.shape = add_shape(program_, kind, algorithm, group, bytes);
    Ids members;
    for (const int d : devices) {
      Instruction member = make(InstructionKind::Collective, d, devices[0]);
      member.payload = static_cast<std::int32_t>(program_.collectives.size());
      members.push_back(add(member, StreamKind::Collective, -1, after));
    }
    collective.first = members.front();
    program_.collectives.push_back(collective);
    return members;
  }

  /// One more edge, even one that makes a cycle.
  void wait(InstructionId later, InstructionId earlier) { edges_.emplace_back(later, earlier); }

  Program build() const {
    Program program = program_;
    std::vector<std::uint32_t>& first = program.first_wait;
    first.assign(program.size() + 1, 0);
    for (const auto& edge : edges_) ++first[edge.first.value + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    program.waits.resize(edges_.size());
    std::vector<std::uint32_t> next(first);
    for (const auto& edge : edges_) program.waits[next[edge.first.value]++] = edge.second;
    return program;
  }

 private:
  Instruction make(InstructionKind kind, int device, int stage) {
    Instruction instruction;
    instruction.kind = kind;
    instruction.device = DeviceId{device};
    instruction.stage = StageId{stage};
    if (kind == InstructionKind::Forward) instruction.payload = 0;
    instruction.number = count_[{kind, device}]++;
    return instruction;
  }

  InstructionId add(Instruction instruction, StreamKind kind, int peer, const Ids& after) {
    const InstructionId id{program_.size()};
    for (const InstructionId earlier : after) wait(id, earlier);
    const bool message = kind == StreamKind::Send || kind == StreamKind::Receive;
    if (message ? ordered_ : ops_ordered_ || kind != StreamKind::Compute) {
      auto [place, fresh] = streams_.try_emplace({instruction.device, kind, peer});
      if (fresh) {
        place->second.first = program_.streams.push_back({instruction.device, kind, DeviceId{peer}});
      } else {
        wait(id, place->second.second);
      }
      instruction.stream = place->second.first;
      place->second.second = id;
    }
    program_.instructions.push_back(instruction);
    return id;
  }

  std::int32_t route(int from, int to) {
    const auto [place, fresh] = routes_.try_emplace({from, to}, static_cast<std::int32_t>(program_.routes.size()));
    if (fresh) program_.routes.push_back({DeviceId{from}, DeviceId{to}});
    return place->second;
  }

  Program program_;
  std::vector<std::pair<InstructionId, InstructionId>> edges_;  ///< Later, earlier.
  std::map<std::tuple<DeviceId, StreamKind, int>, std::pair<StreamId, InstructionId>> streams_;
  std::map<std::pair<int, int>, std::int32_t> routes_;
  std::map<std::pair<InstructionKind, int>, std::int32_t> count_;
  bool ordered_ = true, ops_ordered_ = true;
};

}  // namespace stagecraft::test
