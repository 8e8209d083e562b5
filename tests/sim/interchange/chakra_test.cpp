// Traces for ASTRA-sim: they read back, are complete, and take the time that ASTRA-sim reported when replayed by its
// rules.

#include "sim/interchange/chakra.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <protozero/pbf_reader.hpp>

#include "tests/support/reference.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::chakra_test {
using protozero::pbf_reader;

namespace {

struct Node {
  std::uint64_t id = 0, type = 0, microseconds = 0;
  std::string name;
  std::vector<std::uint64_t> after;
  std::map<std::string, std::uint64_t> numbers;  ///< Attributes.
  std::string group;
};

/// The next message of a trace; its length comes first.
pbf_reader next_message(std::string_view& trace) {
  const char* at = trace.data();
  const std::uint64_t size = protozero::decode_varint(&at, trace.data() + trace.size());
  trace.remove_prefix(at - trace.data() + size);
  return {at, size};
}

void read_attribute(pbf_reader attribute, Node& node) {
  std::string name;
  while (attribute.next()) {
    if (attribute.tag() == 1)
      name = attribute.get_string();
    else if (attribute.tag() == 29)
      node.group = attribute.get_string();
    else
      node.numbers[name] = attribute.get_uint64();
  }
}

Node read_node(pbf_reader message) {
  Node node;
  while (message.next()) switch (message.tag()) {
      case 1:
        node.id = message.get_uint64();
        break;
      case 2:
        node.name = message.get_string();
        break;
      case 3:
        node.type = message.get_uint64();
        break;
      case 4:
      case 5:
        for (const std::uint64_t id : message.get_packed_uint64()) node.after.push_back(id);
        break;
      case 7:
        node.microseconds = message.get_uint64();
        break;
      case 10:
        read_attribute(message.get_message(), node);
        break;
      default:
        message.skip();
    }
  return node;
}

std::vector<Node> nodes_of(std::string_view trace) {
  pbf_reader metadata = next_message(trace);
  REQUIRE(metadata.next(1));
  CHECK(metadata.get_string() == "0.0.4");
  std::vector<Node> nodes;
  while (!trace.empty()) nodes.push_back(read_node(next_message(trace)));
  return nodes;
}

/// Plays traces without collectives as ASTRA-sim does on a full mesh: nodes that are ready start by rising number, one
/// computation and one send of a rank at a time, any number of receives; a send ends when its message arrives; nothing
/// takes no time. Ends of each rank in nanoseconds.
std::vector<std::uint64_t> played(const std::vector<std::vector<Node>>& ranks, double latency_ns, double bytes_per_ns) {
  using Tag = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
  std::vector<std::map<std::uint64_t, std::uint64_t>> ends(ranks.size());  // By node, once it has ended.
  std::vector<std::set<std::uint64_t>> begun(ranks.size());
  std::vector<std::uint64_t> compute_free(ranks.size(), 0), send_free(ranks.size(), 0);
  std::map<Tag, std::uint64_t> arrived;
  const auto tag = [](const Node& n) {
    return Tag{n.numbers.at("comm_tag"), n.numbers.at("comm_src"), n.numbers.at("comm_dst"), n.numbers.at("comm_size")};
  };
  // Nodes begin in the order of the time at which they can.
  for (bool any = true; any;) {
    any = false;
    std::uint64_t soonest = ~0ULL;
    std::size_t rank = 0;
    const Node* chosen = nullptr;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      for (const Node& n : ranks[r]) {
        if (begun[r].count(n.id)) continue;
        std::uint64_t at = n.type == 4 ? compute_free[r] : n.type == 5 ? send_free[r] : 0;
        bool ready = true;
        for (const std::uint64_t w : n.after) {
          ready = ready && ends[r].count(w);
          if (ready) at = std::max(at, ends[r].at(w));
        }
        if (ready && n.type == 6) ready = arrived.count(tag(n)) > 0;
        if (ready && n.type == 6) at = std::max(at, arrived.at(tag(n)));
        if (ready && at < soonest) soonest = at, rank = r, chosen = &n;
      }
    if (!chosen) break;
    any = true;
    begun[rank].insert(chosen->id);
    std::uint64_t end = soonest;
    if (chosen->type == 4) end = compute_free[rank] = soonest + std::max<std::uint64_t>(1000 * chosen->microseconds, 1);
    if (chosen->type == 5)
      end = send_free[rank] = arrived[tag(*chosen)] =
          soonest +
          static_cast<std::uint64_t>(latency_ns + static_cast<double>(chosen->numbers.at("comm_size")) / bytes_per_ns);
    ends[rank][chosen->id] = end;
  }
  std::vector<std::uint64_t> last(ranks.size(), 0);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    REQUIRE(ends[r].size() == ranks[r].size());
    for (const auto& [id, end] : ends[r]) last[r] = std::max(last[r], end);
  }
  return last;
}

/// The nodes of the trace that ASTRA-sim replayed, by rank.
std::vector<std::vector<Node>> example() {
  const std::map<std::string, std::uint64_t> types = {{"COMP", 4}, {"COMM_SEND", 5}, {"COMM_RECV", 6}};
  std::vector<std::vector<Node>> ranks(2);
  for (const test::ReferenceRow& row : test::reference_rows("chakra_example.csv")) {
    const auto whole = [&](const char* column) { return static_cast<std::uint64_t>(row.integer(column)); };
    Node& node = ranks.at(whole("rank")).emplace_back();
    node.id = whole("id"), node.type = types.at(row.text("type")), node.microseconds = whole("microseconds");
    node.name = row.text("name");
    if (!row.text("after").empty())
      for (const std::string& id : split(row.text("after"), ' ')) node.after.push_back(std::stoull(id));
    for (const char* key : {"comm_src", "comm_dst", "comm_tag", "comm_size"}) node.numbers[key] = whole(key);
  }
  return ranks;
}

ChakraTraces traces_of(const Program& program) { return chakra_traces(program); }

}  // namespace

TEST_CASE("chakra: the trace of two stages takes as long as ASTRA-sim says") {
  Plan plan = chain_plan(2, 2, 4);
  plan.edges.front().bytes = Bytes{1e6};
  const Program program = test::program_of("1f1b", plan, uniform_costs(plan, test::times(1e-3, 2e-3)));
  const ChakraTraces chakra = traces_of(program);
  REQUIRE(chakra.traces.size() == 2);
  CHECK(chakra.groups.empty());
  const std::vector<std::vector<Node>> ranks = {nodes_of(chakra.traces[0]), nodes_of(chakra.traces[1])};
  const double bytes_per_ns = 50 * 1073741824.0 / 1e9;  // What ASTRA-sim makes of 50 GB/s.
  const auto ends = played(ranks, 500, bytes_per_ns);
  // 5 turns of 3 ms and 4 messages of 500 ns + 1 MB; then the update, which takes nothing and so 1 ns.
  CHECK(std::abs(static_cast<double>(ends[0]) - 15'076'504) <= 4);

  const std::vector<std::vector<Node>> theirs = example();
  const auto reference = played(theirs, 500, bytes_per_ns);
  CHECK(std::abs(static_cast<double>(reference[0]) - 15'076'504) <= 4);  // The player keeps to the rules.
  CHECK(std::abs(static_cast<double>(reference[1]) - 13'076'504) <= 4);
  for (std::size_t r = 0; r < 2; ++r) {  // Both have the same computations in the same order, and the same messages.
    std::vector<std::string> ours, others;
    std::multiset<std::uint64_t> sent, received;
    for (const Node& n : ranks[r])
      if (n.type == 4 && n.name.find('U') == std::string::npos) ours.push_back(n.name.substr(1));
    for (const Node& n : theirs[r])
      if (n.type == 4) others.push_back(n.name);
    CHECK(ours == others);
    for (const Node& n : ranks[r])
      if (n.type != 4) sent.insert(n.type * 10 + n.numbers.at("comm_src"));
    for (const Node& n : theirs[r])
      if (n.type != 4) received.insert(n.type * 10 + n.numbers.at("comm_src"));
    CHECK(sent == received);
  }
}

TEST_CASE("chakra: each instruction is there once, after its dependencies; messages pair, groups are replicas") {
  Plan plan = chain_plan(3, 3, 4);
  plan.stages[StageId{1}].place_on({DeviceId{1}, DeviceId{4}});
  plan.stages[StageId{2}].place_on({DeviceId{5}});  // Devices 2 and 3 do nothing.
  for (Stage& stage : plan.stages) stage.micro_batch_size = 2;
  plan.mini_batch = 8;
  plan.edges[0].bytes = Bytes{10};  // The other edge is an order alone.
  StageCosts costs = uniform_costs(plan, test::times(1.4e-6, 2e-3, 1e-3));
  for (StageCost& c : costs.values()) c.memory.gradients = Bytes{64};
  const Program program = test::program_of("1f1b", plan, costs);
  const ChakraTraces chakra = traces_of(program);
  CHECK(chakra.devices == std::vector<DeviceId>{DeviceId{0}, DeviceId{1}, DeviceId{4}, DeviceId{5}});
  CHECK(chakra.groups == "{\n \"1\": [1, 2]\n}\n");
  REQUIRE(chakra.notes.size() == 2);
  CHECK(chakra.notes[0] == "computations take whole microseconds there: up to 29 % off");
  CHECK(chakra.notes[1].find("messages of no bytes have one there") != std::string::npos);
  std::size_t count = 0;
  std::map<std::uint64_t, std::pair<int, int>> tags;
  for (std::size_t r = 0; r < chakra.traces.size(); ++r) {
    const auto nodes = nodes_of(chakra.traces[r]);
    count += nodes.size();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      CHECK(nodes[n].id == n);
      CHECK(nodes[n].numbers.at("is_cpu_op") == 0);
      for (const std::uint64_t w : nodes[n].after) CHECK(w < n);
      if (nodes[n].type == 5) {
        CHECK(nodes[n].numbers.at("comm_src") == r);
        ++tags[nodes[n].numbers.at("comm_tag")].first;
      }
      if (nodes[n].type == 6) {
        CHECK(nodes[n].numbers.at("comm_dst") == r);
        ++tags[nodes[n].numbers.at("comm_tag")].second;
      }
      if (nodes[n].type >= 5) CHECK(nodes[n].numbers.at("comm_size") > 0);
      if (nodes[n].type == 7) CHECK(nodes[n].group == "1");
    }
  }
  CHECK(count == program.size());
  for (const auto& [tag, ends] : tags) CHECK(ends == std::pair{1, 1});
}

}  // namespace stagecraft::chakra_test
