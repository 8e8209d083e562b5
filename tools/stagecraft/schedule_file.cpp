// The options of `schedule` that check an order of work, from a file or by name (--torch, --streams, --capacity,
// --weights, --lint and more), level 9 of the checks (weight versions), and the errors, which `import` and `export`
// share.

#include "tools/stagecraft/schedule_file.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/json.hpp"
#include "sim/core/text.hpp"
#include "sim/weights/policy.hpp"
#include "sim/weights/reads.hpp"

namespace stagecraft {
namespace {

template <class Value>
Value word_of(const Arguments& a, const std::string& name, const std::vector<std::string>& words,
              const std::vector<Value>& values) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (a.text(name) == words[i]) return values[i];
  throw InputError(fmt::format("--{}: '{}' is not known here", name, a.text(name)), suggest(a.text(name), words));
}

double number_or(const Arguments& a, const std::string& name, double fallback) {
  return a.has(name) ? a.number(name) : fallback;
}

RendezvousOptions rendezvous_options(const Arguments& a) {
  return {.streams = word_of<CommStreams>(a, "streams", {"single", "pair", "direction"},
                                          {CommStreams::Single, CommStreams::Pair, CommStreams::Direction}),
          .grouped = a.flag("grouped"),
          .message = number_or(a, "message-size", 0),
          .eager_below = number_or(a, "eager-below", 0)};
}

StashModel stash_model(const Arguments& a) {
  StashModel model;
  model.each_stash = number_or(a, "stash", 1);
  model.freed_at_input = number_or(a, "freed-at-input", 0);
  if (model.freed_at_input > 1) throw InputError("--freed-at-input is a share from 0 to 1");
  model.message = number_or(a, "message-size", 0);
  model.resident = number_or(a, "resident", 0);
  if (a.has("capacity")) model.capacity = a.number("capacity");
  return model;
}

[[noreturn]] void refuse_message_size() {
  throw InputError("--message-size changes nothing without --eager-below, or --capacity and a file with messages",
                   "leave --message-size out");
}

}  // namespace

std::vector<Argument> check_arguments() {
  using Kind = Argument::Kind;
  return {
      {"--torch", Kind::Text, "The order is for this PyTorch: 2.8 or 2.11"},
      {"--streams", Kind::Text,
       "Check for deadlocks with these message streams of a rank: single, one for all messages; pair, one for each "
       "peer; direction, one for each peer and kind of message (activations or gradients)"},
      {"--grouped", Kind::Flag, "With --streams: send neighboring messages of a stage as one batch"},
      {"--messages", Kind::Text,
       "With --streams: where messages are placed if the order has none: lowered, as PyTorch lowers it; just-in-time, "
       "right before and after the op; prefetch, receives one op earlier (default: lowered)"},
      {"--message-size", Kind::Number,
       "With --eager-below, or --capacity and a file with messages: size of a message (default: 0)"},
      {"--eager-below", Kind::Number,
       "With --streams: messages smaller than this do not wait for their receiver (default: 0)"},
      {"--capacity", Kind::Number, "Memory of a rank: refuse orders that need more"},
      {"--stash", Kind::Number, "With --capacity: size of the stash of one micro-batch in one stage (default: 1)"},
      {"--resident", Kind::Number,
       "With --capacity: resident memory of a rank: weights, gradients, optimizer state (default: 0)"},
      {"--freed-at-input", Kind::Number, "Share of the stash that an input gradient (I) frees (default: 0)"},
      {"--slices", Kind::Count, "With --file: slices of a sequence (default: 1)"},
      {"--weights", Kind::Text,
       "For orders without a drain: check that forward and backward use the same weights version under this policy"},
      {"--update-every", Kind::Count, "With --weights: micro-batches of an update (default: 1)"},
      {"--lint", Kind::Flag, "Warn about valid but suspicious orders"}};
}

FileCheckOptions check_options(const Arguments& a) {
  FileCheckOptions options;
  if (a.has("torch")) options.torch = torch_version(a.text("torch"));
  if (a.has("streams")) options.rendezvous = rendezvous_options(a);
  if (a.has("messages"))
    options.placement =
        word_of<CommsPlacement>(a, "messages", {"lowered", "just-in-time", "prefetch"},
                                {CommsPlacement::Lowered, CommsPlacement::JustInTime, CommsPlacement::Prefetch});
  options.memory = stash_model(a);
  if (a.has("slices")) options.slices = a.count("slices", 1, 1 << 20);
  if (a.has("weights")) get_from(weights::catalog(), "weights policy", a.text("weights"));
  options.lint = a.flag("lint");
  return options;
}

bool asks_for_checks(const Arguments& a) {
  const auto asked = {"torch", "streams", "capacity", "weights", "lint"};
  return std::any_of(asked.begin(), asked.end(), [&](const char* name) { return a.has(name); });
}

void refuse_idle(const Arguments& a) {
  if (a.has("file"))
    for (const char* name : {"ranks", "microbatches", "chunks", "set", "recompute"})
      if (a.has(name))
        throw InputError(fmt::format("--{} is for a schedule by NAME; the order in a file has its own", name),
                         fmt::format("leave --{} out", name));
  const std::pair<const char*, const char*> needs[] = {{"grouped", "streams"},     {"messages", "streams"},
                                                       {"eager-below", "streams"}, {"stash", "capacity"},
                                                       {"resident", "capacity"},   {"update-every", "weights"}};
  for (const auto& [name, other] : needs)
    if (a.has(name) && !a.has(other))
      throw InputError(fmt::format("--{} changes nothing without --{}", name, other), fmt::format("add --{}", other));
  if (a.has("message-size") && !a.has("eager-below") && !a.has("capacity")) refuse_message_size();
}

void refuse_idle(const Arguments& a, const CsvFile& order, const FileCheckOptions& options) {
  if (a.has("messages") && order.communicates)
    throw InputError("--messages is for an order without messages; this one has its own", "leave --messages out");
  if (a.has("message-size") && !a.has("eager-below") && !order.communicates) refuse_message_size();
  if (order.micro_batches % options.slices != 0)
    throw InputError(
        fmt::format("--slices: {} cannot be divided into sequences of {}",
                    pluralize(order.micro_batches, "micro-batch", "es"), pluralize(options.slices, "slice")),
        "a micro-batch of the file is one slice, and the slices of a sequence follow each other");
}

namespace {

Json problem_json(const ScheduleProblem& p, const std::string& file) {
  return JsonObject{{"file", file},       {"code", p.code}, {"level", p.level},    {"rank", p.rank},
                    {"column", p.column}, {"op", p.op},     {"message", p.message}};
}

/// The order of the file without a drain at its end, with an update after every `update_every` backwards of a stage.
Schedule with_updates(const CsvSchedule& csv, const Plan& plan, int update_every) {
  Schedule schedule;
  schedule.drain_every = 0;
  IdVector<StageId, int> finished(plan.stages.size(), 0);
  for (const auto& row : csv.schedule.ranks) {
    auto& ops = schedule.ranks.emplace_back();
    std::vector<Op> due;
    for (const Op& op : row) {
      ops.push_back(op);
      const bool ends = op.kind == OpKind::Backward || op.kind == OpKind::WeightGradient;
      if (int& count = finished[op.stage]; ends && ++count % update_every == 0)
        due.push_back({OpKind::Update, false, op.stage, count / update_every - 1});
      if (op.fused) continue;
      ops.insert(ops.end(), due.begin(), due.end());
      due.clear();
    }
  }
  return schedule;
}

}  // namespace

std::vector<ScheduleProblem> check_versions(const CheckedFile& f, const std::string& policy, int update_every) {
  const WeightsDef& def = get_from(weights::catalog(), "weights policy", policy);
  if (f.compute.micro_batches % update_every != 0)
    throw InputError(fmt::format("--update-every: {} cannot be divided into updates of {}",
                                 pluralize(f.compute.micro_batches, "micro-batch", "es"), update_every));
  Plan plan = f.plan;
  plan.mini_batch = update_every;
  for (Stage& stage : plan.stages)
    if (!stage.micros.empty()) throw InputError("--weights is for pipelines in one direction");
  const Schedule schedule = with_updates(f.compute, plan, update_every);
  const WeightReads reads(schedule, plan, def.paper);
  std::vector<ScheduleProblem> problems;
  std::vector<WeightRead> forward(plan.stages.size() * f.compute.micro_batches);
  for (int d = 0; d < schedule.device_count(); ++d) {
    int index = -1;  // Among the ops of the file.
    for (std::size_t i = 0; i < schedule.row(DeviceId{d}).size() && problems.size() < 20; ++i) {
      const Op& op = schedule.row(DeviceId{d})[i];
      if (op.kind == OpKind::Update) continue;
      ++index;
      const WeightRead read = reads.at(DeviceId{d}, i);
      WeightRead& first = forward[op.stage.value * f.compute.micro_batches + op.micro];
      if (op.kind == OpKind::Forward) first = read;
      const bool both = read.from == WeightsFrom::Version && first.from == WeightsFrom::Version;
      if (!both || read.version == first.version) continue;
      problems.push_back(
          {"weight-version", 9, d, f.compute.columns[d][index], to_text(op),
           fmt::format("it uses version {} of the weights, its forward used version {}", read.version, first.version)});
    }
  }
  return problems;
}

CheckedFile checked_order(const Arguments& a, const std::string& text, const std::string& name,
                          const FileCheckOptions& options) {
  CheckedFile f = check_file(text, name, options);
  if (f.cells.empty()) refuse_idle(a, f.csv, options);
  if (f.good() && a.has("weights"))
    f.problems = check_versions(f, a.text("weights"), a.has("update-every") ? a.count("update-every", 1, 1 << 20) : 1);
  return f;
}

CheckedFile checked_file(const Arguments& a) {
  return checked_order(a, read_file(a.text("file")), a.text("file"), check_options(a));
}

void throw_if_bad(const CheckedFile& f, const std::string& file) {
  throw_if_any(f.cells);
  throw_if_any(f.problems, file);
}

std::string with_findings(const std::string& report, const CheckedFile& f, const std::string& file) {
  Json json = Json::parse(report).value();
  JsonArray problems, warnings;
  for (const CellProblem& p : f.cells) problems.push_back(problem_json(p.problem, file));
  for (const ScheduleProblem& p : f.problems) problems.push_back(problem_json(p, file));
  for (const ScheduleProblem& p : f.warnings) warnings.push_back(problem_json(p, file));
  json["problems"] = std::move(problems);
  json["warnings"] = std::move(warnings);
  return json.dump(2);
}

int exit_code(const CheckedFile& f) {
  if (f.good()) return 0;
  return !f.problems.empty() && cannot_be_done(f.problems.front()) ? 3 : 2;
}

}  // namespace stagecraft
