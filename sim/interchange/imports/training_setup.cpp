// Writes the scenario of a TrainingSetup, which the importers of Megatron-LM, torchtitan and DeepSpeed fill, and the
// notes on what was and was not taken.

#include "sim/interchange/imports/training_setup.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/references.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft {
namespace {

[[noreturn]] void refuse(const std::string& file, std::string message, std::string help) {
  throw InputError({{{file, 0, 0}, {}, std::move(message), std::move(help), "import"}});
}

/// Refuses a name of the command line for which the scenario would be refused: there is nothing of this name next to
/// the file `out` or in the library, or it lacks fields.
void check_reference(FileKind kind, const std::string& option, const std::string& name, const std::string& out) {
  const Where here{out, 0, 0};
  config::Value value = config::Value::scalar(name, here);
  config::Problems problems;
  expand_reference(value, kind, option, problems);
  try {
    problems.throw_if_any();
    static_cast<void>(checked_field(kind == FileKind::Model ? "model" : "cluster", std::move(value)));
  } catch (const InputError& error) {
    std::vector<Diagnostic> refused = error.problems();
    for (Diagnostic& d : refused) {
      if (!(d.where == here)) continue;
      d.where = {};
      if (d.path != option) d.path = fmt::format("{} {}: {}", option, name, d.path);
    }
    throw InputError(std::move(refused));
  }
}

/// A YAML string. Characters that printable() escapes are escapes in it, too.
std::string quoted(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return '"' + printable(escaped) + '"';
}

std::string model_text(const TrainingSetup& s, const SetupOptions& o, const std::string& file) {
  const std::string name = o.model.empty() ? s.model_name : o.model;
  if (!name.empty() && s.sequence > 0)
    return fmt::format("model: {{base: {}, override: {{sequence: {}}}}}\n", quoted(name), s.sequence);
  if (!name.empty()) return fmt::format("model: {}\n", quoted(name));
  if (s.model.empty())
    refuse(file, "the file does not say which model is trained", "--model-name NAME, or --model-name FILE");
  std::string text = "model:\n  builder: transformer\n  kind: gpt\n";
  for (const auto& [field, value] : s.model) text += fmt::format("  {}: {}\n", field, value);
  return text + "  precision: mixed\n";
}

std::string group_text(const TrainingSetup& s) {
  std::string text;
  const auto add = [&](const char* field, const std::string& value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", field, value);
  };
  if (s.tensor > 1) add("tensor", std::to_string(s.tensor));
  if (s.tensor > 1 && s.sequence_parallel) add("sequence", "true");
  if (s.context > 1) add("context", std::to_string(s.context));
  if (s.context > 1 && !s.context_type.empty()) add("context_type", s.context_type);
  if (s.expert > 1) add("expert", std::to_string(s.expert));
  if (s.expert_tensor > 1) add("expert_tensor", std::to_string(s.expert_tensor));
  if (s.expert > 1 && !s.dispatcher.empty()) add("dispatcher", s.dispatcher);
  if (s.expert > 1 && s.shared_overlap) add("shared_overlap", "true");
  if (!s.order.empty()) add("order", s.order);
  return text.empty() ? "" : fmt::format("  group: {{{}}}\n", text);
}

/// Replicas that the number of devices leaves.
int replicas_of(const TrainingSetup& s, const SetupOptions& o, const std::string& file) {
  if (o.devices == 0) return s.replicas;
  const std::int64_t each = std::int64_t{s.ranks} * s.tensor * s.context;
  if (o.devices % each != 0)
    refuse(file, fmt::format("{} cannot be divided into groups of {}", pluralize(o.devices, "device"), each),
           "--devices: a multiple of the product of pipeline, tensor and context parallelism");
  const int replicas = static_cast<int>(o.devices / each);
  if (s.replicas > 0 && s.replicas != replicas)
    refuse(file, fmt::format("the file says {}, and --devices leaves {}", pluralize(s.replicas, "replica"), replicas),
           "leave --devices out");
  return replicas;
}

std::string shard_text(const TrainingSetup& s, int replicas, const std::string& file) {
  if (s.shard.empty() || s.shard_copies == 1) return s.shard;
  const std::int64_t devices = std::int64_t{replicas} * s.context;
  if (devices % s.shard_copies != 0)
    refuse(file,
           fmt::format("{} with the same parameters cannot be divided into {} copies", pluralize(devices, "device"),
                       s.shard_copies),
           "--devices NUMBER, or correct the file");
  return fmt::format("{{state: {}, within: {}}}", s.shard, devices / s.shard_copies);
}

std::string plan_text(const TrainingSetup& s, int replicas, const std::string& file) {
  std::string text = fmt::format("plan:\n  planner: {}\n", s.layout.empty() ? "balanced" : "layout");
  if (s.layout.empty()) text += fmt::format("  stages: {}\n", std::int64_t{s.ranks} * s.chunks);
  if (!s.layout.empty()) text += fmt::format("  layout: {}\n", quoted(s.layout));
  text += fmt::format("  replicas: {}\n", replicas);
  text += group_text(s);
  if (const std::string shard = shard_text(s, replicas, file); !shard.empty())
    text += fmt::format("  shard: {}\n", shard);
  if (!s.recompute.empty()) text += fmt::format("  recompute: {}\n", s.recompute);
  if (s.recompute_layers > 0) text += fmt::format("  recompute_layers: {}\n", s.recompute_layers);
  if (!s.offload.empty()) text += fmt::format("  offload: {}\n", s.offload);
  return text + fmt::format("  micro_batch_size: {}\n", s.micro_batch_size);
}

/// "changes time, and is not modeled: --a, --b". Without `details` it is one line with the first items of a list that
/// is not empty, and the count of the others.
std::string joined(const std::string& what, const std::vector<std::string>& list, bool details) {
  constexpr std::size_t kLine = 90;  // The first item may be longer.
  std::string text = what + ": " + list.front();
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (!details && text.size() + list[i].size() > kLine)
      return fmt::format("{} and {} more (--details)", text, list.size() - i);
    text += ", " + list[i];
  }
  return text;
}

/// What is trained, after the name of the file that says it. The plan is no part of it, because options change that.
std::string title_of(const TrainingSetup& s, const SetupOptions& o, const std::string& file) {
  std::string model = o.model.empty() ? s.model_name : o.model;
  if (model.empty()) {
    const auto field = [&](std::string_view name) {
      const auto at = std::find_if(s.model.begin(), s.model.end(), [&](const auto& f) { return f.first == name; });
      return at == s.model.end() ? std::string() : at->second;
    };
    model = fmt::format("transformer {} x {}{}", field("layers"), field("hidden"),
                        field("experts").empty() ? "" : " with experts");
  }
  return fmt::format("{}: {}", file.substr(file.rfind('/') + 1), model);
}

}  // namespace

std::optional<Cluster> cluster_named_by(const SetupOptions& options) {
  const std::string file = options.cluster.empty() ? "" : find_file(FileKind::Cluster, options.cluster, options.out);
  if (file.empty()) return {};
  return build_cluster(load_cluster_file(file));
}

std::string scenario_yaml(const TrainingSetup& s, const SetupOptions& o, const std::string& file) {
  if (o.cluster.empty())
    refuse(file, "the file does not say which machines are used",
           "--cluster NAME; stagecraft list topologies shows the names");
  check_reference(FileKind::Cluster, "--cluster", o.cluster, o.out);
  if (!o.model.empty()) check_reference(FileKind::Model, "--model-name", o.model, o.out);
  if (s.micro_batch_size <= 0) refuse(file, "the file does not say the micro-batch size", "add it to the file");
  if (s.global_batch <= 0) refuse(file, "the file does not say the global batch size", "add it to the file");
  const int replicas = std::max(1, replicas_of(s, o, file));
  std::string schedule = s.schedule;
  const std::string group =
      s.chunk_group > 0 && s.chunk_group != s.ranks ? fmt::format(", group: {}", s.chunk_group) : "";
  const auto has_chunks = [&] {  // Stages in a V are two on each rank.
    const config::MapSpec* fields = get_from(schedules::catalog(), "schedule", s.schedule).fields;
    return fields && fields->find("chunks");
  };
  if (s.chunks > 1 && has_chunks()) schedule = fmt::format("{{name: {}, chunks: {}{}}}", s.schedule, s.chunks, group);
  std::string text = "schema: scenario/2\n" + fmt::format("title: {}\n", quoted(title_of(s, o, file))) +
                     model_text(s, o, file) + fmt::format("cluster: {}\n", quoted(o.cluster)) +
                     plan_text(s, replicas, file) +
                     fmt::format("run:\n  schedule: {}\n  global_batch: {}\n", schedule, s.global_batch);
  if (!s.gradient_buckets.empty()) text += fmt::format("  gradient_buckets: {}\n", s.gradient_buckets);
  if (!s.precision.empty()) text += fmt::format("  precision: {}\n", s.precision);
  if (!s.software.empty()) text += fmt::format("software: {}\n", software_text(s));
  return text;
}

SoftwareStack stack_of(const TrainingSetup& s) {
  SoftwareStack stack = software_stack(s.software);
  if (!s.release.empty()) stack = at_release(std::move(stack), s.release);
  if (s.fused_loss) set_fused_loss(stack, *s.fused_loss);
  if (s.gathered_bytes > 0) stack.gathered_bytes = s.gathered_bytes;
  for (const auto& [feature, on] : s.overlap) set_overlap(stack, feature, on);
  if (s.gradient_bytes > 0) set_gradient_bytes(stack, s.gradient_bytes);
  return stack;
}

std::string software_text(const TrainingSetup& s) {
  std::string switches, facts;
  for (const auto& [feature, on] : s.overlap)
    switches += fmt::format("{}{}: {}", switches.empty() ? "" : ", ", name_of(feature), on);
  if (!s.release.empty()) facts += ", release: " + s.release;
  if (s.fused_loss) facts += fmt::format(", fused_loss: {}", *s.fused_loss);
  if (s.gathered_bytes > 0) facts += fmt::format(", gathered_bytes: {}", s.gathered_bytes);
  if (!switches.empty()) facts += ", overlap: {" + switches + "}";
  if (s.gradient_bytes > 0) facts += fmt::format(", gradient_bytes: {}", s.gradient_bytes);
  return facts.empty() ? s.software : "{base: " + s.software + facts + "}";
}

namespace {

/// What an option became, by the part of the scenario that has it.
const char* taken_for(const std::string& note) {
  const std::size_t arrow = note.find(" -> ");
  const std::string field = arrow == std::string::npos ? "" : note.substr(arrow + 4);
  for (const auto& [start, what] : {std::pair{"model", "taken for the model"},
                                    {"plan", "taken for the plan"},
                                    {"pipeline ranks", "taken for the plan"},
                                    {"replicas", "taken for the plan"},
                                    {"stages", "taken for the plan"},
                                    {"run", "taken for the run"},
                                    {"software", "taken for the software"}})
    if (field.starts_with(start)) return what;
  return "taken";
}

}  // namespace

std::vector<std::string> notes_of(const TrainingSetup& s, bool details) {
  std::vector<std::string> notes;
  for (const char* what :
       {"taken for the model", "taken for the plan", "taken for the run", "taken for the software", "taken"}) {
    std::vector<std::string> list;
    for (const std::string& note : s.matched)
      if (std::string_view(taken_for(note)) == what) list.push_back(note);
    if (!list.empty()) notes.push_back(joined(what, list, details));
  }
  const std::pair<const char*, const std::vector<std::string>&> others[] = {
      {"may change time and memory, and is not modeled", s.unmodeled},
      {"changes time, and is not modeled", s.unmodeled_time},
      {"changes memory, and is not modeled", s.unmodeled_memory},
      {"changes neither time nor memory", s.without_use},
      {"not known here", s.unknown}};
  for (const auto& [what, list] : others)
    if (!list.empty()) notes.push_back(joined(what, list, details));
  notes.insert(notes.end(), s.assumed.begin(), s.assumed.end());
  for (const Diagnostic& option : s.of_other_releases)
    notes.push_back(fmt::format("{}: {}; {}", option.path, option.message, option.help));
  return notes;
}

}  // namespace stagecraft
