// The collective algorithm `direct`, chosen for all-to-all: every member sends to each other one, in n-1 steps of a
// group of n. In each step a member sends to one other member and receives from one, so that no port is used twice. The
// messages are posted together, so one latency is paid.
//
//   reduce-scatter, all-gather, all-to-all   1/n of the bytes in each step
//   all-reduce                               a reduce-scatter and an all-gather
//   broadcast                                all bytes in each step, from the first member
//
// With equally large nodes, all steps of one distance between nodes follow each other.

#include "sim/cluster/collective_algorithms/phase_writer.hpp"

namespace stagecraft::collective_algorithms {
namespace {

/// Every member sends `bytes` to each other one.
void exchange(const std::vector<Members>& nodes, double bytes, PhaseWriter& w) {
  const int count = static_cast<int>(nodes.size()), size = static_cast<int>(nodes.front().size());
  int latencies = 1;
  for (int a = 0; a < count; ++a)
    for (int b = a == 0 ? 1 : 0; b < size; ++b) {
      std::vector<RouteEnds> routes;
      for (int x = 0; x < count; ++x)
        for (int i = 0; i < size; ++i) routes.push_back({nodes[x][i], nodes[(x + a) % count][(i + b) % size]});
      w.add(std::exchange(latencies, 0), bytes, std::move(routes));
    }
}

void send_from_root(PhaseWriter& w) {
  const Members& members = w.members();
  for (std::size_t i = 1; i < members.size(); ++i) w.add(i == 1 ? 1 : 0, w.bytes(), {{members[0], members[i]}});
}

void write_direct(CollectiveKind kind, PhaseWriter& w) {
  if (kind == CollectiveKind::Broadcast) return send_from_root(w);
  std::vector<Members> nodes = w.nodes();
  if (!are_equally_large(nodes)) nodes = {w.members()};
  const double part = w.bytes() / static_cast<double>(w.members().size());
  exchange(nodes, part, w);
  if (kind == CollectiveKind::AllReduce) exchange(nodes, part, w);
}

}  // namespace

extern const CollectiveAlgorithm direct{
    .name = "direct",
    .summary = "Every member sends to each other one and pays one latency; chosen for all-to-all",
    .source = "pairwise exchange of MPICH, grouped messages of NCCL",
    .write = write_direct,
};

}  // namespace stagecraft::collective_algorithms
