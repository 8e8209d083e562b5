// Writes a program as Chakra execution traces, one for each device that does something, with the process groups of its
// collectives; `export chakra` writes them for ASTRA-sim.

#include "sim/interchange/chakra.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using protozero::pbf_writer;

// Field numbers of et_def.proto: GlobalMetadata, Node, AttributeProto; then the types of nodes.
constexpr int kVersion = 1;
constexpr int kId = 1, kName = 2, kType = 3, kAfter = 4, kNeeds = 5, kMicroseconds = 7, kAttribute = 10;
constexpr int kAttributeName = 1, kUint32 = 11, kUint64 = 13, kBool = 27, kString = 29;
constexpr int kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7;

void add_attribute(pbf_writer& node, const char* name, int field, std::uint64_t value) {
  pbf_writer attribute(node, kAttribute);
  attribute.add_string(kAttributeName, name);
  attribute.add_uint64(field, value);
}

void add_attribute(pbf_writer& node, const char* name, const std::string& text) {
  pbf_writer attribute(node, kAttribute);
  attribute.add_string(kAttributeName, name);
  attribute.add_string(kString, text);
}

/// A trace is a list of messages, each after its length.
void append_message(std::string& trace, const std::string& message) {
  protozero::write_varint(std::back_inserter(trace), message.size());
  trace += message;
}

class Writer {
 public:
  explicit Writer(const Program& program) : p_(program), rank_(program.devices, -1) {
    node_.resize(p_.size());
    group_of_.assign(p_.collectives.size(), 0);
    std::vector<bool> works(rank_.size(), false);
    for (const Instruction& i : p_.instructions) works[i.device.value] = true;
    for (std::size_t d = 0; d < works.size(); ++d) {
      if (!works[d]) continue;
      rank_[d] = static_cast<int>(made_.devices.size());
      made_.devices.emplace_back(static_cast<std::int64_t>(d));
      std::string metadata;
      pbf_writer(metadata).add_string(kVersion, "0.0.4");
      append_message(made_.traces.emplace_back(), metadata);
    }
    next_.assign(made_.devices.size(), 0);
  }

  ChakraTraces write() {
    for (const InstructionId n : p_.instructions.ids()) add(n);
    for (const auto& [ranks, number] : groups_) {
      made_.groups +=
          fmt::format("{}\n \"{}\": [{}]", made_.groups.empty() ? "{" : ",", number, fmt::join(ranks, ", "));
    }
    if (!made_.groups.empty()) made_.groups += "\n}\n";
    if (most_off_ > 1e-3)
      made_.notes.push_back(
          fmt::format("computations take whole microseconds there: up to {:.2g} % off", 100 * most_off_));
    if (orders_ > 0)
      made_.notes.push_back(fmt::format("{} of no bytes {} one there, because none may be empty",
                                        pluralize(orders_, "message"), orders_ == 1 ? "has" : "have"));
    return std::move(made_);
  }

 private:
  int rank(DeviceId d) const { return rank_[d.value]; }

  void add(InstructionId id) {
    const Instruction& i = p_.at(id);
    const int sender = rank(i.device);
    node_[id] = next_[sender]++;
    std::string bytes;
    pbf_writer node(bytes);
    // Nodes that are ready start in the order of their ids, which is the order of the program.
    node.add_uint64(kId, node_[id]);
    node.add_string(kName, to_text(p_, id));
    node.add_enum(kType, type(i.kind));
    std::vector<std::uint64_t> needs, after;
    for (const InstructionId w : p_.waits_for(id)) {
      if (p_.at(w).device != i.device) continue;  // Its own message: both ends find each other by their tag.
      (p_.at(w).is_compute() == i.is_compute() ? after : needs).push_back(node_[w]);
    }
    node.add_packed_uint64(kAfter, after.begin(), after.end());
    node.add_packed_uint64(kNeeds, needs.begin(), needs.end());
    if (i.is_compute()) node.add_uint64(kMicroseconds, microseconds(i.duration));
    add_attribute(node, "is_cpu_op", kBool, 0);
    if (i.kind == InstructionKind::Collective)
      add_collective(i, node);
    else if (!i.is_compute())
      add_message(i, node);
    append_message(made_.traces[sender], bytes);
  }

  static int type(InstructionKind kind) {
    switch (kind) {
      case InstructionKind::Send:
        return kSend;
      case InstructionKind::Receive:
        return kReceive;
      case InstructionKind::Collective:
        return kCollective;
      default:
        return kCompute;
    }
  }

  std::uint64_t microseconds(Seconds duration) {
    const double exact = 1e6 * duration.value, whole = std::round(exact);
    if (exact > 0) most_off_ = std::max(most_off_, std::abs(whole / exact - 1));
    return static_cast<std::uint64_t>(whole);
  }

  void add_message(const Instruction& i, pbf_writer& node) {
    const Transfer& t = p_.transfer(i);
    orders_ += p_.bytes(t) == 0 && i.kind == InstructionKind::Send;
    add_attribute(node, "comm_src", kUint32, at(t.send));
    add_attribute(node, "comm_dst", kUint32, at(t.receive));
    add_attribute(node, "comm_tag", kUint32, static_cast<std::uint64_t>(i.transfer()));
    add_attribute(node, "comm_size", kUint64, std::max<std::uint64_t>(p_.bytes(t), 1));
  }
  std::uint64_t at(InstructionId id) const { return static_cast<std::uint64_t>(rank(p_.at(id).device)); }

  void add_collective(const Instruction& i, pbf_writer& node) {
    constexpr int kTypes[] = {0, 7, 2, 6, 5};  // CollectiveCommType of each CollectiveKind.
    const CollectiveCall& c = p_.collective(i);
    const int number = group_of(i.collective());
    const CollectiveShape& shape = p_.shape(c);
    add_attribute(node, "comm_type", kUint64, kTypes[static_cast<int>(shape.kind)]);
    add_attribute(
        node, "comm_size", kUint64,
        std::max<std::uint64_t>(static_cast<std::uint64_t>(c.repeats() * static_cast<double>(shape.bytes)), 1));
    add_attribute(node, "pg_name", fmt::format("{}", number));
  }

  /// Number of the group of a collective, from 1 on. Its members ask one after the other, and the first one counts
  /// them.
  int group_of(std::size_t collective) {
    if (group_of_[collective] > 0) return group_of_[collective];
    const CollectiveCall& c = p_.collectives[collective];
    std::vector<int> ranks;
    for (int m = 0; m < c.members; ++m) ranks.push_back(rank(p_.at(c.member(m)).device));
    std::sort(ranks.begin(), ranks.end());
    return group_of_[collective] = groups_.emplace(ranks, static_cast<int>(groups_.size()) + 1).first->second;
  }

  const Program& p_;
  std::vector<int> rank_;                        ///< Rank of each device; -1 where it does nothing.
  IdVector<InstructionId, std::uint64_t> node_;  ///< Node of each instruction, on its rank.
  std::vector<std::uint64_t> next_;              ///< Next free node of each rank.
  std::map<std::vector<int>, int> groups_;
  std::vector<int> group_of_;  ///< Number of the group of each collective; 0: not known yet.
  double most_off_ = 0;
  int orders_ = 0;
  ChakraTraces made_;
};

}  // namespace

ChakraTraces chakra_traces(const Program& program) {
  for (const CollectiveCall& c : program.collectives)
    if (c.purpose == Purpose::Stash || c.purpose == Purpose::LateForward)
      throw InputError("Chakra has no nodes for copies to host memory", "take offload out of the plan");
  return Writer(program).write();
}

}  // namespace stagecraft
