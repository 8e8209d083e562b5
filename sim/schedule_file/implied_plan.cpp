// The plan that the rows of a schedule file imply (chains of stages and their micro-batches), and the problems of
// structure that leave no plan.

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/core.h>

#include "sim/schedule_file/csv.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostChains = 64;  // Pieces are numbered for every stage, so more short chains would take
                                         // memory that grows with the square of the file.

using Micros = std::vector<std::vector<int>>;  // [stage]: the micro-batches that it forwards, ascending.

/// For each stage the rank with most of its ops, the first of several: an op elsewhere is taken as the mistake.
std::vector<int> ranks_of_stages(const CsvSchedule& csv) {
  std::vector<std::map<int, int>> ops(csv.stages);
  for (int rank = 0; rank < csv.schedule.device_count(); ++rank)
    for (const Op& op : csv.schedule.row(DeviceId{rank})) ++ops[op.stage.value][rank];
  std::vector<int> ranks(ops.size(), -1);
  for (std::size_t s = 0; s < ops.size(); ++s)
    for (const auto& [rank, count] : ops[s])
      if (ranks[s] < 0 || count > ops[s].at(ranks[s])) ranks[s] = rank;
  return ranks;
}

/// Puts each stage on its rank and collects what it forwards.
Micros place_stages(const CsvSchedule& csv, Plan& plan, std::vector<ScheduleProblem>& problems) {
  Micros micros(plan.stages.size());
  const std::vector<int> ranks = ranks_of_stages(csv);
  for (std::size_t s = 0; s < ranks.size(); ++s)
    if (ranks[s] >= 0) plan.stages[StageId{s}].place_on({DeviceId{ranks[s]}});
  for (int rank = 0; rank < csv.schedule.device_count(); ++rank) {
    const auto& ops = csv.schedule.row(DeviceId{rank});
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto& devices = plan.stages[ops[i].stage].leaders;
      if (devices.front().value != rank && problems.size() < kMaxListedProblems)
        problems.push_back(
            {"wrong-rank", 2, rank, csv.columns[rank][i], to_text(ops[i]),
             fmt::format("stage {} runs on rank {} and on rank {}", ops[i].stage.value, devices.front().value, rank)});
      if (ops[i].kind == OpKind::Forward) micros[ops[i].stage.value].push_back(ops[i].micro);
    }
  }
  for (auto& stage_micros : micros) {
    if (!std::is_sorted(stage_micros.begin(), stage_micros.end())) std::sort(stage_micros.begin(), stage_micros.end());
    stage_micros.erase(std::unique(stage_micros.begin(), stage_micros.end()), stage_micros.end());
  }
  return micros;
}

/// Reports each micro-batch that never starts. When the last ones never start, the op with such a number is blamed
/// once.
void report_missing(const std::vector<bool>& starts, const CsvSchedule& csv, std::vector<ScheduleProblem>& problems) {
  const auto end = std::find(starts.rbegin(), starts.rend(), true).base() - starts.begin();
  for (int m = 0; m < end && problems.size() < kMaxListedProblems; ++m)
    if (!starts[m]) problems.push_back({"missing", 2, -1, -1, {}, fmt::format("micro-batch {} never starts", m)});
  for (int rank = 0; rank < csv.schedule.device_count() && end < csv.micro_batches; ++rank) {
    const auto& ops = csv.schedule.row(DeviceId{rank});
    const auto last = std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.micro >= end; });
    if (last == ops.end()) continue;
    problems.push_back({"missing", 2, rank, csv.columns[rank][last - ops.begin()], to_text(*last),
                        fmt::format("micro-batch {} never starts: the last that does is {}", last->micro, end - 1)});
    return;
  }
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
  std::vector<bool> started(csv.micro_batches, false);
  for (const int s : starts)
    for (const int m : micros[s]) started[m] = true;
  report_missing(started, csv, problems);
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

/// The first of the micro-batches with the fewest ops.
int least_run(const std::vector<int>& micros, const CsvSchedule& csv) {
  std::map<int, int> ops;
  for (const int m : micros) ops[m] = 0;
  for (const auto& row : csv.schedule.ranks)
    for (const Op& op : row)
      if (const auto it = ops.find(op.micro); it != ops.end()) ++it->second;
  return *std::min_element(micros.begin(), micros.end(), [&](int a, int b) { return ops.at(a) < ops.at(b); });
}

/// Two stages in a row do not forward the same. Of the micro-batches that one of them alone forwards the one with the
/// fewest ops tells most: when the other stage has ops of it, that stage lacks its forward; else this forward is wrong.
ScheduleProblem broken_chain(int s, const std::vector<int>& odd, const Micros& micros, const Plan& plan,
                             const CsvSchedule& csv) {
  const int micro = least_run(odd, csv);
  const auto& current = micros[s];
  const int has = std::binary_search(current.begin(), current.end(), micro) ? s : s - 1, lacks = 2 * s - 1 - has;
  const auto place = [&](int stage, bool forward) -> std::pair<int, int> {
    const DeviceId rank = plan.stages[StageId{stage}].leaders.front();
    const auto& ops = csv.schedule.row(rank);
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops[i].stage.value == stage && ops[i].micro == micro && (ops[i].kind == OpKind::Forward) == forward)
        return {rank.value, csv.columns[rank.value][i]};
    return {rank.value, -1};
  };
  const auto other = place(lacks, false), slip = place(has, true);
  const bool missing = other.second >= 0 || slip.second < 0;
  if (other.second >= 0) {
    const std::string forward = to_text(Op{OpKind::Forward, false, StageId{lacks}, micro});
    return {"missing", 2,       other.first,
            -1,        forward, fmt::format("{} never runs, and stage {} runs its backward", forward, lacks)};
  }
  return {"chain",
          2,
          missing ? other.first : slip.first,
          missing ? -1 : slip.second,
          to_text(Op{OpKind::Forward, false, StageId{missing ? lacks : has}, micro}),
          fmt::format("stages {} and {} follow one another but do not run the same micro-batches: {} is on {} only",
                      s - 1, s, micro, has)};
}

/// Explains a stage without a forward: either no op has its number, or its other ops lack their forward.
ScheduleProblem no_forward(int s, const CsvSchedule& csv) {
  for (int rank = 0; rank < csv.schedule.device_count(); ++rank)
    for (const Op& op : csv.schedule.row(DeviceId{rank}))
      if (op.stage.value == s && op.kind != OpKind::Update) {
        const std::string forward = to_text(Op{OpKind::Forward, false, op.stage, op.micro});
        return {"missing", 2, rank, -1, forward, fmt::format("{} never runs: stage {} runs no forward", forward, s)};
      }
  return {"missing", 2,  -1,
          -1,        {}, fmt::format("stage {} runs no forward at all; stages are numbered from 0 without gaps", s)};
}

/// Joins stage s to the one before when they share micro-batches; false when it starts a chain.
bool join_chain(int s, const Micros& micros, Plan& plan, const CsvSchedule& csv,
                std::vector<ScheduleProblem>& problems) {
  const auto &current = micros[s], &before = micros[s - 1];
  if (current != before) {
    std::vector<int> shared, odd;
    std::set_intersection(current.begin(), current.end(), before.begin(), before.end(), std::back_inserter(shared));
    if (shared.empty()) return false;
    std::set_symmetric_difference(current.begin(), current.end(), before.begin(), before.end(),
                                  std::back_inserter(odd));
    const bool follows = !problems.empty() && problems.front().code == "wrong-rank";
    if (problems.size() < kMaxListedProblems && !follows) problems.push_back(broken_chain(s, odd, micros, plan, csv));
  }
  plan.edges.push_back({StageId{s - 1}, StageId{s}, {}});
  return true;
}

}  // namespace

Plan implied_plan(const CsvSchedule& csv, std::vector<ScheduleProblem>& problems) {
  Plan plan;
  plan.mini_batch = csv.micro_batches;
  plan.stages.resize(csv.stages);
  const Micros micros = place_stages(csv, plan, problems);
  std::vector<int> chain_starts{0};
  for (int s = 0; s < csv.stages; ++s) {
    auto& stage = plan.stages[StageId{s}];
    const auto& current = micros[s];
    if (current.empty()) {
      if (problems.size() < kMaxListedProblems) problems.push_back(no_forward(s, csv));
      if (stage.leaders.empty()) stage.place_on({DeviceId{0}});
      continue;
    }
    if (std::ssize(current) < csv.micro_batches) stage.micros = current;
    if (s > 0 && !join_chain(s, micros, plan, csv, problems)) chain_starts.push_back(s);
  }
  if (problems.empty()) check_chains(chain_starts, micros, csv, problems);
  return plan;
}

}  // namespace stagecraft
