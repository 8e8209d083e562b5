// Level 5 of the checks of a schedule file: each output that another rank needs has one send and one receive, in the
// right place and, on a channel of NCCL, in the same order on both sides.

#include <map>
#include <tuple>

#include <fmt/core.h>

#include "sim/schedule_file/chains.hpp"
#include "sim/schedule_file/checks.hpp"

namespace stagecraft {
namespace {

/// The place of an action in its table.
struct Position {
  int rank = -1, index = -1;
};

/// Collects for each output the ops that make and use it and the messages that carry it, then compares them.
class CommsCheck {
 public:
  CommsCheck(const ActionTable& table, const Plan& plan, CommStreams streams)
      : table_(table), chains_(chains_of(plan)), streams_(streams) {
    for (auto* list : {&made_, &used_, &sent_, &received_}) list->resize(chains_.outputs());
  }

  std::vector<ScheduleProblem> run() {
    each([&](Position p, const Action& a) { a.is_message() ? note_message(p, a) : note_op(p, a); });
    each([&](Position p, const Action& a) { a.is_message() ? match(p, a) : need(p, a); });
    if (problems_.empty()) check_channels();
    return std::move(problems_);
  }

 private:
  template <class Visit>
  void each(Visit&& visit) {
    for (int r = 0; r < std::ssize(table_.ranks); ++r)
      for (int i = 0; i < std::ssize(table_.ranks[r]); ++i)
        if (problems_.size() < kMaxListedProblems) visit(Position{r, i}, table_.ranks[r][i]);
  }
  const Action& at(Position p) const { return table_.ranks[p.rank][p.index]; }
  void bad(const char* code, Position p, std::string message) {
    problems_.push_back({code, 5, p.rank, p.index, to_text(at(p)), std::move(message)});
  }

  /// The stage whose op makes what a message carries.
  static StageId maker(const Action& a) {
    if (a.is_send()) return a.stage;
    return StageId{a.is_gradient() ? a.stage.value + 1 : a.stage.value - 1};
  }
  std::size_t output(const Action& a) const { return chains_.output(maker(a), a.micro, a.is_gradient()); }

  void note_op(Position p, const Action& a) {
    if (!a.makes_output()) return;
    const bool gradient = a.passes_gradient();
    made_[chains_.output(a.stage, a.micro, gradient)] = p;
    if (chains_.has_input(a.stage, gradient)) used_[chains_.input(a.stage, a.micro, gradient)] = p;
  }

  /// Whether the message can exist at all.
  void note_message(Position p, const Action& a) {
    if (a.stage.value >= chains_.stages() || a.micro >= chains_.micro_batches)
      return bad("out-of-range", p, "no op has this stage and micro-batch");
    if (chains_.rank_of(a.stage) != p.rank)
      return bad("wrong-rank", p, fmt::format("stage {} runs on rank {}", a.stage.value, chains_.rank_of(a.stage)));
    const bool onward = a.is_send() != a.is_gradient();  // To or from the next stage of the chain.
    if (!chains_.has_input(a.stage, onward))
      return bad("no-peer", p,
                 fmt::format("stage {} is the {} of its chain", a.stage.value, onward ? "last" : "first"));
    if (chains_.source(a.stage, onward) < 0)
      return bad("co-located", p,
                 fmt::format("stages {} and {} are both on rank {} and hand over without a message", a.stage.value,
                             onward ? a.stage.value + 1 : a.stage.value - 1, p.rank));
    Position& seen_at = (a.is_send() ? sent_ : received_)[output(a)];
    if (seen_at.rank >= 0) return bad("duplicate", p, fmt::format("{} stands twice", to_text(a)));
    seen_at = p;
  }

  void match(Position p, const Action& a) {
    if (a.stage.value >= chains_.stages() || a.micro >= chains_.micro_batches || chains_.rank_of(a.stage) != p.rank)
      return;
    const StageId from = maker(a);
    if (!from.valid() || from.value >= chains_.stages()) return;
    const std::size_t o = output(a);
    if (sent_[o].rank < 0 && received_[o].rank < 0) return;
    const Position op = a.is_send() ? made_[o] : used_[o];
    if ((a.is_send() ? received_ : sent_)[o].rank < 0)
      return bad(a.is_send() ? "unmatched-send" : "unmatched-receive", p,
                 fmt::format("nothing {} it on rank {}", a.is_send() ? "receives" : "sends",
                             a.is_send() ? chains_.target(from, a.is_gradient()) : chains_.rank_of(from)));
    if (op.rank < 0) return bad("unused", p, a.is_send() ? "no op makes what it sends" : "no op uses what it receives");
    if (a.is_send() && op.index > p.index)
      bad("send-before-op", p, fmt::format("it stands before {}, which makes what it sends", to_text(at(op))));
    if (!a.is_send() && op.index < p.index)
      bad("receive-after-use", p, fmt::format("it comes after {}, which needs what it receives", to_text(at(op))));
  }

  /// Reports an op whose input comes from another rank without a message.
  void need(Position p, const Action& a) {
    const bool gradient = a.passes_gradient();
    if (!a.makes_output() || chains_.source(a.stage, gradient) < 0) return;
    const StageId from{gradient ? a.stage.value + 1 : a.stage.value - 1};
    const std::size_t o = chains_.input(a.stage, a.micro, gradient);
    if (sent_[o].rank < 0 && received_[o].rank < 0)
      bad("missing-message", p,
          fmt::format("its input from stage {} on rank {} is neither sent nor received", from.value,
                      chains_.rank_of(from)));
  }

  /// NCCL has no tags: the n-th receive from a rank gets its n-th send.
  void check_channels() {
    std::map<std::tuple<int, int, bool>, std::vector<std::size_t>> sends;
    std::map<std::tuple<int, int, bool>, std::size_t> taken;
    const auto channel = [&](const Action& a) {
      const int from = chains_.rank_of(maker(a)), to = chains_.target(maker(a), a.is_gradient());
      return std::make_tuple(from, to, streams_ == CommStreams::Direction && a.is_gradient());
    };
    each([&](Position, const Action& a) {
      if (a.is_message() && a.is_send()) sends[channel(a)].push_back(output(a));
    });
    each([&](Position p, const Action& a) {
      if (!a.is_message() || a.is_send()) return;
      const std::size_t due = sends[channel(a)][taken[channel(a)]++];
      if (due != output(a))
        bad("channel-order", p,
            fmt::format("rank {} sends {} at this place in the channel", chains_.rank_of(maker(a)),
                        to_text(at(sent_[due]))));
    });
  }

  const ActionTable& table_;
  Chains chains_;
  CommStreams streams_;
  std::vector<Position> made_, used_, sent_, received_;  ///< [output]
  std::vector<ScheduleProblem> problems_;
};

}  // namespace

std::vector<ScheduleProblem> check_comms(const ActionTable& table, const Plan& plan, CommStreams streams) {
  return CommsCheck(table, plan, streams).run();
}

}  // namespace stagecraft
