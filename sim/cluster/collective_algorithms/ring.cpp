// The collective algorithm `ring`: chunks go around the ring of all n members in a pipeline:
//
//   all-reduce                   2(n-1) latencies, 2(n-1)/n of the bytes over every route
//   reduce-scatter, all-gather   n-1 latencies, (n-1)/n of the bytes
//   all-to-all                   n-1 latencies, (n-1)/2 of the bytes, because parts pass through the members between
//                                their ends: the part for the member at distance d crosses d routes of the ring, and
//                                1 + 2 + ... + (n-1) parts of 1/n cross each route
//   broadcast                    n-1 latencies and all bytes, along a chain from the first member to the last

#include "sim/cluster/collective_algorithms/phase_writer.hpp"

namespace stagecraft::collective_algorithms {
namespace {

void write_ring(CollectiveKind kind, PhaseWriter& w) {
  const int n = static_cast<int>(w.members().size());
  switch (kind) {
    case CollectiveKind::AllReduce:
      return w.add_rings({w.members()}, 2, w.bytes());
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather:
      return w.add_rings({w.members()}, 1, w.bytes());
    case CollectiveKind::AllToAll:
      return w.add(n - 1, (n - 1) / 2.0 * w.bytes(), PhaseWriter::ring_routes({w.members()}));
    case CollectiveKind::Broadcast:
      return w.add_chains({w.members()});
  }
}

}  // namespace

extern const CollectiveAlgorithm ring{
    .name = "ring",
    .summary = "Chunks go around a ring of all members; chosen for sums of gradients, and where no other algorithm is",
    .source = "Patarasuk and Yuan, 2009",
    .write = write_ring,
};

}  // namespace stagecraft::collective_algorithms
