// Iterations that were computed by an independent implementation of the formulas, term by term.

#include "sim/cost/closed_form.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace stagecraft::closed_form_test {
namespace {

Accelerator device(const std::string& name) { return load_accelerator("topologies/devices/" + name + ".yaml"); }

TransformerShape gpt(int layers, int hidden, int heads, int sequence, int vocabulary) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .key_value_heads = heads,
          .width = 4 * hidden,
          .sequence = sequence,
          .vocabulary = vocabulary};
}

TransformerShape llama_70b(int layers, int sequence) {
  return {.layers = layers,
          .hidden = 8192,
          .heads = 64,
          .key_value_heads = 8,
          .width = 28672,
          .sequence = sequence,
          .vocabulary = 128256,
          .gated = true,
          .tied = false};
}

TrainingRun vtrain_large() {
  return {.model = gpt(48, 8192, 64, 2048, 51200),
          .software = software_stack("megatron-deepspeed"),
          .format = NumberFormat::Fp16,
          .degrees = {.replicas = 16, .tensor = 8},
          .stages = 4,
          .micro_batch = 4,
          .micro_batches = 24,
          .recompute = LayerRecomputation::Full,
          .card = Bandwidth{12.5e9}};
}

struct Expected {
  double forward, backward, head_forward, head_backward, slowest, all_stages, message;  ///< Milliseconds.
  double gradients, optimizer, total;                                                   ///< Seconds.
  double memory;                                                                        ///< Bytes.
};

void check(const TrainingRun& run, const std::string& device_name, const Expected& e) {
  const IterationTime t = iteration_time(run, device(device_name));
  const auto close = [](double expected) { return doctest::Approx(expected).epsilon(2e-5); };
  CHECK(1e3 * t.layer.forward.total().value == close(e.forward));
  CHECK(1e3 * (t.layer.backward + t.layer.recompute).total().value == close(e.backward));
  CHECK(1e3 * t.head_forward.total().value == close(e.head_forward));
  CHECK(1e3 * t.head_backward.total().value == close(e.head_backward));
  CHECK(1e3 * t.slowest_stage.value == close(e.slowest));
  CHECK(1e3 * t.all_stages.value == close(e.all_stages));
  CHECK(1e3 * t.message.value == close(e.message));
  CHECK(t.gradients.value == doctest::Approx(e.gradients).epsilon(1e-4));
  CHECK(t.optimizer.value == doctest::Approx(e.optimizer).epsilon(1e-4));
  CHECK(t.total().value == close(e.total));
  CHECK(device_memory(run).value == close(e.memory));
}

}  // namespace

TEST_CASE("Megatron-DeepSpeed, 39B on 512 A100") {
  check(vtrain_large(), "a100-80",
        {11.811263, 31.638702, 4.096013, 8.601270, 534.096865, 2100.182318, 2.174540, 0.455124, 0.031998, 14.984608,
         2.83619e10});
  CHECK(iteration_time(vtrain_large(), device("a100-80")).layer.forward.tensor.value ==
        doctest::Approx(4.604059e-3 / 2).epsilon(1e-5));
}

TEST_CASE("small runs: one bound by launches, one by kernels") {
  TrainingRun run = vtrain_large();
  run.model = gpt(12, 1024, 16, 1024, 51200);
  run.degrees = {.tensor = 2};
  run.stages = 1, run.micro_batch = 1, run.micro_batches = 4;
  check(run, "a100-80", {0.952, 2.464, 0.519637, 1.189630, 42.762439, 42.762439, 0, 0, 0.002582, 0.173632, 1.97971e9});
  run.model = gpt(16, 2048, 16, 1024, 51200);
  run.degrees = {.tensor = 4};
  run.micro_batch = 4;
  check(run, "a100-80",
        {1.223628, 3.322590, 1.446204, 2.522770, 76.977071, 76.977071, 0, 0, 0.005777, 0.313685, 4.54663e9});
}

TEST_CASE("BLOOM's search, where the host waits for each kernel") {
  TrainingRun run{.model = gpt(70, 14336, 64, 2048, 250880),
                  .software = software_stack("bloom"),
                  .format = NumberFormat::Bf16,
                  .degrees = {.replicas = 8, .tensor = 4},
                  .sharding = StateSharding::Optimizer,
                  .stages = 12,
                  .micro_batch = 2,
                  .micro_batches = 128,
                  .ends_count = true,
                  .recompute = LayerRecomputation::Full,
                  .card = Bandwidth{1.3e9 / 0.85}};
  run.software.gradient_bytes = 4;
  run.software.gradient_copy_bytes = 2;
  check(run, "a100-80",
        {26.540122, 76.546475, 32.845800, 64.179653, 618.519586, 7314.605696, 23.042050, 12.052297, 0.037809,
         104.316306, 5.00823e10});
}

TEST_CASE("Llama 70B on B200, with a data-parallel pair and with context parallelism") {
  TrainingRun run{.model = llama_70b(12, 4096),
                  .software = software_stack("megatron-core"),
                  .degrees = {.replicas = 2, .tensor = 4},
                  .sequence_parallel = true,
                  .sharding = StateSharding::Optimizer,
                  .micro_batches = 32,
                  .card = Bandwidth{50e9}};
  check(run, "b200",
        {2.570948, 4.806695, 2.447424, 4.859011, 96.158858, 96.158858, 0, 0.013103, 0.008738, 3.098924, 4.17370e10});
  run.model = llama_70b(12, 32768);
  run.degrees = {.context = 4, .tensor = 2};
  run.micro_batches = 4;
  check(
      run, "b200",
      {9.756455, 21.795376, 9.666735, 18.446827, 407.142861, 407.142861, 0, 0.039216, 0.010403, 1.678190, 7.32409e10});
}

TEST_CASE("NeMo in 8 bits, interleaved, with overlap") {
  const TrainingRun run{.model = gpt(96, 12288, 96, 2048, 51200),
                        .software = software_stack("nemo-2024"),
                        .format = NumberFormat::Fp8,
                        .degrees = {.replicas = 4, .tensor = 4},
                        .sequence_parallel = true,
                        .sharding = StateSharding::Optimizer,
                        .stages = 8,
                        .chunks = 6,
                        .micro_batches = 64,
                        .card = Bandwidth{50e9}};
  check(run, "h100-sxm",
        {2.289389, 4.747931, 1.559746, 2.885533, 88.893120, 680.388710, 0.316069, 0.044469, 0.024553, 5.861189,
         7.30878e10});  // Memory without the third inner tensor that only a gated feed-forward keeps, 5.5365 GB.
}

TEST_CASE("sequence parallelism with selective recomputation, 530B on 35 stages of three chunks") {
  const TrainingRun run{.model = gpt(105, 20480, 128, 2048, 51200),
                        .software = software_stack("megatron-2022"),
                        .format = NumberFormat::Fp16,
                        .degrees = {.tensor = 8},
                        .sequence_parallel = true,
                        .stages = 35,
                        .chunks = 3,
                        .micro_batches = 280,
                        .recompute = LayerRecomputation::Selective,
                        .card = Bandwidth{25e9}};
  check(run, "a100-80",
        {13.441922, 26.223597, 2.497435, 5.523749, 127.017738, 4174.114765, 0.513448, 0.012402, 0.051244, 37.875152,
         5.79129e10});
}

TEST_CASE("one layer less on the first and the last stage") {
  const TrainingRun run{.model = gpt(30, 4096, 32, 1024, 51200),
                        .software = software_stack("megatron-2021"),
                        .format = NumberFormat::Fp16,
                        .stages = 8,
                        .micro_batch = 3,
                        .micro_batches = 24,
                        .ends_count = true,
                        .card = Bandwidth{25e9}};
  check(run, "a100-80",
        {6.828459, 12.889308, 6.988421, 12.250843, 78.871068, 610.910218, 0.128473, 0.019804, 0.025769, 2.478226,
         3.97956e10});
}

TEST_CASE("DeepSeek-V3 with four layers on two stages, experts over four devices") {
  TransformerShape model{.layers = 4,
                         .hidden = 7168,
                         .heads = 128,
                         .key_value_heads = 128,
                         .width = 18432,
                         .sequence = 4096,
                         .vocabulary = 129280,
                         .gated = true,
                         .tied = false};
  model.latent = {.query = 1536, .key = 512, .rope = 64, .nope = 128, .value = 128};
  model.experts = {.count = 256, .active = 8, .width = 2048, .shared = 2048, .dense_layers = 1};
  const TrainingRun run{.model = model,
                        .software = software_stack("megatron-core"),
                        .degrees = {.replicas = 4, .expert = 4},
                        .sequence_parallel = true,
                        .sharding = StateSharding::Optimizer,
                        .stages = 2,
                        .micro_batches = 8,
                        .card = Bandwidth{50e9}};
  check(run, "b200",
        {9.124452, 17.071989, 8.656325, 16.724424, 77.773631, 122.777783, 0.110200, 0.012146, 0.008385, 0.687945,
         1.20082e11});
}

TEST_CASE("on one device without launches, a layer is the sum of its kernels") {
  TrainingRun run = vtrain_large();
  run.degrees = {};
  run.stages = 1;
  run.recompute = LayerRecomputation::None;
  const LayerTime layer = layer_time(run, device("a100-80"), true, {.launches = false});
  CHECK(layer.forward.total() == layer.forward.kernels());
  CHECK(layer.recompute.total().value == 0);
  CHECK(layer.forward.collectives().value == 0);
}

TEST_CASE("each term of the formula makes an iteration longer") {
  const TrainingRun run = vtrain_large();
  const Accelerator a100 = device("a100-80");
  const double whole = iteration_time(run, a100).total().value;
  for (const CostTerms& terms :
       {CostTerms{.shapes = false}, CostTerms{.tensor = false}, CostTerms{.memory_bound = false},
        CostTerms{.data = false}, CostTerms{.uneven = false}, CostTerms{.messages = false}})
    CHECK(iteration_time(run, a100, terms).total().value < whole);
}

TEST_CASE("the classes of the slowest stage and its idle time make up the iteration") {
  const Accelerator a100 = device("a100-80");
  const IterationTime pipeline = iteration_time(vtrain_large(), a100);
  CHECK(pipeline.spent.kernels() > pipeline.spent.collectives());
  CHECK(pipeline.spent.data == pipeline.gradients);
  CHECK(pipeline.spent.messages.value == doctest::Approx(2 * 23 * pipeline.message.value));
  const double bubble = pipeline.all_stages.value - pipeline.slowest_stage.value + 2 * 3 * pipeline.message.value;
  CHECK(pipeline.idle().value == doctest::Approx(bubble));
  TrainingRun run = vtrain_large();
  run.stages = 1;
  CHECK(std::abs(iteration_time(run, a100).idle().value) < 1e-12);
}

TEST_CASE("layers are divided as frameworks do it") {
  TrainingRun run;
  run.model.layers = 70;
  run.stages = 12;
  CHECK(layers_per_stage(run) == std::vector<double>{6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 4});
  run.ends_count = true;
  CHECK(layers_per_stage(run) == std::vector<double>{5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5});
  run.model.layers = 126;
  run.stages = 8;
  run.chunks = 8;
  CHECK(layers_per_stage(run) == std::vector<double>{15, 16, 16, 16, 16, 16, 16, 15});
  run.ends_count = false;
  CHECK(layers_per_stage(run).front() == 126 / 8.0);
}

namespace {

/// Qwen3 30B-A3B, whose heads are wider than its width over their number.
TrainingRun qwen3_30b() {
  TransformerShape model{.layers = 48,
                         .hidden = 2048,
                         .heads = 32,
                         .key_value_heads = 4,
                         .width = 6144,
                         .sequence = 4096,
                         .vocabulary = 151936,
                         .gated = true,
                         .tied = false,
                         .head_width = 128,
                         .query_key_norm = true};
  model.experts = {.count = 128, .active = 8, .width = 768};
  return {.model = model,
          .software = software_stack("megatron-core"),
          .degrees = {.replicas = 16, .expert = 16},
          .sharding = StateSharding::Optimizer,
          .micro_batches = 8,
          .card = Bandwidth{50e9}};
}

}  // namespace

TEST_CASE("parameters of a model with wide heads and experts are the published ones") {
  const TransformerShape model = qwen3_30b().model;
  const LayerParameters layer = layer_parameters(model, false);
  CHECK(layer.divided == 2.0 * 2048 * (32 + 4) * 128 + 2048 * 128);
  CHECK(layer.experts == 3.0 * 2048 * 768 * 128);
  const double norms = 48 * (2 * 2048 + 2 * 128) + 2048;
  CHECK(48 * (layer.divided + layer.experts) + 2.0 * 151936 * 2048 + norms == 30532122624);
}

TEST_CASE("one copy of a row for each node crosses the cards, and all copies move inside the nodes") {
  TrainingRun run = qwen3_30b();
  const Accelerator h100 = device("h100-sxm");
  // 134.2 MB in all; half of the nodes get a row with probability 1 - 1/2^8: 16.7 MB leave, at 42.5 GB/s.
  run.dispatcher = ExpertDispatch::PerNode;
  const double leaving = 4096.0 * 2048 * 2 * (1 - 1.0 / 256);
  CHECK(layer_time(run, h100, false).forward.expert.value == doctest::Approx(2 * (leaving / 42.5e9 + 20e-6)));
  // All-to-all: 15/16 of the array at the card's 42.5 GB/s, half of alpha, hops, nodes and root.
  run.dispatcher = ExpertDispatch::AllToAll;
  CHECK(layer_time(run, h100, false).forward.expert.value > 2 * 134217728.0 / 2 / 42.5e9);
  // On one node the dispatcher makes no difference.
  run.degrees = {.replicas = 8, .expert = 8};
  const double all_to_all = layer_time(run, h100, false).forward.expert.value;
  run.dispatcher = ExpertDispatch::PerNode;
  CHECK(layer_time(run, h100, false).forward.expert.value == all_to_all);
}

TEST_CASE("a window of every second layer leaves the pairs that it sees") {
  TrainingRun run = qwen3_30b();
  const Accelerator h100 = device("h100-sxm");
  const double all_pairs = layer_time(run, h100, false).flops;
  run.model.window = 128;
  // A window of 1/32 of the sequence sees 1/32 - 1/2048 of the square, and a causal mask half of it.
  const double pairs = 4096.0 * 4096 * (0.5 - (0.5 + 1.0 / 32 - 1.0 / 2048) / 2);
  CHECK(all_pairs - layer_time(run, h100, false).flops == doctest::Approx(3.5 * 4 * 32 * 128 * pairs));
}

TEST_CASE("a layout gives the layers of the first and the last chunk, and all others are equal") {
  TrainingRun run = qwen3_30b();
  run.model.layers = 61;
  run.stages = 4, run.chunks = 4, run.first_chunk = 4, run.last_chunk = 1;
  const std::vector<int> chunks = chunks_of_layout(run);
  CHECK(chunks.size() == 16);
  CHECK(chunks.back() == 1);
  CHECK(layers_per_stage(run) == std::vector<double>{16, 16, 16, 13});
}

TEST_CASE("a module for the token after next is a layer, a head and a product on the last stage") {
  TrainingRun run = qwen3_30b();
  const Accelerator h100 = device("h100-sxm");
  const IterationTime without = iteration_time(run, h100);
  run.model.next_tokens = 1;
  const IterationTime with = iteration_time(run, h100);
  PassKernels module = linear_kernels(4096, 4096, 2048, run.format, run.software);
  for (int i = 0; i < 2; ++i) module.add(norm_kernels(4096.0 * 2048, run.software));
  const Seconds join = kernel_time(module.forward, h100).total() + kernel_time(module.backward(), h100).total();
  const Seconds head = without.head_forward.total() + without.head_backward.total();
  CHECK((with.all_stages - without.all_stages).value ==
        doctest::Approx((without.layer.total() + head + join).value).epsilon(1e-9));
}

TEST_CASE("a run in whole graphs takes as long as without launches") {
  TrainingRun run = vtrain_large();
  run.model = gpt(12, 256, 4, 128, 8192);
  run.degrees = {};
  run.stages = 1;
  const Accelerator a100 = device("a100-80");
  const Seconds without = iteration_time(run, a100, {.launches = false}).total();
  CHECK(iteration_time(run, a100).total() > without);
  run.whole_graphs = true;
  CHECK(iteration_time(run, a100).total() == without);
}

TEST_CASE("communicators of a process take 544 MiB for two members and 688 MiB for more") {
  TrainingRun run = vtrain_large();
  run.degrees = {.replicas = 8, .tensor = 4};
  run.stages = 12;  // Tensor, data, model-parallel; two neighbors in the pipeline.
  CHECK(communicator_memory(run) == Bytes{(3 * 688 + 2 * 544) * 0x1p20});
  run.degrees = {.replicas = 2};
  run.stages = 1;
  CHECK(communicator_memory(run) == Bytes{544 * 0x1p20});
}

}  // namespace stagecraft::closed_form_test
