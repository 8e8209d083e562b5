// The packs of sequences that a search tries for its plans: as `data` says, or with other rooms, rules and orders.

#include "sim/search/pack_choices.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/experiment/sequence_lengths.hpp"

namespace stagecraft {
namespace {

const std::vector<std::string> kFields = {"room", "pack", "order"};
/// In place of the room of the scenario.
constexpr double kRooms[] = {1, 0.25, 0.5, 2, 4};
constexpr Packing kPackings[] = {
    Packing::None,     Packing::InOrder,  Packing::FirstFitDecreasing, Packing::BestFitDecreasing,
    Packing::Balanced, Packing::Workload, Packing::DynamicContext};
constexpr PackOrder kOrders[] = {PackOrder::Given, PackOrder::Hill, PackOrder::Ascending, PackOrder::Descending};

/// The value of the scenario, and then the others where the search chooses.
template <class Value, class Others>
std::vector<Value> with_others(Value configured, bool chooses, const Others& others) {
  std::vector<Value> values{configured};
  for (const Value other : others)
    if (chooses && other != configured) values.push_back(other);
  return values;
}

bool differ_between_replicas(const PackedBatches& packs, int tokens_of_sample) {
  for (std::size_t i = 0; i < packs.packs.size(); ++i)
    if (const std::size_t first = i - i % packs.replicas;
        load_at(packs, i, tokens_of_sample) != load_at(packs, first, tokens_of_sample))
      return true;
  return false;
}

}  // namespace

LoadShares load_shares(const PackedBatches& packs, int replica, int tokens_of_sample) {
  LoadShares shares;
  const int step = replica == kAllReplicas ? 1 : packs.replicas;
  const double count = static_cast<double>(packs.packs.size()) / step;
  for (std::size_t i = std::max(0, replica); i < packs.packs.size(); i += step)
    if (!packs.packs[i].empty()) shares[load_at(packs, i, tokens_of_sample)] += 1 / count;
  return shares;
}

int largest_replica(const PackedBatches& packs) {
  std::vector<double> tokens(packs.replicas, 0);
  for (std::size_t i = 0; i < packs.packs.size(); ++i)
    for (const int n : packs.packs[i]) tokens[i % tokens.size()] += n;
  return static_cast<int>(std::max_element(tokens.begin(), tokens.end()) - tokens.begin());
}

PackChoices::PackChoices(const PlannedExperiment& configured, const std::vector<std::string>& fields)
    : configured_(configured), fields_(fields) {}

bool PackChoices::chooses(const char* field) const {
  return std::find(fields_.begin(), fields_.end(), field) != fields_.end();
}

const std::vector<PackChoice>& PackChoices::choices_for(const PlanSpec& spec) {
  Degrees degrees = spec.group;
  degrees.replicas = spec.replicas;
  const auto [entry, is_new] = made_.try_emplace({degrees.replicas, degrees.context, default_pad(degrees)});
  if (is_new) entry->second = configured_.experiment.source->has("data") ? drawn(degrees) : listed(degrees);
  return entry->second;
}

std::vector<PackChoice> PackChoices::listed(const Degrees& degrees) {
  auto packs = std::make_shared<PackedBatches>(*configured_.experiment.run.packs);
  if (packs->replicas != degrees.replicas) return {};
  packs->pad = default_pad(degrees);
  const bool differ = differ_between_replicas(*packs, tokens_of_sample(configured_.model()));
  return {{.packs = std::move(packs), .words = {}, .sets = {}, .loads = ++loads_, .replicas_differ = differ}};
}

std::vector<PackChoice> PackChoices::drawn(const Degrees& degrees) {
  const PackingRule configured = packing_rule(*configured_.experiment.source, configured_.model(), degrees);
  std::vector<int> rooms{configured.room};
  for (const double factor : kRooms)
    if (const int room = static_cast<int>(factor * configured.room);
        chooses("room") && room != configured.room && room >= 1 && room <= kMaxSequence)
      rooms.push_back(room);
  std::vector<PackChoice> choices;
  for (const Packing packing : with_others(configured.packing, chooses("pack"), kPackings))
    for (const int room : rooms) {
      ++loads_;
      for (const PackOrder order : with_others(configured.order, chooses("order"), kOrders)) {
        PackingRule asked = configured;
        asked.packing = packing, asked.room = room, asked.order = order;
        add(asked, configured, loads_, choices);
      }
    }
  return choices;
}

void PackChoices::add(const PackingRule& asked, const PackingRule& configured, int loads,
                      std::vector<PackChoice>& choices) {
  PackChoice choice{.packs = {}, .words = {}, .sets = {}, .loads = loads, .replicas_differ = false};
  try {
    choice.packs =
        std::make_shared<const PackedBatches>(packs_by(asked, *configured_.experiment.source, configured_.model()));
  } catch (const InputError& e) {  // No room for the longest sequence, or no such context group.
    const bool is_own =
        asked.packing == configured.packing && asked.room == configured.room && asked.order == configured.order;
    if (is_own && refused_.empty()) refused_ = e.problems().front().message;
    return;
  }
  const auto is_there = [&](const PackChoice& other) {
    return other.packs->packs == choice.packs->packs && other.packs->ranks == choice.packs->ranks;
  };
  if (std::any_of(choices.begin(), choices.end(), is_there)) return;
  choice.replicas_differ = differ_between_replicas(*choice.packs, tokens_of_sample(configured_.model()));
  if (asked.packing != configured.packing) choice.sets.push_back("data.pack=" + to_text(asked.packing));
  if (asked.room != configured.room) choice.sets.push_back(fmt::format("data.room={}", asked.room));
  if (asked.order != configured.order) choice.sets.push_back("data.order=" + to_text(asked.order));
  if (!fields_.empty())
    choice.words = fmt::format("packs {}, room {}, order {}", to_text(asked.packing), asked.room, to_text(asked.order));
  choices.push_back(std::move(choice));
}

std::set<std::string> PackChoices::untried() const {
  std::set<std::string> phrases;
  if (!are_used()) return phrases;
  if (!configured_.experiment.source->has("data"))
    return {"other packs and other numbers of replicas, which run.loads lists"};
  if (!refused_.empty()) phrases.insert(fmt::format("plans without packs, such as those where {}", refused_));
  std::vector<std::string> fixed;
  for (const std::string& field : kFields)
    if (!chooses(field.c_str())) fixed.push_back("data." + field);
  if (!fixed.empty()) phrases.insert(fmt::format("other values of {} (--data)", join(fixed)));
  phrases.insert("other values of data.pad, data.replicas and data.counts");
  if (chooses("pack")) phrases.insert("first-fit and best-fit packs of sequences that are not sorted");
  if (chooses("room")) phrases.insert("rooms of packs other than a quarter, half, twice and four times data.room");
  phrases.insert("orders of packs that data.order does not have");
  return phrases;
}

void check_pack_fields(const Experiment& e, const std::vector<std::string>& fields) {
  if (fields.empty()) return;
  for (const std::string& field : fields)
    if (std::find(kFields.begin(), kFields.end(), field) == kFields.end())
      throw InputError(fmt::format("a search does not choose '{}' of data", field), "one or more of " + join(kFields));
  if (!e.source->has("data"))
    throw InputError(e.run.packs ? "run.loads lists the packs, so a search cannot choose how data makes them"
                                 : "the scenario has no data, so there are no packs to choose",
                     "write data: {lengths: megatron-mock, pack: in-order}, or leave the option out");
}

}  // namespace stagecraft
