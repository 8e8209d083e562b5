// Where updates of ranks with several chunks are, and what they wait for.

#include <doctest/doctest.h>

#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::chunk_updates_test {
namespace {

CompiledExperiment interleaved(const char* card) {
  const std::string file =
      test::own_file("chunk_updates_test.yaml",
                     std::string("schema: scenario/2\n"
                                 "model: {builder: transformer, kind: gpt, layers: 16, hidden: 8192, heads: 64, "
                                 "sequence: 1024, vocabulary: 32000}\n"
                                 "cluster: {generator: nvlink_pods, types: {gpu: {preset: h100-sxm, memory: 1000 "
                                 "GB}}, nodes: [{name: n, count: "
                                 "8, gpus: 1, type: gpu, inside: nvswitch, nics: each}], links: {nvlink: "
                                 "{bandwidth: 450 GB/s, latency: 1 us}, "
                                 "nic: {bandwidth: ") +
                         card +
                         ", latency: 5 us}}}\nsoftware: megatron-core\n"
                         "plan: {planner: layout, layout: \"Et|(t|)*14tL\", pipeline: 4, replicas: 2, "
                         "micro_batch_size: 1, shard: optimizer}\n"
                         "run: {schedule: interleaved, micro_batches: 8, iterations: 1}\n");
  return compile(load_experiment(file, {}));
}

}  // namespace

TEST_CASE("an optimizer steps after all chunks of its rank, as frameworks do") {
  const CompiledExperiment c = interleaved("50 GB/s");
  for (const RankId rank : c.schedule.ranks.ids()) {
    const std::vector<Op>& row = c.schedule.ranks[rank];
    REQUIRE(row.size() > 4);
    for (std::size_t i = 0; i < row.size(); ++i) CHECK((row[i].kind == OpKind::Update) == (i + 4 >= row.size()));
  }
}

}  // namespace stagecraft::chunk_updates_test
