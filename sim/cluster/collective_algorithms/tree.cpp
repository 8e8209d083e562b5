// The collective algorithm `tree`, which simulations never choose: a binomial tree with ceil(log2 n) levels for n
// members. Each level takes one latency and moves the whole array, without a pipeline. At the level of distance d,
// members 0..d-1 exchange with members d..2d-1. A broadcast goes down the levels; an all-reduce sums up them first. A
// tree does not serve the other kinds.

#include "sim/cluster/collective_algorithms/phase_writer.hpp"

namespace stagecraft::collective_algorithms {
namespace {

std::vector<RouteEnds> routes_down(const Members& members, std::size_t distance) {
  std::vector<RouteEnds> routes;
  for (std::size_t i = 0; i < distance && i + distance < members.size(); ++i)
    routes.push_back({members[i], members[i + distance]});
  return routes;
}

std::vector<RouteEnds> routes_up(const Members& members, std::size_t distance) {
  std::vector<RouteEnds> routes = routes_down(members, distance);
  for (RouteEnds& r : routes) std::swap(r.from, r.to);
  return routes;
}

void write_tree(CollectiveKind kind, PhaseWriter& w) {
  if (kind != CollectiveKind::AllReduce && kind != CollectiveKind::Broadcast)
    w.refuse("a tree moves whole arrays, for all_reduce and broadcast");
  std::vector<std::size_t> distances;  // One for each level, from the root down.
  for (std::size_t d = 1; d < w.members().size(); d *= 2) distances.push_back(d);
  if (kind == CollectiveKind::AllReduce)
    for (auto d = distances.rbegin(); d != distances.rend(); ++d) w.add(1, w.bytes(), routes_up(w.members(), *d));
  for (const std::size_t d : distances) w.add(1, w.bytes(), routes_down(w.members(), d));
}

}  // namespace

extern const CollectiveAlgorithm tree{
    .name = "tree",
    .summary =
        "Whole arrays go up and down a binomial tree; serves all-reduce and broadcast; simulations never choose it",
    .source = "Thakur, Rabenseifner and Gropp, 2005",
    .write = write_tree,
};

}  // namespace stagecraft::collective_algorithms
