// The fields `data` and `run.loads`: sequences of different lengths, and how they become micro-batches.

#include "sim/experiment/packed_data.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/micro_batch_sizes.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/sequence_lengths.hpp"
#include "sim/plan/packing.hpp"

namespace stagecraft {
namespace {

using config::Problems;
using config::Value;

constexpr const char* kCode = "loads";

template <class Word>
struct WordOf {
  const char* word;
  Word value;
};
constexpr WordOf<Packing> kPackings[] = {{"none", Packing::None},
                                         {"in-order", Packing::InOrder},
                                         {"first-fit", Packing::FirstFit},
                                         {"first-fit-decreasing", Packing::FirstFitDecreasing},
                                         {"best-fit", Packing::BestFit},
                                         {"best-fit-decreasing", Packing::BestFitDecreasing},
                                         {"balanced", Packing::Balanced},
                                         {"workload", Packing::Workload},
                                         {"dynamic-context", Packing::DynamicContext}};
constexpr WordOf<PackOrder> kOrders[] = {{"given", PackOrder::Given},
                                         {"ascending", PackOrder::Ascending},
                                         {"descending", PackOrder::Descending},
                                         {"hill", PackOrder::Hill}};
constexpr WordOf<PackShare> kShares[] = {
    {"round-robin", PackShare::RoundRobin}, {"flops", PackShare::Work}, {"tokens", PackShare::Tokens}};

template <class Word, std::size_t N>
std::vector<std::string> words_of(const WordOf<Word> (&table)[N]) {
  std::vector<std::string> words;
  for (const auto& [word, value] : table) words.emplace_back(word);
  return words;
}
template <class Word, std::size_t N>
std::string word_of(const WordOf<Word> (&table)[N], Word value) {
  for (const auto& [word, named] : table)
    if (named == value) return word;
  throw InternalError("a value without a word");
}
template <class Word, std::size_t N>
Word value_of(const WordOf<Word> (&table)[N], const Value& written) {
  for (const auto& [word, value] : table)
    if (written.text == word) return value;
  throw InternalError("a word that no check let pass");
}

/// A whole number of tokens, or a problem at its place.
int length_of(const Value& v, const char* path) {
  std::string_view rest = v.text;
  const std::optional<int> n = v.is_scalar() ? read_number(rest) : std::nullopt;
  if (n && rest.empty() && *n >= 1 && *n <= kMaxSequence) return *n;
  throw InputError(
      {{v.where, path, v.is_scalar() ? fmt::format("'{}' is no number of tokens", v.text) : "a length is one number",
        "a whole number from 1 on", kCode}});
}

/// [micro-batch], of one replica.
std::vector<Pack> listed_packs(const Value& list) {
  std::vector<Pack> packs;
  for (const Value& item : list.items) {
    if (!item.is_list() || item.items.empty())
      throw InputError({{item.where, "run.loads", "a micro-batch has the lengths of its sequences, one at least",
                         "loads: [[3072, 1024], [4096]] has two micro-batches", kCode}});
    Pack& pack = packs.emplace_back();
    for (const Value& length : item.items) pack.push_back(length_of(length, "run.loads"));
  }
  return packs;
}

PackedBatches listed_batches(const Value& loads) {
  if (!loads.is_list() || loads.items.empty())
    throw InputError({{loads.where, "run.loads", "a list is needed: the lengths of each micro-batch",
                       "loads: [[3072, 1024], [4096]], or a file with replica, micro_batch, length", kCode}});
  const Value& first = loads.items.front();
  const bool by_replica = first.is_list() && !first.items.empty() && first.items.front().is_list();
  std::vector<std::vector<Pack>> of_replica;
  if (by_replica)
    for (const Value& replica : loads.items) of_replica.push_back(listed_packs(replica));
  else
    of_replica.push_back(listed_packs(loads));
  PackedBatches batches;
  batches.replicas = static_cast<int>(of_replica.size());
  for (const std::vector<Pack>& packs : of_replica)
    batches.micro_batches = std::max(batches.micro_batches, static_cast<int>(packs.size()));
  for (std::vector<Pack>& packs : of_replica) packs.resize(batches.micro_batches);
  for (int j = 0; j < batches.micro_batches; ++j)
    for (std::vector<Pack>& packs : of_replica) batches.packs.push_back(std::move(packs[j]));
  return batches;
}

/// Replicas that share each micro-batch, which all stages have to have alike.
int replicas_of(const Value& tree) {
  const std::vector<int> counts = sharing_replicas(tree.at("plan"));
  return *std::max_element(counts.begin(), counts.end());
}

/// How the plan of the scenario divides sequences and micro-batches.
Degrees degrees_of(const Value& tree) {
  const Value* group = tree.at("plan").find("group");
  const auto size = [&](const char* axis) { return group && group->has(axis) ? config::as_int(group->at(axis)) : 1; };
  const Value* sequence = group ? group->find("sequence") : nullptr;
  return {.replicas = replicas_of(tree),
          .context = size("context"),
          .tensor = size("tensor"),
          .sequence = sequence && config::as_bool(*sequence)};
}

/// What a context group must be like to give each sequence a part of its ranks.
void check_dynamic_context(const Value& tree, const PackingRule& rule) {
  const auto refuse = [&](const std::string& what, const std::string& help) {
    throw InputError({{tree.at("data").at("pack").where, "data.pack", what, help, kCode}});
  };
  const bool has_halves = rule.context > 1 && (rule.context & (rule.context - 1)) == 0;
  if (!has_halves)
    refuse(
        fmt::format("short sequences have halves, quarters and so on of a context group, and plan.group.context is {}",
                    rule.context),
        "plan.group.context: 8, or another power of two; or pack: balanced");
  if (rule.room % rule.context != 0)
    refuse(fmt::format("the room of {} is no whole number of tokens on each of {}", pluralize(rule.room, "token"),
                       pluralize(rule.context, "rank")),
           fmt::format("data.room: {}", std::max(1, rule.room / rule.context) * rule.context));
  const Value* group = tree.at("plan").find("group");
  if (const Value* type = group ? group->find("context_type") : nullptr; type && type->text == "a2a")
    refuse("with context_type: a2a all ranks of the group exchange heads of each sequence",
           "plan.group.context_type: p2p");
}

/// Floating-point operations of a forward of one sequence.
WorkOfLength work_rule(const ModelGraph& model, int tokens) {
  double of_token = 0;
  std::vector<std::pair<Operation, double>> attention;
  for (const Layer& layer : model.layers)
    for (const Operation& op : layer.operations) {
      const double amount = flops(op, Pass::Forward).value;
      if (op.kind == OperationKind::Attention && op.per_token)
        attention.emplace_back(op, amount);
      else if (op.per_token)
        of_token += amount / tokens;
    }
  return [=](int length) {
    const Load load = load_of({length}, tokens);
    double work = of_token * length;
    for (const auto& [op, amount] : attention) work += amount * pairs_factor(op, load);
    return work;
  };
}

void check_lengths(const PackedBatches& batches, int tokens, const Value& place, const char* path) {
  for (const Pack& pack : batches.packs)
    for (const int n : pack)
      if (n > tokens)
        throw InputError(
            {{place.where, path,
              fmt::format("a sequence of {} tokens is longer than the {} of the model's context", n, tokens),
              fmt::format("model.sequence: {}, if the model can have it, or shorter sequences", n), kCode}});
}

}  // namespace

PackedBatches packs_by(const PackingRule& rule, const Value& tree, const ModelGraph& model) {
  const Value &data = tree.at("data"), &run = tree.at("run");
  const int tokens = tokens_of_sample(model);
  if (rule.packing == Packing::DynamicContext) check_dynamic_context(tree, rule);
  const LengthRule lengths = length_rule(data.at("lengths"));
  std::vector<std::vector<int>> drawn;
  for (int i = 0; i < config::as_int(run.at("iterations")); ++i)
    drawn.push_back(draw_lengths(lengths, config::as_int(run.at("global_batch")), i));
  for (const std::vector<int>& one : drawn)
    for (const int n : one)
      if (const std::int64_t padded = (std::int64_t{n} + rule.pad - 1) / rule.pad * rule.pad;
          padded > rule.room && n <= tokens)
        throw InputError({{data.at("lengths").where, "data.lengths",
                           fmt::format("a sequence of {} tokens{} has no room in a pack of {}", n,
                                       padded > n ? fmt::format(", {} with padding,", padded) : "", rule.room),
                           fmt::format("data.room: {}", padded), kCode}});
  for (const std::vector<int>& one : drawn) check_lengths({.packs = {one}}, tokens, data.at("lengths"), "data.lengths");
  return pack_iterations(drawn, rule, work_rule(model, tokens));
}

namespace {

/// The lines of a file that a scenario names, with their places.
std::vector<Value> lines_of_file(const Value& name) {
  const std::filesystem::path base =
      name.where.file.starts_with('<') ? "" : std::filesystem::path(name.where.file).parent_path();
  const std::string file = (base / name.text).lexically_normal().string();
  std::vector<Value> lines;
  int number = 0;
  for (const std::string& line : split(read_file(file), '\n')) {
    ++number;
    const std::string text(trim(line.substr(0, line.find('#'))));
    if (!text.empty()) lines.push_back(Value::scalar(text, {file, number, 1}, "computed"));
  }
  return lines;
}

Value list_at(const Where& where) {
  Value list;
  list.kind = Value::Kind::List;
  list.where = where;
  return list;
}

/// The numbers of a file take the place of its name, so that the resolved scenario stands alone.
void inline_lengths(Value& lengths) {
  if (lengths.at("kind").text != "file") return;
  Value& name = *lengths.find("file");
  Value list = list_at(name.where);
  for (const Value& line : lines_of_file(name)) {
    length_of(line, "data.lengths.file");
    list.items.push_back(line);
  }
  if (list.items.empty())
    throw InputError({{name.where, "data.lengths.file", fmt::format("'{}' has no length", name.text),
                       "one length on each line", kCode}});
  lengths.find("kind")->text = "list";
  for (config::Member& m : lengths.members)
    if (m.key == "file") m.key = "lengths", m.value = list;
}

/// Rows `replica,micro_batch,length` become nested lists.
void inline_loads(Value& loads) {
  if (!loads.is_scalar()) return;
  std::map<int, std::map<int, std::vector<Value>>> rows;
  for (const Value& line : lines_of_file(loads)) {
    const std::vector<std::string> cells = split(line.text, ',');
    if (cells.front() == "replica") continue;
    const auto number = [&](std::size_t c) {
      const std::string cell(c < cells.size() ? trim(cells[c]) : "");
      std::string_view rest = cell;
      const std::optional<int> n = read_number(rest);
      if (!n || !rest.empty() || *n < 0)
        throw InputError({{line.where, "run.loads", fmt::format("'{}' is no row of three numbers", line.text),
                           "replica,micro_batch,length, such as 0,3,4096", kCode}});
      return *n;
    };
    Value length = Value::scalar(fmt::format("{}", number(2)), line.where, "computed");
    length_of(length, "run.loads");
    rows[number(0)][number(1)].push_back(std::move(length));
  }
  Value all_replicas = list_at(loads.where);
  const auto require_next = [&](const char* what, int number, const Value& list, const Value& at) {
    if (const auto next = std::ssize(list.items); number != next)
      throw InputError({{at.where, "run.loads", fmt::format("there is no {} {} before {}", what, next, number),
                         "replicas and their micro-batches are numbered from 0 on, without gaps", kCode}});
  };
  for (auto& [replica, micro_batches] : rows) {
    require_next("replica", replica, all_replicas, micro_batches.begin()->second.front());
    Value& of_replica = all_replicas.items.emplace_back(list_at(loads.where));
    for (auto& [micro, lengths] : micro_batches) {
      require_next("micro-batch", micro, of_replica, lengths.front());
      of_replica.items.emplace_back(list_at(loads.where)).items = lengths;
    }
  }
  loads = std::move(all_replicas);
}

void insert_micro_batches(Value& run, int count, const Where& where) {
  const auto at = std::find_if(run.members.begin(), run.members.end(), [](const config::Member& m) {
    return m.key != "schedule";  // It is the field before `micro_batches`.
  });
  run.members.insert(at, {"micro_batches", where, Value::scalar(fmt::format("{}", count), where, "computed")});
}

}  // namespace

const config::MapSpec& data_fields() {
  static const config::MapSpec spec{
      .title = "The sequences that a language model is trained on, where they differ in length.",
      .fields = {
          sequence_lengths_field(),
          config::choice("pack", words_of(kPackings))
              .fallback("none")
              .doc(
                  "How sequences become packs; a micro-batch of a replica is one pack. none: each sequence is one. "
                  "in-order: next fit, as in Megatron-LM. first-fit: the first pack with room. best-fit: the pack "
                  "with the least room that is enough. With -decreasing: longest sequences first. balanced: the "
                  "costliest first, to the pack with the least FLOPs that has room. workload: as "
                  "balanced, but sequences longer than half the room wait for an iteration in which each pack gets one "
                  "(WLB-LLM). dynamic-context: as balanced, but each sequence is divided over the fewest ranks of "
                  "plan.group.context that have room for it, each for room / context tokens (Megatron-LM's "
                  "hybrid-context-parallel). Ranks of a group wait for the busiest of them in each op."),
          config::integer("room", 1, kMaxSequence)
              .optional()
              .doc("Most tokens of a pack. Default: the sequence of the model."),
          config::integer("pad", 1, 1 << 20)
              .optional()
              .doc(
                  "Each sequence is padded to a multiple of these tokens. Default: 2 x context x tensor (with sequence "
                  "parallelism) of plan.group."),
          config::choice("replicas", words_of(kShares))
              .fallback("round-robin")
              .doc("Which packs a replica gets: in turn, or the largest first to the replica with the least FLOPs or "
                   "tokens."),
          config::choice("counts", {"equal", "free"})
              .fallback("equal")
              .doc("Whether all replicas have the same count of packs, or as many as `replicas` gives them. With free, "
                   "a replica with fewer packs is done earlier."),
          config::choice("order", words_of(kOrders))
              .fallback("given")
              .doc("Order of the packs of a replica by their FLOPs. hill: small, large, small.")}};
  return spec;
}

config::Field loads_field() {
  return config::any("loads").optional().doc(
      "Micro-batches that differ: for each the tokens of its sequences, such as [[3072, 1024], [4096]]; a list of "
      "those "
      "for several replicas; or a CSV file with replica, micro_batch, length. No sequence attends to another.");
}

int tokens_of_sample(const ModelGraph& model) {
  int tokens = 0;
  for (const Layer& layer : model.layers)
    for (const Operation& op : layer.operations)
      if (op.kind == OperationKind::Embedding) tokens = static_cast<int>(op.rows);
  return tokens;
}

std::string to_text(Packing packing) { return word_of(kPackings, packing); }
std::string to_text(PackOrder order) { return word_of(kOrders, order); }

int default_pad(const Degrees& degrees) {
  const int tensor = degrees.sequence ? degrees.tensor : 1;
  return degrees.context > 1 ? 2 * degrees.context * tensor : tensor;
}

PackingRule packing_rule(const Value& tree, const ModelGraph& model, const Degrees& degrees) {
  const Value& data = tree.at("data");
  return {.packing = value_of(kPackings, data.at("pack")),
          .share = value_of(kShares, data.at("replicas")),
          .order = value_of(kOrders, data.at("order")),
          .room = data.has("room") ? config::as_int(data.at("room")) : tokens_of_sample(model),
          .pad = data.has("pad") ? config::as_int(data.at("pad")) : default_pad(degrees),
          .replicas = degrees.replicas,
          .context = degrees.context,
          .free_counts = data.at("counts").text == "free"};
}

std::shared_ptr<const PackedBatches> read_packs(const Value& tree, const ModelGraph& model) {
  const Value *data = tree.find("data"), *loads = tree.at("run").find("loads");
  if (!data && !loads) return nullptr;
  const int tokens = tokens_of_sample(model);
  if (tokens == 0)
    throw InputError({{(data ? data : loads)->where, data ? "data" : "run.loads",
                       fmt::format("the samples of '{}' are no sequences of tokens", model.name),
                       "a language model, such as gpt2-small", kCode}});
  const Degrees degrees = degrees_of(tree);
  PackedBatches batches = data ? packs_by(packing_rule(tree, model, degrees), tree, model) : listed_batches(*loads);
  if (loads) batches.pad = default_pad(degrees);
  if (loads) check_lengths(batches, tokens, *loads, "run.loads");
  return std::make_shared<const PackedBatches>(std::move(batches));
}

PackedBatches equal_packs(const Value& tree, const ModelGraph& model) {
  PackedBatches batches{.replicas = replicas_of(tree),
                        .micro_batches = config::as_int(tree.at("run").at("micro_batches")),
                        .pad = default_pad(degrees_of(tree))};
  batches.packs.resize(std::int64_t{batches.replicas} * batches.micro_batches, {tokens_of_sample(model)});
  return batches;
}

void require_slices(const ModelGraph& model, int slices) {
  if (const int tokens = tokens_of_sample(model); tokens < slices)
    throw InputError(
        tokens == 0 ? fmt::format("the samples of '{}' are no sequences of tokens, which slices cut", model.name)
                    : fmt::format("{} cannot be cut into {}", pluralize(tokens, "token"), pluralize(slices, "slice")),
        tokens == 0 ? "a language model, such as gpt2-small, or run.schedule.cut: false"
                    : fmt::format("at most {} slices", tokens));
  for (const Layer& layer : model.layers)
    for (const Operation& op : layer.operations)
      if (op.kind == OperationKind::Attention && op.per_token && !op.causal)
        throw InputError(
            fmt::format("attention in layer '{}' looks at later tokens, which a slice does not have yet", layer.name),
            "a model with causal attention, such as gpt2-small, or a schedule without slices");
}

void require_whole_sequences(const PackedBatches& packs, int slices) {
  if (packs.micro_batches % slices == 0) return;
  throw Infeasible("micro-batches",
                   fmt::format("with run.schedule.cut: false each pack is a slice, and {} of a replica are no whole "
                               "number of sequences of {}",
                               pluralize(packs.micro_batches, "pack"), pluralize(slices, "slice")),
                   fmt::format("run.schedule.cut: true, which cuts each pack into {}; or a multiple of {} packs for "
                               "each replica",
                               pluralize(slices, "slice"), slices));
}

bool settle_packs(Value& tree, Problems& problems) {
  Value& run = *tree.find("run");
  Value *data = tree.find("data"), *loads = run.find("loads");
  if (!data && !loads) return false;
  const Where where = (data ? data : loads)->where;
  const auto refuse = [&](const Value& place, const char* path, std::string what, const char* help) {
    problems.add(place.where, path, std::move(what), help, kCode);
    return true;
  };
  if (data && loads) return refuse(*loads, "run.loads", "`data` says the loads, too", "give one of them");
  if (data && !run.has("global_batch"))
    return refuse(*data, "data", "the number of sequences of an iteration is needed", "write run.global_batch: 512");
  if (loads && run.has("global_batch"))
    return refuse(run.at("global_batch"), "run.global_batch", "the loads say what an iteration has", "leave it out");
  try {
    if (data) inline_lengths(*data->find("lengths"));
    if (loads) inline_loads(*loads);
    const int count = read_packs(tree, build_model(tree.at("model")))->micro_batches;
    const Value* written = run.find("micro_batches");
    if (!written)
      insert_micro_batches(run, count, where);
    else if (config::as_int(*written) != count)
      return refuse(*written, "run.micro_batches",
                    fmt::format("the packs make {} for each replica", pluralize(count, "micro-batch", "es")),
                    "leave it out");
  } catch (const InputError& e) {
    for (const Diagnostic& d : e.problems())
      problems.add(d.where.file.empty() ? where : d.where, d.path.empty() ? (data ? "data" : "run.loads") : d.path,
                   d.message, d.help, d.code);
  }
  return true;
}

}  // namespace stagecraft
