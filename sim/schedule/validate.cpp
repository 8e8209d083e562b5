// Checks levels 2 to 4 of a schedule on a plan (structure, order on each rank, cycles), and turns problems of any level
// into text and errors; sim/schedule_file has further levels.

#include "sim/schedule/validate.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/plan/vocabulary.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostAlike = 3;  // Problems of one kind on one rank that are listed one by one.

/// Goes over the rows once and keeps one byte for each piece: which kinds of op it has had.
class LocalCheck {
 public:
  LocalCheck(const Schedule& schedule, const Plan& plan, const ValidateOptions& options)
      : schedule_(schedule),
        plan_(plan),
        options_(options),
        index_(plan, options.iterations),
        with_scores_(schedule.vocabulary == VocabularyPasses::None ? std::vector<StageId>() : vocabulary_stages(plan)),
        seen_(index_.size(), 0),
        finished_(plan.stages.size(), 0),
        updated_(plan.stages.size(), 0),
        shared_(plan.stages.size()) {
    for (const Reduction& r : plan.reductions)
      if (r.stages.size() > 1)
        for (const StageId s : r.stages) shared_[s].push_back(&r);
  }

  std::vector<ScheduleProblem> run() {
    if (schedule_.device_count() < plan_.device_count())
      add({"missing",
           2,
           -1,
           -1,
           {},
           fmt::format("the plan uses {}, the schedule has {}", pluralize(plan_.device_count(), "device"),
                       pluralize(schedule_.device_count(), "row"))});
    for (int d = 0; d < schedule_.device_count(); ++d) check_row(d);
    // An op that never runs is the cause where others come too early; where ops are wrong themselves, it is a result.
    const bool only_order =
        std::all_of(problems_.begin(), problems_.end(), [](const ScheduleProblem& p) { return p.level > 2; });
    name_missing();
    if (only_order) {
      const std::vector<ScheduleProblem> later = std::exchange(problems_, {});
      find_missing();
      for (const ScheduleProblem& p : later)
        if (p.level > 2) add(p);
    }
    return std::move(problems_);
  }

 private:
  /// A problem of an op that comes too early, and the op of the same piece that it needs.
  struct Early {
    std::size_t problem, piece;
    Op needed;
  };

  /// An op does not come too early where the op that it needs never runs: that one is missing.
  void name_missing() {
    std::vector<std::string> named;
    std::vector<std::size_t> repeated;
    for (const Early& early : early_) {
      if (seen_[early.piece] & bit(early.needed.kind)) continue;
      ScheduleProblem& p = problems_[early.problem];
      const std::string needed = to_text(early.needed), key = fmt::format("{} {}", p.rank, needed);
      if (std::find(named.begin(), named.end(), key) != named.end()) repeated.push_back(early.problem);
      named.push_back(key);
      p = {"missing", 2, p.rank, -1, needed, fmt::format("{} never runs, and {} needs it", needed, p.op)};
    }
    for (std::size_t i = repeated.size(); i-- > 0;)
      problems_.erase(problems_.begin() + static_cast<std::ptrdiff_t>(repeated[i]));
  }

  static int bit(OpKind kind) { return 1 << static_cast<int>(kind); }
  bool full() const { return problems_.size() >= options_.max_problems; }
  void add(ScheduleProblem p) {
    if (!full()) problems_.push_back(std::move(p));
  }

  void check_row(int rank) {
    const auto& ops = schedule_.row(DeviceId{rank});
    for (int i = 0; i < std::ssize(ops); ++i) {
      const Op& op = ops[i];
      const auto bad = [&](const char* code, int level, std::string message) {
        add({code, level, rank, i, to_text(op), std::move(message)});
      };
      if (!op.stage.valid() || op.stage.value >= plan_.stage_count()) {
        bad("out-of-range", 2,
            fmt::format("there is no stage {}; the plan has {}", op.stage.value, plan_.stage_count()));
        continue;
      }
      const Stage& stage = plan_.stage(op.stage);
      const int replica = replica_on(stage, DeviceId{rank});
      if (replica < 0) {
        bad("wrong-rank", 2, fmt::format("stage {} does not run on rank {}", op.stage.value, rank));
        continue;
      }
      if (op.kind == OpKind::Update) {
        const int count = finished_[op.stage.value];
        const int each = plan_.micro_batches_per_replica(op.stage) / schedule_.updates_of(op.stage);
        auto& next = updated_[op.stage.value];
        if (op.micro < next)
          bad("duplicate", 2, fmt::format("{} runs twice", to_text(op)));
        else if (count != (op.micro + 1) * each)
          bad("local-order", 3,
              fmt::format("update {} comes after {} backwards instead of {}", op.micro, count, (op.micro + 1) * each));
        else if (const StageId other = unfinished(op, rank); other.valid())
          bad("local-order", 3,
              fmt::format("{} comes before the last gradient of stage {}, which shares its weights", to_text(op),
                          other.value));
        next = std::max(next, op.micro + 1);
        continue;
      }
      if (!in_range(op)) {
        bad("out-of-range", 2, fmt::format("stage {} has no micro-batch {}", op.stage.value, op.micro));
        continue;
      }
      if (!takes_part(stage, op.micro, replica)) {
        bad("wrong-rank", 2,
            fmt::format("micro-batch {} of stage {} is for rank {}", op.micro, op.stage.value,
                        stage.leaders[op.micro % stage.turns()].value));
        continue;
      }
      if (ends_backward(op.kind)) ++finished_[op.stage.value];
      if (options_.slices > 1) slice(op, replica, bad);
      piece(op, index_.index(op.stage, op.micro, replica), bad);
    }
    for (const Op& op : ops)
      if (op.stage.valid() && op.stage.value < plan_.stage_count())
        finished_[op.stage.value] = updated_[op.stage.value] = 0;
  }

  /// A stage on the rank that shares parameters with the updated stage and lacks some of its gradients.
  StageId unfinished(const Op& update, int rank) const {
    for (const Reduction* r : shared_[update.stage])
      for (const StageId s : r->stages) {
        const int each = plan_.micro_batches_per_replica(s) / schedule_.updates_of(s);
        const bool here = replica_on(plan_.stage(s), DeviceId{rank}) >= 0;
        if (here && finished_[s.value] < (update.micro + 1) * each) return s;
      }
    return {};
  }

  bool in_range(const Op& op) const {
    const int per_iteration = plan_.micro_batches(op.stage);
    if (op.micro < 0 || op.micro >= per_iteration * options_.iterations) return false;
    const auto& micros = plan_.stage(op.stage).micros;
    return micros.empty() || std::binary_search(micros.begin(), micros.end(), op.micro % per_iteration);
  }

  /// A forward needs the keys and values of earlier slices, a backward the gradients of later ones.
  template <class Bad>
  void slice(const Op& op, int replica, const Bad& bad) const {
    const bool gradient = passes_gradient(op.kind);
    if (!gradient && op.kind != OpKind::Forward) return;
    const int last = gradient ? options_.slices - 1 : 0, other = op.micro + (gradient ? 1 : -1);
    if (op.micro % options_.slices == last || !in_range({op.kind, false, op.stage, other})) return;
    const int done = seen_[index_.index(op.stage, other, replica)];
    if (gradient ? (done & (bit(OpKind::Backward) | bit(OpKind::InputGradient))) : (done & bit(OpKind::Forward)))
      return;
    bad("slice-order", 3,
        fmt::format("{} comes before {}; slices go forward in order and backward the other way round", to_text(op),
                    to_text(Op{op.kind, false, op.stage, other})));
  }

  template <class Bad>
  void piece(const Op& op, std::size_t number, const Bad& bad) {
    std::uint8_t& seen = seen_[number];
    const auto has = [&](OpKind kind) { return (seen & bit(kind)) != 0; };
    const auto text = [&](OpKind kind) { return to_text(Op{kind, false, op.stage, op.micro}); };
    const auto before = [&](OpKind needed) {
      if (has(needed)) return;
      if (!full()) early_.push_back({problems_.size(), number, {needed, false, op.stage, op.micro}});
      bad("local-order", 3, fmt::format("{} comes before {}", to_text(op), text(needed)));
    };
    if (has(op.kind)) bad("duplicate", 2, fmt::format("{} runs twice", to_text(op)));
    switch (op.kind) {
      case OpKind::Backward:
        if (has(OpKind::InputGradient) || has(OpKind::WeightGradient))
          bad("duplicate", 2,
              fmt::format("{} repeats what {} or {} did", to_text(op), text(OpKind::InputGradient),
                          text(OpKind::WeightGradient)));
        before(OpKind::Forward);
        break;
      case OpKind::InputGradient:
        if (has(OpKind::Backward))
          bad("duplicate", 2, fmt::format("{} repeats part of {}", to_text(op), text(OpKind::Backward)));
        before(OpKind::Forward);
        break;
      case OpKind::WeightGradient:
        if (has(OpKind::Backward))
          bad("duplicate", 2, fmt::format("{} repeats part of {}", to_text(op), text(OpKind::Backward)));
        before(OpKind::InputGradient);
        break;
      case OpKind::Recompute:
        before(OpKind::Forward);
        if (has(OpKind::Backward) || has(OpKind::InputGradient))
          bad("local-order", 3, fmt::format("{} comes after the backward it is for", to_text(op)));
        break;
      case OpKind::ScoresGradient:
        before(OpKind::Scores);
        [[fallthrough]];
      case OpKind::Scores:
        if (schedule_.vocabulary == VocabularyPasses::None)
          bad("vocabulary", 2,
              fmt::format("{} belongs to a vocabulary that all ranks divide, which the schedules vocab-1, vocab-2 and "
                          "interlaced alone have",
                          to_text(op)));
        break;
      case OpKind::Forward:
      case OpKind::Update:
        break;
    }
    seen = static_cast<std::uint8_t>(seen | bit(op.kind));
  }

  void find_missing() {
    for (const StageId stage : plan_.stages.ids()) {
      const auto& micros = plan_.stage(stage).micros;
      for (int i = 0; i < options_.iterations; ++i)
        for (int n = 0; n < plan_.micro_batches_run(stage); ++n) {
          const int micro = i * plan_.micro_batches(stage) + (micros.empty() ? n : micros[n]);
          const ReplicaRange replicas = replicas_of(plan_.stage(stage), micro);
          for (int r = replicas.first; r < replicas.end && !full(); ++r) missing_of(stage, micro, r);
        }
    }
  }

  void missing_of(StageId stage, int micro, int replica) {
    const int seen = seen_[index_.index(stage, micro, replica)];
    const auto lacks = [&](OpKind kind) {
      const std::string op = to_text(Op{kind, false, stage, micro});
      add({"missing", 2, plan_.stage(stage).leaders[replica].value, -1, op, fmt::format("{} never runs", op)});
    };
    if (!(seen & bit(OpKind::Forward))) lacks(OpKind::Forward);
    if (std::find(with_scores_.begin(), with_scores_.end(), stage) != with_scores_.end())
      for (const OpKind kind : {OpKind::Scores, OpKind::ScoresGradient})
        if (!(seen & bit(kind))) lacks(kind);
    if (!options_.trains || (seen & bit(OpKind::Backward))) return;
    const bool input = seen & bit(OpKind::InputGradient), weight = seen & bit(OpKind::WeightGradient);
    if (!input) lacks(weight ? OpKind::InputGradient : OpKind::Backward);
    if (input && !weight) lacks(OpKind::WeightGradient);
  }

  const Schedule& schedule_;
  const Plan& plan_;
  ValidateOptions options_;
  PieceIndex index_;
  std::vector<StageId> with_scores_;
  std::vector<std::uint8_t> seen_;
  std::vector<int> finished_, updated_;                      ///< [stage], on the current rank: backwards, updates.
  IdVector<StageId, std::vector<const Reduction*>> shared_;  ///< The reductions of several stages.
  std::vector<ScheduleProblem> problems_;
  std::vector<Early> early_;
};

/// An op of a group, and its place in the row.
struct Member {
  Op op;
  int index;
};

/// Appends a problem for each member that comes after one it needs: members with the same key need each other.
template <class Key>
void find_needs(std::vector<Member>& group, int rank, const Key& key, std::vector<ScheduleProblem>& problems) {
  std::sort(group.begin(), group.end(), [&](const Member& a, const Member& b) {
    return std::tuple_cat(key(a.op), std::tuple(a.index)) < std::tuple_cat(key(b.op), std::tuple(b.index));
  });
  for (std::size_t i = 1; i < group.size(); ++i) {
    if (key(group[i - 1].op) != key(group[i].op)) continue;
    const std::string needed = to_text(group[i - 1].op), op = to_text(group[i].op);
    problems.push_back(
        {"local-order", 3, rank, group[i].index, op,
         fmt::format("{} needs {}, so the two cannot run as one: they would start together", op, needed)});
  }
}

/// Level 3: ops that run as one start when the inputs of all are there, so none of them can need another: two of one
/// stage and micro-batch, or with `slices` two forwards or two gradients of one sequence. O(ops log group).
std::vector<ScheduleProblem> check_overlaps(const Schedule& schedule, int slices, std::size_t limit) {
  const auto piece = [](const Op& op) { return std::tuple(op.stage, op.micro); };
  const auto sequence = [&](const Op& op) { return std::tuple(op.stage, op.micro / slices, passes_gradient(op.kind)); };
  std::vector<ScheduleProblem> problems;
  std::vector<Member> group, sliced;
  for (int d = 0; d < schedule.device_count(); ++d) {
    const auto& row = schedule.row(DeviceId{d});
    for (std::size_t first = 0, end = 0; first < row.size() && problems.size() < limit; first = end) {
      end = group_end(row, first);
      if (end - first == 1) continue;
      group.clear(), sliced.clear();
      for (std::size_t i = first; i < end; ++i) {
        group.push_back({row[i], static_cast<int>(i)});
        if (slices > 1 && (row[i].kind == OpKind::Forward || passes_gradient(row[i].kind)))
          sliced.push_back(group.back());
      }
      find_needs(group, d, piece, problems);
      find_needs(sliced, d, sequence, problems);
    }
  }
  if (problems.size() > limit) problems.resize(limit);
  return problems;
}

}  // namespace

std::vector<ScheduleProblem> validate(const Schedule& schedule, const Plan& plan, const ValidateOptions& options) {
  auto problems = LocalCheck(schedule, plan, options).run();
  if (problems.empty()) problems = check_overlaps(schedule, options.slices, options.max_problems);
  if (!problems.empty() || !options.cycles) return problems;
  const GlobalOrder order = global_order(schedule, plan, options.iterations);
  if (order.cycle.empty()) return {};
  ScheduleProblem p{"cycle", 4, -1, -1, {}, order.cycle};
  if (!order.blocked.empty()) {
    p.rank = order.blocked.front().first.value;
    p.column = order.blocked.front().second;
    p.op = to_text(schedule.row(DeviceId{p.rank})[p.column]);
  }
  return {p};
}

bool cannot_be_done(const ScheduleProblem& p) { return p.level == 4 || p.level == 6 || p.level == 7 || p.level == 9; }

const char* help_for(int level) {
  switch (level) {
    case 4:
      return "an op of the cycle has to move before the op that waits for it";
    case 6:
      return "move a receive after the send that its peer waits for, group neighboring messages, or use a stream for "
             "each peer and direction";
    case 7:
      return "use an order with fewer micro-batches in flight, recompute, or more stages";
    default:
      return "";
  }
}

std::string to_text(const ScheduleProblem& p) {
  std::string place;
  if (p.rank >= 0) place += fmt::format("rank {}, ", p.rank);
  if (p.column >= 0) place += fmt::format("column {}, ", p.column);
  if (!p.op.empty()) place += fmt::format("{}, ", p.op);
  if (!place.empty()) place.resize(place.size() - 2), place += ": ";
  return fmt::format("{}: {}{}", p.code, place, p.message);
}

std::vector<Diagnostic> grouped_diagnostics(const std::vector<ScheduleProblem>& problems,
                                            const std::function<Diagnostic(const ScheduleProblem&)>& diagnostic) {
  std::vector<Diagnostic> list;
  std::map<std::string, std::size_t> places;  // In the list, by the problem without its numbers.
  for (const ScheduleProblem& p : problems) {
    std::string kind = p.code + " " + p.message;
    std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
    const auto [place, is_new] = places.try_emplace(kind, list.size());
    if (is_new)
      list.push_back(diagnostic(p));
    else
      ++list[place->second].more;
  }
  return list;
}

void throw_if_any(const std::vector<ScheduleProblem>& problems, const std::string& what) {
  if (problems.empty()) return;
  if (cannot_be_done(problems.front()))
    throw Infeasible(problems.front().code, fmt::format("{}: {}", what, to_text(problems.front())),
                     help_for(problems.front().level));
  std::vector<Diagnostic> list;
  std::map<std::pair<std::string, int>, std::vector<std::size_t>> alike;  // Places in the list, by code and rank.
  std::map<std::size_t, int> more;
  for (const auto& p : problems) {
    auto& places = alike[{p.code, p.rank}];
    if (places.size() == kMostAlike) {
      ++more[places.back()];
      continue;
    }
    places.push_back(list.size());
    list.push_back({{what, 0, 0}, {}, to_text(p), {}, p.code});
  }
  for (const auto& [place, count] : more) list[place].more = count;
  throw InputError(std::move(list));
}

}  // namespace stagecraft
