// Writes the JSON configuration of DeepSpeed for a planned experiment (batch sizes, ZeRO, precision, pipeline), with
// notes on what it leaves to the model's code; `export deepspeed` prints it.

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/experiment/software.hpp"
#include "sim/interchange/exports/export_support.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/interchange/rules/deepspeed.hpp"

namespace stagecraft {
namespace {

class DeepspeedWriter {
 public:
  explicit DeepspeedWriter(const PlannedExperiment& p)
      : p_(p),
        shape_(p.plan.stages.front().shape),
        ranks_(rank_count(p)),
        refusals_("export deepspeed", p.experiment.plan) {}

  FrameworkConfiguration write() {
    refuse();
    const int each = samples_per_replica(p_);
    const std::string_view precision = precision_of(p_);
    std::string text = fmt::format(
        "{{\n  \"train_batch_size\": {},\n  \"train_micro_batch_size_per_gpu\": {},\n"
        "  \"gradient_accumulation_steps\": {},\n  \"zero_optimization\": {{{}}},\n"
        "  \"fp16\": {{\"enabled\": {}}},\n  \"bf16\": {{\"enabled\": {}}}",
        p_.plan.mini_batch, each, p_.plan.mini_batch / (each * shape_.degrees.replicas), zero_text(),
        precision == "fp16", precision == "bf16");
    const Degrees& d = shape_.degrees;
    if (d.tensor > 1) text += fmt::format(",\n  \"tensor_parallel\": {{\"autotp_size\": {}}}", d.tensor);
    if (d.context > 1) text += fmt::format(",\n  \"sequence_parallel_size\": {}", d.context);
    if (d.expert > 1)
      text += fmt::format(",\n  \"expert_parallel\": {{\"enabled\": true, \"autoep_size\": {}}}", d.expert);
    if (ranks_ > 1) text += fmt::format(",\n  \"pipeline\": {{\"stages\": {}{}}}", ranks_, recomputation_text());
    add_notes();
    return {text + "\n}\n", std::move(notes_)};
  }

 private:
  /// Whether AutoTP, which divides matrices alone, Ulysses and AutoEP divide so.
  bool has_groups() const {
    const Degrees& d = shape_.degrees;
    const bool is_ulysses = d.context == 1 || (shape_.exchange == ContextExchange::AllToAll && d.tensor == 1);
    return has_autotp(ranks_) && !d.sequence && is_ulysses && d.expert_tensor == 1;
  }

  void refuse() {
    refusals_.require_usual_order(shape_.degrees);
    refusals_.require_even(p_.plan);
    if (shape_.degrees.divides() && !has_groups())
      refusals_.add_of_model(
          "DeepSpeed's configuration has no such tensor, context or expert group: the model's code makes them",
          "a plan without a pipeline, with tensor or context_type: a2a, or without group");
    if (ranks_ > 1 && p_.experiment.schedule.name() != "1f1b")
      refusals_.add_of_schedule(
          fmt::format("DeepSpeed's pipeline does not run the schedule '{}'", p_.experiment.schedule.name()),
          "run.schedule: 1f1b");
    if (shape_.shard_copies() > 1)
      refusals_.add("DeepSpeed's ZeRO divides over all replicas", "shard without within", "shard");
    const Degrees& d = shape_.degrees;
    const DeepspeedRun run{.devices = d.devices() * ranks_,
                           .stages = ranks_,
                           .tensor = d.tensor,
                           .zero = static_cast<int>(shape_.sharding),
                           .context = d.context,
                           .expert = d.expert,
                           .offloads_a_part = offloaded_states() > 0 && offloaded_states() < 1,
                           .divides_experts = d.expert > 1,
                           .divides_otherwise = d.tensor > 1 || d.context > 1 || offloaded_states() > 0};
    for (const Diagnostic& broken : broken_deepspeed_rules(run)) refusals_.add(deepspeed_rules(), broken, broken.path);
    const std::string_view precision = precision_of(p_);
    if (precision != "bf16" && precision != "fp16" && precision != "fp32" && precision != "tf32")
      refusals_.add_of_model(fmt::format("DeepSpeed's configuration has no {}: the model's code makes it", precision),
                             "run.precision: bf16, fp16 or fp32");
    refusals_.throw_if_any();
  }

  /// The share of the optimizer's states on hosts.
  double offloaded_states() const {
    const auto& offload = p_.experiment.plan.offload;
    return offload && shape_.sharding != StateSharding::None ? offload->optimizer : 0;
  }

  /// A pipeline of DeepSpeed sums gradients after the last backward.
  std::string zero_text() {
    std::string text = fmt::format("\"stage\": {}", static_cast<int>(shape_.sharding));
    if (const double share = offloaded_states(); share > 0)
      text += fmt::format(", \"offload_optimizer\": {{\"device\": \"cpu\"{}}}",
                          share < 1 ? ", \"ratio\": " + shortest(share) : "");
    const auto& buckets = p_.experiment.run.buckets;
    if (!buckets) return text;
    const double gradient = p_.experiment.software().prices ? p_.experiment.software().gradient_bytes : 2;
    if (shape_.sharding != StateSharding::Optimizer || ranks_ > 1)
      notes_.emplace_back("not written: run.gradient_buckets, which only ZeRO-1 without a pipeline has here");
    else if (buckets->gradients.value == 0)
      notes_.emplace_back("not written: the size of run.gradient_buckets, which depends on the number of devices");
    else
      text +=
          fmt::format(", \"overlap_comm\": true, \"reduce_bucket_size\": {:.0f}", buckets->gradients.value / gradient);
    return text;
  }

  /// PipelineModule recomputes this number of layers of a stage at once; no stage has more than all.
  std::string recomputation_text() const {
    const bool whole = shape_.recomputes_all();
    if (!whole && !shape_.recomputes_layers()) return "";
    return fmt::format(", \"activation_checkpoint_interval\": {}", whole ? p_.model().layers.size() : 1);
  }

  void add_notes() {
    const auto not_written = [&](const std::string& what) { notes_.push_back("not written: " + what); };
    const bool written = ranks_ > 1 && (shape_.recomputes_all() || shape_.recomputes_layers());
    if (shape_.recomputation != Recomputation::None && !written)
      not_written(fmt::format("plan.recompute: {}, which the model's code does", to_text(shape_.recomputation)));
    if (ranks_ > 1)
      not_written("which layers each stage has; the model's code makes the pipeline, PipelineModule(num_stages=" +
                  std::to_string(ranks_) + ")");
    if (const auto& offload = p_.experiment.plan.offload; offload && offload->moves_stashes())
      not_written("plan.offload.activations, which the model's code does");
    if (const auto& offload = p_.experiment.plan.offload; offload && offload->optimizer > 0 && offload->beside)
      not_written("plan.offload.optimizer.beside; DeepSpeed's host updates after all gradients are there");
    if (shape_.recomputed_layers > 0) not_written("plan.recompute_layers, which the model's code does");
    if (shape_.degrees.expert > 1 && shape_.dispatcher != ExpertDispatch::AllToAll)
      not_written("plan.group.dispatcher; AutoEP exchanges rows by all-to-alls");
    if (shape_.overlaps_shared) not_written("plan.group.shared_overlap");
    if (precision_of(p_) == "tf32") not_written("run.precision: tf32; DeepSpeed computes in fp32");
    if (p_.experiment.source)
      for (const std::string& fact : replaced_facts(*p_.experiment.source)) not_written(fact);
    const SoftwareStack& stack = p_.experiment.software();
    if (stack.prices && stack.name != "megatron-deepspeed" && stack.name != "bloom")
      not_written(fmt::format("software: {}; import takes it as megatron-deepspeed", stack.name));
  }

  const PlannedExperiment& p_;
  const StageShape& shape_;
  int ranks_;
  ExportRefusals refusals_;
  std::vector<std::string> notes_;
};

}  // namespace

FrameworkConfiguration deepspeed_config(const PlannedExperiment& p) { return DeepspeedWriter(p).write(); }

}  // namespace stagecraft
