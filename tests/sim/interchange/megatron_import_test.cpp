// What flags of Megatron-LM mean: overlap, the even division of layers, defaults of what is absent, its parser, and
// what it refuses.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include "sim/interchange/imports/megatron_options.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "tests/support/readers.hpp"

namespace stagecraft::megatron_import_test {
namespace {

using test::mentions, test::refusal;

/// A model of 16 layers, with a batch of 64 micro-batches on one replica.
constexpr const char* kModel =
    "--num-layers 16 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --vocab-size 50304 --bf16 "
    "--untie-embeddings-and-output-weights --disable-bias-linear --micro-batch-size 1 --global-batch-size 64 ";
constexpr const char* kExperts = "--num-experts 8 --moe-ffn-hidden-size 4096 --moe-grouped-gemm ";

TrainingSetup read(const std::string& more, int devices = 16) {
  return read_megatron(kModel + more, "a.sh", {"", "superpod-h100-256", devices, 0});
}

std::string why_not(const std::string& more, int devices = 16) {
  return refusal([&] { read(more, devices); });
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string field(const TrainingSetup& s, const std::string& name) {
  for (const auto& [key, value] : s.model)
    if (key == name) return value;
  return "";
}

}  // namespace

TEST_CASE("overlap flags are switches of the software stack") {
  const std::string tensor = "--tensor-model-parallel-size 2 --sequence-parallel ";
  const std::string data = "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather ";
  const std::string experts = kExperts + std::string("--moe-token-dispatcher-type alltoall ") +
                              "--expert-model-parallel-size 8 --overlap-moe-expert-parallel-comm ";
  const std::string fsdp = "--use-megatron-fsdp --ckpt-format fsdp_dtensor ";
  const std::string none = "{base: megatron-core, overlap: {gradients: false, weights: false}}";
  struct Row {
    std::string flags, software, note;
  };
  for (const Row& row :
       {Row{"", "{base: megatron-core, overlap: {gradients: false}}", ""},
        {data, "megatron-core", "--overlap-grad-reduce -> software.overlap.gradients: true"},
        {"--use-distributed-optimizer --overlap-grad-reduce", "{base: megatron-core, overlap: {weights: false}}", ""},
        {tensor + "--use-distributed-optimizer", none, ""},
        {tensor + data, "megatron-core", "--overlap-param-gather -> software.overlap.weights: true"},
        {tensor + data + "--tp-comm-overlap ", "{base: megatron-core, overlap: {tensor: true}}",
         "--tp-comm-overlap -> software.overlap.tensor: true"},
        {tensor + "--tp-comm-overlap ", "{base: megatron-core, overlap: {tensor: true, gradients: false}}", ""},
        {experts + data, "{base: megatron-core, overlap: {experts: true}}",
         "--overlap-moe-expert-parallel-comm -> software.overlap.experts"},
        {experts + data + "--delay-wgrad-compute",
         "{base: megatron-core, overlap: {experts: true, weight_gradients: true}}", "--delay-wgrad-compute"},
        {fsdp, none, ""},
        {fsdp + "--overlap-grad-reduce --overlap-param-gather", "megatron-core", ""},
        {data + "--pipeline-model-parallel-size 4", "{base: megatron-core, overlap: {messages: false}}", ""},
        {data + "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2", "megatron-core", ""},
        {data + "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 "
                "--no-overlap-p2p-communication",
         "{base: megatron-core, overlap: {messages: false}}", "software.overlap.messages: false"},
        {data + "--grad-reduce-in-bf16", "{base: megatron-core, gradient_bytes: 2}", "software.gradient_bytes: 2"},
        {"--DDP-impl local " + tensor, "megatron-2021", ""}}) {
    CAPTURE(row.flags);
    const TrainingSetup s = read(row.flags + " --cross-entropy-loss-fusion");
    CHECK(software_text(s) == row.software);
    std::string notes;
    for (const std::string& note : notes_of(s)) notes += note + "\n";
    CHECK_MESSAGE(says(notes, row.note), notes);
  }
  // With one replica no gradients are summed.
  const TrainingSetup alone = read(data + "--cross-entropy-loss-fusion", 1);
  CHECK(software_text(alone) == "megatron-core");
  CHECK(alone.gradient_buckets.empty());
  CHECK(mentions(alone.without_use, "--overlap-grad-reduce with nothing that it overlaps"));
}

TEST_CASE("layers are divided as Megatron-LM divides them") {
  const auto layout = [](const std::string& flags) { return read(flags).layout; };
  const std::string four = "--pipeline-model-parallel-size 4 ";
  CHECK(layout("").empty());
  CHECK(layout(four + "--vocab-size 256000") == "Et*4|t*4|t*4|t*4L");
  CHECK(layout(four + "--num-virtual-stages-per-pipeline-rank 2") == "Et*2|t*2|t*2|t*2|t*2|t*2|t*2|t*2L");
  CHECK(layout(four + "--num-layers-per-virtual-pipeline-stage 1").ends_with("|t|t|tL"));
  CHECK(layout(four + "--decoder-first-pipeline-num-layers 2 --decoder-last-pipeline-num-layers 4") ==
        "Et*2|t*5|t*5|t*4L");
  CHECK(layout(four + "--num-layers 14 --account-for-embedding-in-pipeline-split "
                      "--account-for-loss-in-pipeline-split --num-virtual-stages-per-pipeline-rank 2") ==
        "Et|t*2|t*2|t*2|t*2|t*2|t*2|tL");
  CHECK(layout(four + "--mtp-num-layers 1 --position-embedding-type rope") == "Et*4|t*4|t*4|t*4mL");
  CHECK(scenario_yaml(read(four), {"", "superpod-h100-256", 16, 0}, "a.sh")
            .find("planner: layout\n  layout: \"Et*4|t*4|t*4|t*4L\"") != std::string::npos);
  CHECK(
      says(why_not(four + "--num-layers 18"), "checks its arguments (AssertionError): 18 layers cannot be divided so"));
  CHECK(says(why_not(four + "--num-virtual-stages-per-pipeline-rank 3"), "builds the model (AssertionError)"));
  CHECK(says(why_not(four + "--decoder-first-pipeline-num-layers 3 --num-virtual-stages-per-pipeline-rank 2"),
             "configures the model (ValueError)"));
}

TEST_CASE("what is absent has the default of Megatron-LM") {
  const std::string tensor = "--tensor-model-parallel-size 2 --sequence-parallel ";
  // 50304 are 393 times 128, and the next multiple of 256 is 50432.
  CHECK(field(read(""), "vocabulary") == "50304");
  CHECK(field(read(tensor), "vocabulary") == "50432");
  CHECK(mentions(read(tensor).assumed, "pads the vocabulary of 50304 to 50432, a multiple of 128 x tensor 2"));
  CHECK(field(read(tensor + "--padded-vocab-size 50310"), "vocabulary") == "50310");
  CHECK(field(read(tensor + "--no-pad-vocab-size"), "vocabulary") == "50304");

  const TrainingSetup experts = read(tensor + kExperts + "--expert-model-parallel-size 8");
  CHECK(experts.expert_tensor == 2);
  CHECK(mentions(experts.assumed, "without --expert-tensor-parallel-size it is the tensor degree"));
  CHECK(experts.dispatcher == "allgather");
  CHECK(mentions(experts.assumed, "without --moe-token-dispatcher-type it is allgather"));
  const TrainingSetup named = read(tensor + kExperts +
                                   "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1 "
                                   "--moe-token-dispatcher-type alltoall");
  CHECK(named.expert_tensor == 1);
  CHECK_FALSE(mentions(named.assumed, "allgather"));
  const std::string yaml = scenario_yaml(read(tensor + kExperts), {"", "superpod-h100-256", 16, 0}, "a.sh");
  CHECK(says(yaml, "group: {tensor: 2, sequence: true, expert_tensor: 2}"));
}

TEST_CASE("a batch that is not given, grows, or is one of several of a script") {
  std::string model = kModel;
  model.erase(model.find("--global-batch-size"));
  const auto read_batch = [&](const std::string& script) {
    return read_megatron(script, "a.sh", {"", "superpod-h100-256", 16, 0});
  };
  const TrainingSetup absent = read_batch(model + "--micro-batch-size 2 --tensor-model-parallel-size 4");
  CHECK(absent.global_batch == 8);
  CHECK(mentions(absent.assumed, "without --global-batch-size each replica has one micro-batch"));
  const TrainingSetup grown = read_batch(model + "--step-batch-size-schedule '0:32 10B:64 20B:128'");
  CHECK(grown.global_batch == 128);
  CHECK(mentions(grown.matched, "--step-batch-size-schedule -> run.global_batch: 128"));
  CHECK(says(refusal([&] { read_batch(model + "--step-batch-size-schedule 0:x"); }), "does not end in a number"));
  CHECK(says(why_not("--step-batch-size-schedule 0:32"), "the batch is given twice"));
  CHECK(says(refusal([&] { read_batch(model + "--step-batch-size-schedule 0:1000000000"); }), "does not end in"));
  CHECK(says(refusal([&] {
               read_megatron(model + "--micro-batch-size 1000000", "a.sh", {"", "superpod-h100-256", 100'000, 0});
             }),
             "is a batch of more than"));
  const TrainingSetup of_script = read_batch("if [ $1 = small ]; then B=32; else B=64; fi\npython pretrain_gpt.py " +
                                             model + "--global-batch-size $B");
  CHECK(of_script.global_batch == 64);
  CHECK(
      mentions(of_script.assumed, "the file does not say which branch is taken, so B is '64', the last of '32', '64'"));
}

TEST_CASE("layers that run again, the kernels of the loss and the format of gathered weights are fields") {
  const std::string full = "--recompute-granularity full --recompute-num-layers 3 ";
  CHECK(read(full + "--recompute-method block").recompute == "layers");
  CHECK(read(full + "--recompute-method block").recompute_layers == 3);
  CHECK(read(full + "--recompute-method uniform").recompute_layers == 0);
  CHECK(mentions(read(full + "--recompute-method uniform").unmodeled_memory, "--recompute-num-layers 3"));
  CHECK(read("").fused_loss == false);
  CHECK(mentions(read("").assumed, "without --cross-entropy-loss-fusion the loss has several kernels"));
  CHECK_FALSE(read("--cross-entropy-loss-fusion").fused_loss.has_value());
  CHECK_FALSE(mentions(read("--cross-entropy-loss-fusion").assumed, "cross-entropy-loss-fusion"));
  const std::string fp8 = "--fp8-format hybrid --fp8-recipe tensorwise --fp8-param-gather ";
  CHECK(read(fp8 + "--use-distributed-optimizer").gathered_bytes == 1);
  CHECK(mentions(read(fp8 + "--use-distributed-optimizer").matched, "--fp8-param-gather -> software.gathered_bytes"));
}

TEST_CASE("a release has its own options, words after them, defaults and rules") {
  const auto in = [](const char* release, const std::string& more) {
    return read_megatron(kModel + more, "a.sh",
                         {.cluster = "superpod-h100-256", .devices = 16, .vocabulary = 0, .release = release});
  };
  const std::string layout = "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et*8|t*8L ";
  CHECK(in("0.13", layout).of_other_releases.empty());
  REQUIRE(in("0.12.3", layout).of_other_releases.size() == 1);
  const Diagnostic option = in("0.12.3", layout).of_other_releases.front();
  CHECK(option.path == "--pipeline-model-parallel-layout");
  CHECK(option.message == "Megatron-LM 0.12 has no such option");
  CHECK(option.help == "it is there since 0.13");
  CHECK(
      mentions(notes_of(in("0.12", layout)), "--pipeline-model-parallel-layout: Megatron-LM 0.12 has no such option"));
  CHECK(says(scenario_yaml(in("0.12", ""), {.cluster = "superpod-h100-256", .devices = 16}, "a.sh"), "release: 0.12"));
  const std::string recipe = "--fp8-format e4m3 --fp8-recipe blockwise";
  CHECK(in("0.13", recipe).of_other_releases.empty());
  REQUIRE(in("0.12", recipe).of_other_releases.size() == 1);
  CHECK(in("0.12", recipe).of_other_releases.front().message == "Megatron-LM 0.12 does not take 'blockwise'");
  CHECK(in("0.20", "--retro-add-retriever").of_other_releases.front().help == "leave it out");
  CHECK(in("0.15", "--retro-add-retriever").of_other_releases.empty());
  // --data-parallel-sharding-strategy was no_shard where it is absent, until 0.17.
  const std::string fsdp = "--use-megatron-fsdp --ckpt-format fsdp_dtensor ";
  CHECK(in("0.17", fsdp).shard == "none");
  CHECK(in("0.18", fsdp).shard == "weights");
  CHECK(read(fsdp).shard == "weights");
  const auto refused = [&](const char* release, const std::string& more) {
    return refusal([&] { in(release, more); });
  };
  CHECK(says(refused("0.10", ""), "--release: there are no facts of release 0.10"));
  const std::string heads =
      "--group-query-attention --num-query-groups 2 --tensor-model-parallel-size 4 --sequence-parallel";
  CHECK(says(refused("0.15", heads), "Megatron-LM 0.15 refuses this"));
  CHECK(refused("0.16", heads) == "read");
}

TEST_CASE("number formats") {
  CHECK(read("--fp4-format e2m1 --fp4-recipe nvfp4").precision == "nvfp4");
  CHECK(read("--fp8-format hybrid").precision == "fp8");
  CHECK(read("--fp8-format e4m3 --fp8-recipe mxfp8").precision == "mxfp8");
  CHECK(mentions(read("--fp8-format e4m3 --fp8-recipe blockwise").unmodeled, "--fp8-recipe blockwise"));
  CHECK(says(why_not("--fp8-format e4m3 --fp4-format e2m1"), "fp4 excludes fp8"));
}

TEST_CASE("an option has as many words as in Megatron-LM") {
  CHECK(says(why_not("--swiglu torchrun"),
             "a.sh:1:1: error: --swiglu: Megatron-LM's parser refuses what follows it: "
             "unrecognized arguments: torchrun"));
  CHECK(says(why_not("--lr 1e-4 2e-4"), "unrecognized arguments: 2e-4"));
  CHECK(says(why_not("--lr --swiglu"), "--lr: Megatron-LM's parser refuses this: a word has to follow it"));
  CHECK(says(why_not("--swiglu=true"), "--swiglu: Megatron-LM's parser refuses this: no word follows it"));
  CHECK(says(why_not("--rampup-batch-size 16 8"), "3 words have to follow it"));
  CHECK(says(why_not("--num-layer 3"), "did you mean '--num-layers'?"));
  CHECK(says(why_not("--tp-comm-overlaps"), "did you mean '--tp-comm-overlap'?"));
  CHECK(says(why_not("--normalization BatchNorm"), "which is none of its choices"));
  CHECK(says(why_not(kExperts + std::string("--moe-token-dispatcher-type none")), "one of allgather, alltoall, flex"));
  CHECK(says(why_not("--train-iters 1e6"), "refuses '1e6', which is no whole number"));
  CHECK(says(why_not("--lr abc"), "refuses 'abc', which is no number"));
  CHECK(says(why_not("--linear-attention-freq [1,1,x]"), "neither a whole number nor a list of layers"));
  CHECK(says(why_not("--train-iters ten --lr-decay-style steps"), "one of constant, linear, cosine"));
  CHECK(why_not("--train-iters 1_000 --lr 1.5e-4 --lr-decay-style WSD --adam-eps .5 --seed -1") == "read");
  CHECK(why_not("--train-iters $ITERATIONS") == "read");
  // A word after a switch that ends an array, or the arguments, is no word of the switch.
  const TrainingSetup script =
      read_megatron("ARGS=(\n  " + std::string(kModel) +
                        "--swiglu\n)\ntorchrun --nproc_per_node 8 pretrain_gpt.py ${ARGS[@]} > log 2>&1\n",
                    "a.sh", {"", "superpod-h100-256", 0, 0});
  CHECK(script.replicas == 0);
  CHECK(field(script, "gated") == "true");
}

TEST_CASE("the table of options has every option once, with its words") {
  int count = 0;
  for (const MegatronOptionList& list : megatron_option_lists())
    if (!list.older && list.use != MegatronUse::Launcher)
      for (const char c : list.text) count += c == ' ' || c == '\n';
  CHECK(count - 5 == 876 + 22);  // Each list begins with a line break; ModelOpt has 22 of the options.
  struct Row {
    const char* name;
    int min_words;
    bool is_open;  ///< It takes any number of further words.
  };
  for (const Row& row : {Row{"swiglu", 0, false},
                         {"num-layers", 1, false},
                         {"rampup-batch-size", 3, false},
                         {"recompute-modules", 1, true},
                         {"data-path", 0, true}}) {
    const MegatronOption* option = find_megatron_option(row.name);
    REQUIRE(option);
    CHECK(option->min_words == row.min_words);
    CHECK((option->max_words > 1000) == row.is_open);
  }
  CHECK(find_megatron_option("no-such-option") == nullptr);
}

TEST_CASE("what Megatron-LM refuses after its parser is refused with the rule and a change that it accepts") {
  const std::string tensor = "--tensor-model-parallel-size 2 --sequence-parallel ";
  const std::string pipeline = "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 ";
  const std::string experts = kExperts + std::string("--expert-model-parallel-size 8 ");
  const std::string selective = "--recompute-granularity selective ";
  struct Row {
    std::string flags;
    int devices;
    const char *rule, *help;
  };
  for (const Row& row :
       {Row{pipeline + "--global-batch-size 3", 4, "(ValueError): 3 micro-batches with virtual stages, which need 4",
            "--global-batch-size 4, which is run.global_batch"},
        {pipeline + "--global-batch-size 29", 4, "(RuntimeError): 29 micro-batches leave 1 in the last group of 4",
         "--global-batch-size 32"},
        {pipeline + "--microbatch-group-size-per-virtual-pipeline-stage 2", 4, "groups of 2 micro-batches", "leave it"},
        {"--num-virtual-stages-per-pipeline-rank 2", 4, "a single pipeline rank has no virtual stages", "leave it out"},
        {"--global-batch-size 63", 16, "63 samples is no multiple of micro-batch 1 x 16 replicas", "64"},
        {"--tensor-model-parallel-size 2 --tp-comm-overlap", 16, "it needs sequence parallelism",
         "--sequence-parallel"},
        {"--sequence-parallel --tp-comm-overlap", 16, "a tensor group of one device", "leave it out"},
        {"--use-distributed-optimizer --overlap-param-gather", 16, "needs --overlap-grad-reduce", "--overlap-grad"},
        {"--overlap-grad-reduce --overlap-param-gather", 16, "needs the distributed optimizer", "--use-distributed"},
        {tensor + experts, 8, "expert tensor 2 x expert 8 x 1 pipeline rank does not divide 8 GPUs",
         "--expert-tensor-parallel-size 1"},
        {kExperts + std::string("--tensor-model-parallel-size 2"), 16, "experts in a tensor group",
         "--sequence-parallel"},
        {experts + "--delay-wgrad-compute", 16, "it needs --overlap-moe-expert-parallel-comm", "leave it out"},
        {experts + "--overlap-moe-expert-parallel-comm", 16, "needs the dispatcher alltoall or flex", "alltoall"},
        {experts + "--moe-enable-deepep", 16, "DeepEP needs the dispatcher flex", "flex"},
        {"--recompute-granularity full --recompute-num-layers 1", 16, "needs --recompute-method", "uniform"},
        {selective + "--recompute-num-layers 1", 16, "selective recomputation takes none", "leave it out"},
        {selective + "--recompute-modules moe_act", 16, "moe_act needs --moe-grouped-gemm", "--moe-grouped-gemm"},
        {"--use-megatron-fsdp", 16, "it needs --ckpt-format fsdp_dtensor", "--ckpt-format fsdp_dtensor"},
        {"--ckpt-format fsdp_dtensor", 16, "fsdp_dtensor is for Megatron-FSDP", "torch_dist"},
        {"--context-parallel-size 3", 12, "a sequence of 2048 cannot be divided into 2 x 3 parts", "a multiple"},
        {"--context-parallel-size 8 --cp-comm-type a2a+p2p "
         "--hierarchical-context-parallel-sizes 1000000 1000000 1000000 1000000",
         16, "the product of the sizes is more than 1000000, and context 8", "sizes whose product"},
        {"--tensor-model-parallel-size 3", 12, "tensor 3 does not divide 16 heads", "a divisor"},
        {"--tensor-parallel-num-weight-shards 2", 16, "no model here has such layers or groups", "leave it out"}}) {
    CAPTURE(row.flags);
    const std::string text = why_not(row.flags, row.devices);
    CHECK_MESSAGE(says(text, row.rule), text);
    CHECK_MESSAGE(says(text, row.help), text);
  }
  for (const std::string& accepted :
       {pipeline + "--global-batch-size 28 --microbatch-group-size-per-virtual-pipeline-stage 6",
        pipeline + "--global-batch-size 4", std::string("--pipeline-model-parallel-size 4 --global-batch-size 3"),
        std::string(kExperts) + "--moe-router-topk 1 --moe-router-load-balancing-type sinkhorn",
        std::string(kExperts) + "--moe-router-topk 1 --moe-router-score-function sqrtsoftplus",
        tensor + experts + "--expert-tensor-parallel-size 1"}) {
    CAPTURE(accepted);
    CHECK(why_not(accepted, accepted.starts_with("--tensor") ? 8 : 4) == "read");
  }
  CHECK(says(refusal([] {
               read_megatron("export CUDA_DEVICE_MAX_CONNECTIONS=1\npython pretrain_gpt.py " + std::string(kModel) +
                                 "--use-megatron-fsdp --ckpt-format fsdp_dtensor",
                             "a.sh", {"", "superpod-h100-256", 8, 0});
             }),
             "the script sets CUDA_DEVICE_MAX_CONNECTIONS=1"));
}

}  // namespace stagecraft::megatron_import_test
