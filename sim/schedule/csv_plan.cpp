#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "sim/schedule/chains.hpp"
#include "sim/schedule/csv.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMost = 20;        // Problems that are listed.
constexpr std::size_t kMostChains = 64;  // Pieces are numbered for every stage, so many short chains would take the
                                         // square of the file.

using Micros = std::vector<std::vector<int>>;  // That each stage forwards, ascending.

/// Puts each stage on its rank and collects what it forwards.
Micros place_stages(const CsvSchedule& csv, Plan& plan, std::vector<ScheduleProblem>& problems) {
  Micros micros(plan.stages.size());
  for (std::size_t rank = 0; rank < csv.schedule.devices.size(); ++rank) {
    const auto& ops = csv.schedule.devices[rank];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      auto& devices = plan.stages[static_cast<std::size_t>(ops[i].stage)].devices;
      if (devices.empty()) devices.emplace_back(static_cast<std::int64_t>(rank));
      if (devices.front() != static_cast<int>(rank) && problems.size() < kMost)
        problems.push_back(
            {"wrong-rank", 2, static_cast<int>(rank), csv.columns[rank][i], to_text(ops[i]),
             fmt::format("stage {} runs on rank {} and on rank {}", ops[i].stage.value, devices.front().value, rank)});
      if (ops[i].kind == OpKind::Forward) micros[static_cast<std::size_t>(ops[i].stage)].push_back(ops[i].micro);
    }
  }
  for (auto& own : micros) {
    if (!std::is_sorted(own.begin(), own.end())) std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
  }
  return micros;
}

/// Chains are copies of one pipeline: equally long, and together they run every micro-batch.
void check_chains(std::vector<int> starts, const Micros& micros, const CsvSchedule& csv,
                  std::vector<ScheduleProblem>& problems) {
  if (starts.size() > kMostChains) {
    problems.push_back(
        {"chain",
         2,
         -1,
         -1,
         {},
         fmt::format("{} stages start a chain of their own; {} are the most", starts.size(), kMostChains)});
    return;
  }
  std::vector<bool> all(static_cast<std::size_t>(csv.micro_batches), false);
  for (const int s : starts)
    for (const int m : micros[static_cast<std::size_t>(s)]) all[static_cast<std::size_t>(m)] = true;
  for (int m = 0; m < csv.micro_batches && problems.size() < kMost; ++m)
    if (!all[static_cast<std::size_t>(m)])
      problems.push_back({"missing", 2, -1, -1, {}, fmt::format("micro-batch {} never starts", m)});
  starts.push_back(csv.stages);
  for (std::size_t c = 1; c + 1 < starts.size(); ++c) {
    if (starts[c + 1] - starts[c] == starts[1]) continue;
    problems.push_back({"chain",
                        2,
                        -1,
                        -1,
                        {},
                        fmt::format("stages {} to {} run micro-batches of their own but are not as many as stages 0 to "
                                    "{}",
                                    starts[c], starts[c + 1] - 1, starts[1] - 1)});
    return;
  }
}

/// Joins stage s to the one before when they share micro-batches; false when it starts a chain.
bool join_chain(int s, const Micros& micros, Plan& plan, std::vector<ScheduleProblem>& problems) {
  const auto &own = micros[static_cast<std::size_t>(s)], &before = micros[static_cast<std::size_t>(s) - 1];
  if (own != before) {
    std::vector<int> shared, odd;
    std::set_intersection(own.begin(), own.end(), before.begin(), before.end(), std::back_inserter(shared));
    if (shared.empty()) return false;
    std::set_symmetric_difference(own.begin(), own.end(), before.begin(), before.end(), std::back_inserter(odd));
    const bool here = std::binary_search(own.begin(), own.end(), odd.front());
    if (problems.size() < kMost)
      problems.push_back({"chain",
                          2,
                          plan.stages[static_cast<std::size_t>(s)].devices.front(),
                          -1,
                          {},
                          fmt::format("stages {} and {} follow one another but do not run the same micro-batches: {} "
                                      "is on {} only",
                                      s - 1, s, odd.front(), here ? s : s - 1)});
  }
  plan.edges.push_back({StageId{s - 1}, StageId{s}, {}});
  return true;
}

}  // namespace

Plan implied_plan(const CsvSchedule& csv, std::vector<ScheduleProblem>& problems) {
  Plan plan;
  plan.mini_batch = csv.micro_batches;
  plan.stages.resize(static_cast<std::size_t>(csv.stages));
  const Micros micros = place_stages(csv, plan, problems);
  std::vector<int> chain_starts{0};
  for (int s = 0; s < csv.stages; ++s) {
    auto& stage = plan.stages[static_cast<std::size_t>(s)];
    const auto& own = micros[static_cast<std::size_t>(s)];
    if (own.empty()) {
      if (problems.size() < kMost)
        problems.push_back(
            {"missing",
             2,
             -1,
             -1,
             {},
             fmt::format("stage {} runs no forward at all; stages are numbered from 0 without gaps", s)});
      if (stage.devices.empty()) stage.devices.emplace_back(0);
      continue;
    }
    if (own.size() < static_cast<std::size_t>(csv.micro_batches)) stage.micros = own;
    if (s > 0 && !join_chain(s, micros, plan, problems)) chain_starts.push_back(s);
  }
  if (problems.empty()) check_chains(chain_starts, micros, csv, problems);
  return plan;
}

std::vector<ScheduleProblem> why_not_torch(const ActionTable& table, const Plan& plan, int slices,
                                           TorchVersion version) {
  std::vector<ScheduleProblem> problems;
  const auto refuse = [&](std::string why) { problems.push_back({"torch", 1, -1, -1, {}, std::move(why)}); };
  if (slices > 1) refuse("PyTorch does not cut micro-batches into slices of the sequence");
  if (const std::string why = why_no_chains(plan); !why.empty()) refuse(why);
  for (const Stage& stage : plan.stages)
    if (!stage.micros.empty()) {
      refuse("PyTorch runs every micro-batch through one chain of stages; pipelines in both directions are several");
      break;
    }
  for (std::size_t r = 0; r < table.ranks.size(); ++r)
    for (std::size_t i = 0; i < table.ranks[r].size() && problems.size() < kMost; ++i) {
      const Action& a = table.ranks[r][i];
      const auto bad = [&](const char* why) {
        problems.push_back({"torch", 1, static_cast<int>(r), static_cast<int>(i), to_text(a), why});
      };
      if (a.kind == ActionKind::Recompute) bad("PyTorch has no op for recomputation");
      if (a.kind == ActionKind::Update) bad("PyTorch has no op for an update");
      if (version != TorchVersion::V2_8) continue;
      if (a.kind == ActionKind::ReduceGradient) bad("PyTorch 2.8 does not know REDUCE_GRAD");
      if (a.is_compute() && a.fused) bad("PyTorch 2.8 does not know OVERLAP_F_B");
    }
  return problems;
}

}  // namespace stagecraft
