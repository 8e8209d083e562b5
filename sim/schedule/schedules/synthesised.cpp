// The schedule `synthesised`: runs the search of synthesis/ within the memory that weights leave, times its orders and
// known schedules, and returns the best one that fits, with its lower bound.

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/cluster/cluster.hpp"
#include "sim/core/numbers.hpp"
#include "sim/schedule/synthesis/search.hpp"
#include "sim/schedule/synthesis/seeds.hpp"

namespace stagecraft::schedules {
namespace {

using namespace synthesis;
using config::Value;

const config::MapSpec synthesised_fields{
    .title = "An order made for the costs and the memory at hand.",
    .fields = {
        config::choice("objective", std::vector<std::string>{"period", "makespan"})
            .fallback("period")
            .doc("What is minimized: the period of iterations back to back, or the makespan of one iteration."),
        config::quantity("memory", config::Dimension::Size)
            .optional()
            .doc("Memory limit of a device. Default: its memory."),
        config::real("activations", 1, 1e9)
            .optional()
            .doc("Most activations that a device may keep at a time, summed over its stages."),
        config::real("freed_at_input", 0, 1)
            .fallback("0")
            .doc("Share of an activation that the input gradient (I) frees; the weight gradient (W) frees the rest."),
        config::boolean("split").fallback("true").doc(
            "Whether a backward may be split into input gradient (I) and weight gradient (W)."),
        config::choice("placement", std::vector<std::string>{"linear", "loop", "v", "wave", "bidirectional"})
            .optional()
            .doc("Placement of the stages on the devices. Default: the placement of the plan."),
        chunks_field(),
        config::real("effort", 0.001, 1e6)
            .optional()
            .doc("Limit of the search in million steps; about 50 million take one second. Default: more for larger "
                 "problems, some seconds at most."),
        config::integer("seed", 0, 1 << 30)
            .fallback("1")
            .doc("Seed of the search; the same seed finds the same schedule.")}};

struct SynthesisOptions {
  bool period = true, split = true;
  std::optional<Bytes> memory = {};
  std::optional<double> activations = {};
  double freed_at_input = 0;
  std::optional<double> effort = {};  ///< Million steps.
  int seed = 1;
  friend bool operator==(const SynthesisOptions&, const SynthesisOptions&) = default;
};

void read_synthesised(const config::Value& map, ScheduleOptions& options) {
  SynthesisOptions synthesis;
  synthesis.period = !option_is(map, "objective", "makespan");
  synthesis.split = !option_is(map, "split", "false");
  if (const Value* memory = map.find("memory"))
    synthesis.memory = Bytes{config::as_quantity(*memory, config::Dimension::Size)};
  if (const Value* activations = map.find("activations")) synthesis.activations = config::as_real(*activations);
  synthesis.freed_at_input = option_or(map, "freed_at_input", 0.0);
  if (const Value* effort = map.find("effort")) synthesis.effort = config::as_real(*effort);
  synthesis.seed = option_or(map, "seed", 1);
  options.keep(synthesis);
}

constexpr double kMostBlocks = 400, kBlockPieces = 400000;  // They take about a second.
constexpr int kTightenings = 3;
constexpr double kLeastEffort = 5, kEffortOfStep = 0.03, kMostEffort = 200;  // Million steps.
constexpr double kLargeEffort = 100e6, kFirstEffort = 20e6;                  // Steps.
constexpr double kSame = 1 + 1e-9;

struct Candidate {
  std::string name;
  Schedule iteration;
  OrderResult result;
  std::vector<double> overshoot;  ///< [device]: memory beyond its capacity, or 0.
  double most_over = 0;
};

constexpr double kAny = kInfinity;

class ScheduleSynthesis {
 public:
  explicit ScheduleSynthesis(const ScheduleInput& in)
      : in_(in), options_(in.options.as<SynthesisOptions>()), in_seconds_(in), problem_(in_seconds_.in_common_unit()) {
    goal_.period = options_.period;
    goal_.split = options_.split;
    const double steps = 3.0 * problem_.pieces();
    goal_.effort = 1e6 * options_.effort.value_or(std::min(kLeastEffort + kEffortOfStep * steps, kMostEffort));
    goal_.seed = options_.seed;
    limit_.push_back(bytes_resource());
    if (options_.activations) limit_.push_back(counted(*options_.activations));
  }

  Schedule run() {
    const LowerBound bound = lower_bound(in_seconds_, limit_, goal_.split);
    const LowerBound search_bound = lower_bound(problem_, limit_, goal_.split);
    const std::vector<Rows> seeds = starting_orders();
    leave_room_for_messages();
    const auto search_within_memory = [&](int tightenings) {
      bool fits = false;
      for (int i = 0; i < tightenings && !fits; ++i) {
        const std::size_t before = candidates_.size();
        for (const FoundOrder& f : search(problem_, limit_, goal_, seeds, search_bound))
          evaluate("search", problem_.schedule_of(f.rows));
        fits = !tighten(before);
      }
      return fits;
    };
    // In a large problem the room that messages leave is found with little effort, and then all of it is spent once.
    const double effort = goal_.effort;
    const bool is_large = effort > kLargeEffort;
    if (is_large) goal_.effort = kFirstEffort;
    const bool fits = is_large && search_within_memory(kTightenings);
    goal_.effort = effort;
    search_within_memory(fits ? 1 : kTightenings);
    if (candidates_.empty())
      throw Infeasible("memory", "no order of work was found that keeps so little",
                       limit_.size() > 1 ? "raise run.schedule.activations" : kMoreRoom);
    const Candidate& best = *std::min_element(candidates_.begin(), candidates_.end(),
                                              [&](const Candidate& a, const Candidate& b) { return better(a, b); });
    if (best.most_over > 0)
      throw Infeasible(
          "memory", "no order of work was found that fits",
          options_.memory ? "raise run.schedule.memory, or take more stages or smaller micro-batches" : kMoreRoom,
          fmt::format("the one that needs least has {} too little on a device", to_text(Bytes{best.most_over})));
    Schedule schedule = best.iteration;
    const Seconds time = goal_.period ? best.result.period : best.result.makespan;
    schedule.search = {time, Seconds{goal_.period ? bound.period : bound.makespan}, goal_.period,
                       goal_.period ? bound.period_reason : bound.makespan_reason, best.name};
    return schedule;
  }

 private:
  static constexpr const char* kMoreRoom = "more stages, smaller micro-batches, or plan.recompute: full";

  /// The memory that weights leave on each device, at most the option `memory`.
  Resource bytes_resource() {
    if (options_.memory && !in_.simulate)
      throw InputError("a limit in bytes needs a scenario, which says how large activations are",
                       "set activations, a number of micro-batches");
    const double asked = options_.memory ? options_.memory->value : kAny;
    IdVector<DeviceId, double> resident(problem_.empty.device_count(), 0);
    Resource r;
    for (std::size_t s = 0; s < problem_.rank_of.size(); ++s) {
      const Stage& stage = in_.plan.stages[StageId{s}];
      r.stash.push_back(0), r.boundary.push_back(0);
      for (std::size_t replica = 0; replica < stage.leaders.size(); ++replica) {
        const MemoryUnits& units = in_.costs.at(StageId{s}, static_cast<int>(replica)).memory;
        resident[stage.leaders[replica]] += (stage_memory(units, 0).resident() + units.backward_peak()).value;
        const double stash = (stage.shape.recomputes_all() ? units.stash : units.whole_stash()).value;
        r.stash.back() = std::max(r.stash.back(), units.whole_stash().value);
        r.boundary.back() = std::max(r.boundary.back(), stash);
      }
    }
    for (int d = 0; d < problem_.empty.device_count(); ++d) {
      const Bytes device_memory =
          in_.cluster ? in_.cluster->types[in_.cluster->devices[DeviceId{d}].type].usable_memory() : Bytes{0};
      capacity_.push_back(std::min(asked, device_memory.value > 0 ? device_memory.value : kAny));
    }
    for (const auto& devices : problem_.rank_devices) {
      r.capacity.push_back(kAny);
      for (const DeviceId d : devices) r.capacity.back() = std::min(r.capacity.back(), capacity_[d] - resident[d]);
    }
    return r;
  }

  Resource counted(double limit) const {
    Resource r;
    r.stash.assign(problem_.rank_of.size(), 1);
    r.boundary = r.stash;
    r.capacity.assign(problem_.stages.size(), limit);
    r.freed_at_input = options_.freed_at_input;
    return r;
  }

  /// Evaluates schedules of the catalog; returns all orders that the search may start from.
  std::vector<Rows> starting_orders() {
    std::vector<Rows> rows;
    const auto add = [&](const SeedOrder& seed) {
      Rows one = problem_.rows_of(seed.iteration);
      if (std::find(rows.begin(), rows.end(), one) != rows.end()) return;
      if (seed.as_known && (limit_.size() == 1 || fits(problem_, one, {limit_.back()})) &&
          (goal_.split || !halves(seed.iteration)))
        evaluate(seed.name, seed.iteration);
      rows.push_back(std::move(one));
    };
    double activations = kAny;
    for (const Resource& r : limit_) {
      const double largest = *std::max_element(r.stash.begin(), r.stash.end());
      const double room = *std::min_element(r.capacity.begin(), r.capacity.end());
      if (largest > 0) activations = std::min(activations, room / largest);
    }
    for (const SeedOrder& seed : library_seeds(in_, activations)) add(seed);
    add(one_by_one(problem_));
    const double blocks = std::clamp(kBlockPieces / problem_.pieces(), 8.0, kMostBlocks);
    for (const SeedOrder& seed : block_seeds(in_, activations, static_cast<std::size_t>(blocks))) add(seed);
    return rows;
  }

  static bool halves(const Schedule& s) {
    for (const auto& row : s.ranks)
      for (const Op& op : row)
        if (op.kind == OpKind::InputGradient) return true;
    return false;
  }

  void evaluate(const std::string& name, Schedule iteration) {
    std::optional<OrderResult> result = in_.simulate ? in_.simulate(iteration) : by_clock(iteration);
    if (!result) return;
    Candidate c{name, std::move(iteration), std::move(*result), std::vector<double>(capacity_.size(), 0)};
    for (const DeviceId d : c.result.memory.ids())
      c.overshoot[d.value] = std::max(0.0, c.result.memory[d].value - capacity_[d]);
    c.most_over = *std::max_element(c.overshoot.begin(), c.overshoot.end());
    candidates_.push_back(std::move(c));
  }

  /// Without a scenario messages take no memory and no shared link, so the clock is exact.
  std::optional<OrderResult> by_clock(const Schedule& iteration) {
    const Score score = OrderClock(in_seconds_).score(problem_.rows_of(iteration), true);
    if (!std::isfinite(score.period)) return {};
    return OrderResult{Seconds{score.makespan}, Seconds{score.period}, {}};
  }

  /// Takes from the capacities what messages need next to the stash in the known schedules.
  void leave_room_for_messages() {
    Resource& bytes = limit_.front();
    std::vector<double> messages(problem_.ranks(), kAny);
    for (const Candidate& c : candidates_) {
      if (c.result.memory.empty()) continue;
      const std::vector<double> activations = peaks(problem_, problem_.rows_of(c.iteration), bytes);
      for (int r = 0; r < problem_.ranks(); ++r)
        for (const DeviceId d : problem_.rank_devices[r])
          messages[r] = std::min(messages[r], c.result.memory[d].value - activations[r]);
    }
    for (int r = 0; r < problem_.ranks(); ++r) {
      if (!std::isfinite(messages[r])) continue;
      for (const DeviceId d : problem_.rank_devices[r])
        bytes.capacity[r] = std::min(bytes.capacity[r], capacity_[d] - messages[r]);
    }
  }

  /// Lowers the capacities of the ranks where the best order of the last search needed too much, by that amount. False
  /// when one of the orders fits or there is none.
  bool tighten(std::size_t first) {
    if (first == candidates_.size()) return false;
    const auto smallest =
        std::min_element(candidates_.begin() + static_cast<std::ptrdiff_t>(first), candidates_.end(),
                         [](const Candidate& a, const Candidate& b) { return a.most_over < b.most_over; });
    if (smallest->most_over <= 0) return false;
    for (int r = 0; r < problem_.ranks(); ++r) {
      double over = 0;
      for (const DeviceId d : problem_.rank_devices[r]) over = std::max(over, smallest->overshoot[d.value]);
      limit_.front().capacity[r] -= over;
    }
    return true;
  }

  bool better(const Candidate& a, const Candidate& b) const {
    if ((a.most_over > 0) != (b.most_over > 0)) return b.most_over > 0;
    if (a.most_over > 0) return a.most_over < b.most_over;
    const auto shorter = [](Seconds x, Seconds y) { return x.value * kSame < y.value; };
    const auto pair = [&](const Candidate& c) {
      return goal_.period ? std::pair(c.result.period, c.result.makespan)
                          : std::pair(c.result.makespan, c.result.period);
    };
    const auto a_times = pair(a), b_times = pair(b);
    if (shorter(a_times.first, b_times.first) || shorter(b_times.first, a_times.first))
      return a_times.first < b_times.first;
    return shorter(a_times.second, b_times.second);
  }

  const ScheduleInput& in_;
  SynthesisOptions options_;
  SchedulingProblem in_seconds_, problem_;
  ResourceLimits limit_;  ///< Bytes, and micro-batches when the option `activations` is given.
  SearchGoal goal_;
  IdVector<DeviceId, double> capacity_;  ///< [device]: memory.
  std::vector<Candidate> candidates_;
};

Schedule synthesised_whole(const ScheduleInput& in) { return ScheduleSynthesis(in).run(); }

}  // namespace

extern const ScheduleDef synthesised{
    .name = "synthesised",
    .summary = "Found by search; on `ideal` never slower than another synchronous schedule on the same stages",
    .source = "list scheduling with the banker's rule, simulated annealing on critical blocks, building blocks",
    .equal_sizes = false,
    .fields = &synthesised_fields,
    .read = read_synthesised,
    .whole = synthesised_whole,
};

}  // namespace stagecraft::schedules
