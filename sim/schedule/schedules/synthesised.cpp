#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/cluster/cluster.hpp"
#include "sim/schedule/synthesis/search.hpp"
#include "sim/schedule/synthesis/seeds.hpp"

namespace stagecraft::schedules {
namespace {

using namespace synthesis;
using config::Value;

const config::MapSpec fields{
    .title = "An order made for the costs and the memory at hand.",
    .fields = {config::choice("objective", std::vector<std::string>{"period", "makespan"})
                   .fallback("period")
                   .doc("What is to be short: an iteration back to back with others, or one alone."),
               config::quantity("memory", config::Dimension::Size)
                   .optional()
                   .doc("Most that a device may need, all in all; left out: what it has."),
               config::real("activations", 1, 1e9)
                   .optional()
                   .doc("Most micro-batches that the stages of a device may keep at a time, added up."),
               config::real("freed_at_input", 0, 1)
                   .fallback("0")
                   .doc("Of `activations`: the share that I gives back, and W the rest."),
               config::boolean("split").fallback("true").doc("Whether a backward may be split into I and W."),
               config::choice("placement", std::vector<std::string>{"linear", "loop", "v", "wave"})
                   .optional()
                   .doc("Where the stages are to lie; left out: as the plan has them."),
               chunks_field(),
               config::real("effort", 0.001, 1e6)
                   .optional()
                   .doc("Million steps that may be played while searching, fifty or so in a second; left out: more for "
                        "more work, for some seconds at most."),
               config::integer("seed", 0, 1 << 30).fallback("1").doc("Of the search; the same finds the same.")}};

constexpr double kMostBlocks = 400, kBlockPieces = 400000;  // As many as take a second or so.
constexpr int kTightenings = 3;
constexpr double kLeast = 5, kEach = 0.03, kMost = 200;  // Effort, and for each step.
constexpr double kSame = 1 + 1e-9;

struct Candidate {
  std::string name;
  Schedule iteration;
  Played played;
  double overshoot = 0;  ///< Memory beyond what is there, of a device.
};

class Synthesis {
 public:
  explicit Synthesis(const ScheduleInput& in) : in_(in), problem_(in) {
    aim_.period = !option_is(in, "objective", "makespan");
    aim_.split = !option_is(in, "split", "false");
    const double steps = 3.0 * problem_.pieces();
    aim_.effort = 1e6 * option_or(in, "effort", std::min(kLeast + kEach * steps, kMost));
    aim_.seed = static_cast<std::uint64_t>(option_or(in, "seed", 1));
    set_limit();
  }

  Schedule run() {
    const Bound bound = lower_bound(problem_, limit_);
    const std::vector<Rows> seeds = known();
    leave_room_for_messages();
    for (int i = 0; i < kTightenings; ++i) {
      const std::vector<Found> found = search(problem_, limit_, aim_, seeds, bound);
      for (const Found& f : found) judge("search", problem_.schedule_of(f.rows));
      const double over = overshoot_of_new();
      if (over <= 0) break;
      for (double& most : limit_.most) most -= over;
    }
    if (candidates_.empty())
      throw Infeasible("memory", "no order of work was found that keeps so little", "raise run.schedule.activations");
    const Candidate& best = *std::min_element(candidates_.begin(), candidates_.end(),
                                              [&](const Candidate& a, const Candidate& b) { return better(a, b); });
    if (best.overshoot > 0)
      throw Infeasible("memory",
                       fmt::format("no order of work was found that fits: the one that needs least has {} too little "
                                   "on a device",
                                   to_text(Bytes{best.overshoot})),
                       "more stages, recompute: full, or smaller micro-batches");
    Schedule schedule = best.iteration;
    const Seconds found = aim_.period ? best.played.period : best.played.makespan;
    schedule.search = {found, Seconds{aim_.period ? bound.period : bound.makespan}, aim_.period,
                       aim_.period ? bound.period_reason : bound.makespan_reason, best.name};
    return schedule;
  }

 private:
  static std::size_t at(int i) { return Problem::at(i); }

  /// Bytes, or micro-batches where they are limited.
  void set_limit() {
    const Value* activations = in_.options ? in_.options->find("activations") : nullptr;
    counted_ = activations != nullptr;
    limit_.most.assign(at(problem_.ranks()), std::numeric_limits<double>::infinity());
    limit_.stash.assign(problem_.rank_of.size(), counted_ ? 1 : 0);
    if (counted_) {
      limit_.freed_at_input = option_or(in_, "freed_at_input", 0.0);
      limit_.most.assign(at(problem_.ranks()), config::as_real(*activations));
    }
    const Value* memory = in_.options ? in_.options->find("memory") : nullptr;
    const double asked =
        memory ? config::as_quantity(*memory, config::Dimension::Size) : std::numeric_limits<double>::infinity();
    std::vector<double> resident(at(problem_.devices), 0);
    for (std::size_t s = 0; s < problem_.rank_of.size(); ++s)
      for (std::size_t r = 0; r < in_.costs[s].size(); ++r) {
        const StageCost& c = in_.costs[s][r];
        resident[static_cast<std::size_t>(in_.plan.stages[s].devices[r])] +=
            (c.weights + c.gradients + c.optimizer).value;
        if (!counted_) limit_.stash[s] = std::max(limit_.stash[s], c.stash.value);
      }
    for (int d = 0; d < problem_.devices; ++d) {
      double own = std::numeric_limits<double>::infinity();
      if (in_.cluster) {
        const Bytes size = in_.cluster->types[at(in_.cluster->devices[at(d)].type)].memory;
        if (size.value > 0) own = size.value;
      }
      capacity_.push_back(std::min(asked, own));
    }
    if (counted_) return;
    for (int r = 0; r < problem_.ranks(); ++r)
      for (const DeviceId d : problem_.rank_devices[at(r)]) {
        const auto device = static_cast<std::size_t>(d);
        limit_.most[at(r)] = std::min(limit_.most[at(r)], capacity_[device] - resident[device]);
      }
  }

  /// Schedules of the catalogue, judged, and all that the search may begin with.
  std::vector<Rows> known() {
    std::vector<Rows> rows;
    const auto add = [&](const Seed& seed) {
      Rows one = problem_.rows_of(seed.iteration);
      if (std::find(rows.begin(), rows.end(), one) != rows.end()) return;
      if (seed.as_known && (!counted_ || fits(problem_, one, limit_)) && (aim_.split || !halves(seed.iteration)))
        judge(seed.name, seed.iteration);
      rows.push_back(std::move(one));
    };
    for (const Seed& seed : library_seeds(in_)) add(seed);
    add(one_by_one(problem_));
    const double largest = *std::max_element(limit_.stash.begin(), limit_.stash.end());
    const double room = *std::min_element(limit_.most.begin(), limit_.most.end());
    const double activations = largest > 0 ? room / largest : room;
    const double blocks = std::clamp(kBlockPieces / problem_.pieces(), 8.0, kMostBlocks);
    for (const Seed& seed : block_seeds(in_, activations, static_cast<std::size_t>(blocks))) add(seed);
    return rows;
  }

  static bool halves(const Schedule& s) {
    for (const auto& row : s.devices)
      for (const Op& op : row)
        if (op.kind == OpKind::InputGradient) return true;
    return false;
  }

  void judge(const std::string& name, Schedule iteration) {
    std::optional<Played> played = in_.play ? in_.play(iteration) : by_clock(iteration);
    if (!played) return;
    double over = 0;
    for (std::size_t d = 0; d < played->memory.size(); ++d)
      over = std::max(over, played->memory[d].value - capacity_[d]);
    candidates_.push_back({name, std::move(iteration), std::move(*played), over});
  }

  /// Without a scenario messages take no room and do not meet, so the clock is all there is.
  std::optional<Played> by_clock(const Schedule& iteration) {
    const Score score = Clock(problem_).score(problem_.rows_of(iteration), true);
    if (!std::isfinite(score.period)) return {};
    return Played{Seconds{score.makespan}, Seconds{score.period}, {}};
  }

  /// What messages take beside the stash, as the known schedules have it.
  void leave_room_for_messages() {
    if (counted_) return;
    for (int r = 0; r < problem_.ranks(); ++r) {
      double beside = std::numeric_limits<double>::infinity();
      for (const Candidate& c : candidates_) {
        if (c.played.memory.empty()) continue;
        const double held = peaks(problem_, problem_.rows_of(c.iteration), limit_)[at(r)];
        for (const DeviceId d : problem_.rank_devices[at(r)])
          beside = std::min(beside, c.played.memory[static_cast<std::size_t>(d)].value - held);
      }
      if (!std::isfinite(beside)) continue;
      for (const DeviceId d : problem_.rank_devices[at(r)])
        limit_.most[at(r)] = std::min(limit_.most[at(r)], capacity_[static_cast<std::size_t>(d)] - beside);
    }
  }

  /// How much all orders of the last search need too much; none when one fits.
  double overshoot_of_new() {
    double least = std::numeric_limits<double>::infinity();
    for (const Candidate& c : candidates_)
      if (c.name == "search") least = std::min(least, c.overshoot);
    return std::isfinite(least) ? least : 0;
  }

  bool better(const Candidate& a, const Candidate& b) const {
    if ((a.overshoot > 0) != (b.overshoot > 0)) return b.overshoot > 0;
    if (a.overshoot > 0) return a.overshoot < b.overshoot;
    const auto shorter = [](Seconds x, Seconds y) { return x.value * kSame < y.value; };
    const auto pair = [&](const Candidate& c) {
      return aim_.period ? std::pair(c.played.period, c.played.makespan)
                         : std::pair(c.played.makespan, c.played.period);
    };
    const auto [a_first, a_second] = pair(a);
    const auto [b_first, b_second] = pair(b);
    if (shorter(a_first, b_first) || shorter(b_first, a_first)) return a_first < b_first;
    return shorter(a_second, b_second);
  }

  const ScheduleInput& in_;
  Problem problem_;
  Limit limit_;
  Aim aim_;
  bool counted_ = false;
  std::vector<double> capacity_;  ///< Of each device.
  std::vector<Candidate> candidates_;
};

Schedule whole(const ScheduleInput& in) { return Synthesis(in).run(); }

}  // namespace

extern const ScheduleDef synthesised{
    .name = "synthesised",
    .summary = "Searched for: never worse than any other synchronous schedule on the same stages and memory",
    .source = "list scheduling with the banker's rule, simulated annealing on critical blocks, building blocks",
    .equal_sizes = false,
    .fields = &fields,
    .whole = whole,
};

}  // namespace stagecraft::schedules
