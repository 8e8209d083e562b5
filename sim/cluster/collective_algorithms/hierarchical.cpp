// The collective algorithm `hierarchical`: rings inside the nodes, and rings across the nodes among the members with
// the same place in their node. N nodes with G members each take, for an array of S bytes:
//
//   reduce-scatter   a ring in each node over S, then rings across the nodes over S/G
//   all-gather       the reverse
//   all-reduce       a reduce-scatter in each node, an all-reduce across the nodes over S/G, an all-gather in each node
//   all-to-all       a direct exchange in each node, S/G for every pair, then one across the nodes, S/N for every pair;
//                    each of the two takes one latency
//   broadcast        a chain across the nodes, then a chain in each node
//
// Nodes with different numbers of members are refused.

#include "sim/cluster/collective_algorithms/phase_writer.hpp"

namespace stagecraft::collective_algorithms {
namespace {

/// The members with the same place in their nodes, for each place.
std::vector<Members> members_by_place(const std::vector<Members>& nodes) {
  std::vector<Members> columns(nodes.front().size());
  for (const Members& node : nodes)
    for (std::size_t i = 0; i < node.size(); ++i) columns[i].push_back(node[i]);
  return columns;
}

/// In each of several equally large groups at once, every member sends `bytes` to each other one. The messages are
/// posted together, so one latency is paid.
void exchange_inside(const std::vector<Members>& groups, double bytes, PhaseWriter& w) {
  const int size = static_cast<int>(groups.front().size());
  for (int step = 1; step < size; ++step) {
    std::vector<RouteEnds> routes;
    for (const Members& group : groups)
      for (int i = 0; i < size; ++i) routes.push_back({group[i], group[(i + step) % size]});
    w.add(step == 1 ? 1 : 0, bytes, std::move(routes));
  }
}

void write_hierarchical(CollectiveKind kind, PhaseWriter& w) {
  const std::vector<Members> nodes = w.nodes();
  if (!are_equally_large(nodes)) w.refuse("the nodes have different numbers of members");
  const std::vector<Members> columns = members_by_place(nodes);
  const double members_per_node = static_cast<double>(columns.size()), node_count = static_cast<double>(nodes.size());
  switch (kind) {
    case CollectiveKind::AllReduce:
      w.add_rings(nodes, 1, w.bytes());
      w.add_rings(columns, 2, w.bytes() / members_per_node);
      return w.add_rings(nodes, 1, w.bytes());
    case CollectiveKind::ReduceScatter:
      w.add_rings(nodes, 1, w.bytes());
      return w.add_rings(columns, 1, w.bytes() / members_per_node);
    case CollectiveKind::AllGather:
      w.add_rings(columns, 1, w.bytes() / members_per_node);
      return w.add_rings(nodes, 1, w.bytes());
    case CollectiveKind::AllToAll:
      exchange_inside(nodes, w.bytes() / members_per_node, w);
      return exchange_inside(columns, w.bytes() / node_count, w);
    case CollectiveKind::Broadcast:
      w.add_chains({columns.front()});
      return w.add_chains(nodes);
  }
}

}  // namespace

extern const CollectiveAlgorithm hierarchical{
    .name = "hierarchical",
    .summary =
        "Rings inside the nodes and rings across them; chosen for groups with equally many members on each of several "
        "nodes",
    .source = "Mikami et al., arXiv:1811.05233",
    .write = write_hierarchical,
};

}  // namespace stagecraft::collective_algorithms
