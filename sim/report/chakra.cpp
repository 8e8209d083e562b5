#include "sim/report/chakra.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace stagecraft {
namespace {

/// A message of Protocol Buffers, field by field.
class Message {
 public:
  Message& number(int field, std::uint64_t value) {
    key(field, 0);
    varint(value);
    return *this;
  }
  Message& bytes(int field, const std::string& value) {
    key(field, 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  Message& packed(int field, const std::vector<std::uint64_t>& values) {
    Message inside;
    for (const std::uint64_t v : values) inside.varint(v);
    return values.empty() ? *this : bytes(field, inside.text_);
  }
  /// Behind its length, as one of many in a file.
  std::string framed() const {
    Message whole;
    whole.varint(text_.size());
    return whole.text_ + text_;
  }
  const std::string& text() const { return text_; }

 private:
  void key(int field, int wire) { varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire)); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7f) | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

// Fields of a Node and of its attributes, and types of nodes.
constexpr int kId = 1, kName = 2, kType = 3, kAfter = 4, kNeeds = 5, kMicroseconds = 7, kAttribute = 10;
constexpr int kUint32 = 11, kUint64 = 13, kBool = 27, kString = 29;
constexpr int kCompute = 4, kSend = 5, kReceive = 6, kCollective = 7;

Message attribute(const char* name) { return Message().bytes(1, name); }

class Writer {
 public:
  explicit Writer(const Program& program) : p_(program), rank_(static_cast<std::size_t>(program.devices), -1) {
    node_.resize(p_.size());
    std::vector<bool> works(rank_.size(), false);
    for (const Instruction& i : p_.instructions) works[i.device] = true;
    for (std::size_t d = 0; d < works.size(); ++d) {
      if (!works[d]) continue;
      rank_[d] = static_cast<int>(made_.devices.size());
      made_.devices.emplace_back(static_cast<std::int64_t>(d));
      made_.traces.push_back(Message().bytes(1, "0.0.4").framed());
    }
    next_.assign(made_.devices.size(), 0);
  }

  ChakraTraces write() {
    for (std::size_t n = 0; n < p_.size(); ++n) add(InstructionId{static_cast<std::int64_t>(n)});
    for (const auto& [ranks, number] : groups_) {
      made_.groups +=
          fmt::format("{}\n \"{}\": [{}]", made_.groups.empty() ? "{" : ",", number, fmt::join(ranks, ", "));
    }
    if (!made_.groups.empty()) made_.groups += "\n}\n";
    if (most_off_ > 1e-3)
      made_.notes.push_back(
          fmt::format("computations take whole microseconds there: up to {:.2g} % off", 100 * most_off_));
    if (orders_ > 0)
      made_.notes.push_back(fmt::format("{} messages of no bytes have one there, because none may be empty", orders_));
    return std::move(made_);
  }

 private:
  int rank(DeviceId d) const { return rank_[d]; }

  void add(InstructionId id) {
    const Instruction& i = p_.at(id);
    const auto own = static_cast<std::size_t>(rank(i.device));
    node_[id] = next_[own]++;
    Message node;
    // Nodes that are ready start in the order of their numbers, which is that of the program.
    node.number(kId, node_[id]).bytes(kName, to_text(p_, id)).number(kType, type(i.kind));
    std::vector<std::uint64_t> needs, after;
    for (const InstructionId w : p_.waits_for(id)) {
      if (p_.at(w).device != i.device) continue;  // Its own message: they find each other by their tag.
      (p_.at(w).is_compute() == i.is_compute() ? after : needs).push_back(node_[w]);
    }
    node.packed(kAfter, after).packed(kNeeds, needs);
    if (i.is_compute()) node.number(kMicroseconds, microseconds(i.duration));
    node.bytes(kAttribute, attribute("is_cpu_op").number(kBool, 0).text());
    if (i.kind == InstructionKind::AllReduce)
      reduce(i, node);
    else if (!i.is_compute())
      carry(i, node);
    made_.traces[own] += node.framed();
  }

  static std::uint64_t type(InstructionKind kind) {
    switch (kind) {
      case InstructionKind::Send:
        return kSend;
      case InstructionKind::Receive:
        return kReceive;
      case InstructionKind::AllReduce:
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

  void carry(const Instruction& i, Message& node) {
    const Transfer& t = p_.transfers[i.link];
    orders_ += t.bytes == 0 && i.kind == InstructionKind::Send;
    const auto tag = static_cast<std::uint64_t>(i.link);
    node.bytes(kAttribute, attribute("comm_src").number(kUint32, at(t.send)).text())
        .bytes(kAttribute, attribute("comm_dst").number(kUint32, at(t.receive)).text())
        .bytes(kAttribute, attribute("comm_tag").number(kUint32, tag).text())
        .bytes(kAttribute, attribute("comm_size").number(kUint64, std::max<std::uint64_t>(t.bytes, 1)).text());
  }
  std::uint64_t at(InstructionId id) const { return static_cast<std::uint64_t>(rank(p_.at(id).device)); }

  void reduce(const Instruction& i, Message& node) {
    constexpr int kAllReduce = 0;
    const Collective& c = p_.collectives[i.link];
    std::vector<int> ranks;
    for (int m = 0; m < c.members; ++m) ranks.push_back(rank(p_.at(InstructionId{c.first + m}).device));
    std::sort(ranks.begin(), ranks.end());
    const int number = groups_.emplace(ranks, static_cast<int>(groups_.size()) + 1).first->second;
    node.bytes(kAttribute, attribute("comm_type").number(kUint64, kAllReduce).text())
        .bytes(kAttribute, attribute("comm_size").number(kUint64, std::max<std::uint64_t>(c.bytes, 1)).text())
        .bytes(kAttribute, attribute("pg_name").bytes(kString, fmt::format("{}", number)).text());
  }

  const Program& p_;
  std::vector<int> rank_;            ///< Of each device; -1: it does nothing.
  std::vector<std::uint64_t> node_;  ///< Of each instruction, on its rank.
  std::vector<std::uint64_t> next_;  ///< Of each rank.
  std::map<std::vector<int>, int> groups_;
  double most_off_ = 0;
  int orders_ = 0;
  ChakraTraces made_;
};

}  // namespace

ChakraTraces chakra_traces(const Program& program) { return Writer(program).write(); }

}  // namespace stagecraft
