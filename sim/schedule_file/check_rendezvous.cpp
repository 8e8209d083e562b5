// Level 6 of the checks of a schedule file: runs ranks and streams of messages until nothing moves, and reports the
// shortest cycle of waits when some wait forever.

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/schedule/wait_graph.hpp"
#include "sim/schedule_file/chains.hpp"
#include "sim/schedule_file/checks.hpp"

namespace stagecraft {
namespace {

/// One computation, or several that run as one.
struct Slot {
  std::int32_t first = 0;    ///< Its place in the row.
  std::int32_t missing = 0;  ///< Messages that have not arrived.
};

/// Adjacent messages of a stream that start together; the first of them is action `first` of the row.
struct Batch {
  std::int32_t stream = -1, first = -1;
  std::int32_t unmade = 0, open = 0;  ///< Sends whose op has not run; messages that have not ended.
  bool started = false;
};

/// A message with its batches and its slots on both sides.
struct Message {
  std::int32_t sender = -1, receiver = -1;  ///< Batches.
  std::int32_t maker = -1, user = -1;       ///< Slots on their ranks.
  bool sent = false, received = false;
};

struct Stream {
  int rank = -1;
  std::vector<std::int32_t> batches;
  std::size_t head = 0;
};

/// Runs ranks and streams of messages against each other until nothing moves any more.
class RendezvousCheck {
 public:
  RendezvousCheck(const ActionTable& table, const Plan& plan, const RendezvousOptions& options)
      : table_(table), chains_(chains_of(plan)), options_(options), messages_(chains_.outputs()) {
    slots_.resize(table.ranks.size());
    done_.assign(table.ranks.size(), 0);
    for (std::size_t r = 0; r < table.ranks.size(); ++r) read_row(static_cast<int>(r));
  }

  std::vector<ScheduleProblem> run() {
    for (std::size_t s = 0; s < streams_.size(); ++s) start_head(streams_[s]);
    for (std::size_t r = 0; r < slots_.size(); ++r) compute(static_cast<int>(r));
    while (!work_.empty()) {
      const std::size_t message = work_.back();
      work_.pop_back();
      advance(messages_[message]);
    }
    for (std::size_t r = 0; r < slots_.size(); ++r)
      if (done_[r] < std::ssize(slots_[r])) return {explain()};
    for (const Stream& s : streams_)
      if (s.head < s.batches.size()) return {explain()};
    return {};
  }

 private:
  struct OwnStream {
    int peer;
    bool gradient;
    std::int32_t stream;
  };
  using Open = std::vector<std::pair<std::int32_t, std::int32_t>>;  ///< Stream, and the batch its next message joins.

  bool eager() const { return options_.message < options_.eager_below; }
  Batch& batch(std::int32_t b) { return batches_[b]; }
  const std::vector<Action>& row(int rank) const { return table_.ranks[rank]; }
  std::size_t output(const Action& a) const {
    const int step = a.is_send() ? 0 : a.is_gradient() ? 1 : -1;
    return chains_.output(StageId{a.stage.value + step}, a.micro, a.is_gradient());
  }
  int peer_of(const Action& a) const {
    return a.is_send() ? chains_.target(a.stage, a.is_gradient()) : chains_.source(a.stage, a.is_gradient());
  }

  void read_row(int rank) {
    auto& slots = slots_[rank];
    own_streams_.clear();
    Open open;
    bool inside = false;
    for (std::size_t i = 0; i < row(rank).size(); ++i) {
      const Action& a = row(rank)[i];
      if (a.is_message()) {
        read_message(rank, static_cast<std::int32_t>(i), open);
        if (!options_.grouped && !a.fused) open.clear();
        continue;
      }
      open.clear();
      if (!a.is_compute()) continue;
      if (!inside) slots.push_back({static_cast<std::int32_t>(i), 0});
      inside = a.fused;
      note_op(a, static_cast<std::int32_t>(slots.size()) - 1);
    }
  }

  void read_message(int rank, std::int32_t index, Open& open) {
    const Action& a = row(rank)[index];
    const std::int32_t stream = stream_of(rank, a);
    auto it = std::find_if(open.begin(), open.end(), [&](const auto& o) { return o.first == stream; });
    if (it == open.end()) {
      it = open.insert(it, {stream, static_cast<std::int32_t>(batches_.size())});
      batches_.push_back({stream, index, 0, 0, false});
      streams_[stream].batches.push_back(it->second);
    }
    Batch& b = batch(it->second);
    ++b.open;
    b.unmade += a.is_send() ? 1 : 0;
    (a.is_send() ? messages_[output(a)].sender : messages_[output(a)].receiver) = it->second;
  }

  std::int32_t stream_of(int rank, const Action& a) {
    const int peer = options_.streams == CommStreams::Single ? -1 : peer_of(a);
    const bool gradient = options_.streams == CommStreams::Direction && a.is_gradient();
    for (const OwnStream& candidate : own_streams_)
      if (candidate.peer == peer && candidate.gradient == gradient) return candidate.stream;
    own_streams_.push_back({peer, gradient, static_cast<std::int32_t>(streams_.size())});
    streams_.push_back({rank, {}, 0});
    return own_streams_.back().stream;
  }

  void note_op(const Action& a, std::int32_t slot) {
    const bool gradient = a.passes_gradient();
    if (!a.makes_output()) return;
    messages_[chains_.output(a.stage, a.micro, gradient)].maker = slot;
    if (chains_.source(a.stage, gradient) < 0) return;
    messages_[chains_.input(a.stage, a.micro, gradient)].user = slot;
    ++slots_[chains_.rank_of(a.stage)][slot].missing;
  }

  /// Runs slots until one lacks a message.
  void compute(int rank) {
    const std::size_t r = rank;
    for (auto& done = done_[r]; done < std::ssize(slots_[r]) && slots_[r][done].missing == 0;) {
      const std::size_t first = slots_[r][done].first;
      ++done;
      for (std::size_t i = first; i < row(rank).size(); ++i) {
        mark_done(row(rank)[i]);
        if (!row(rank)[i].fused) break;
      }
    }
  }

  void mark_done(const Action& a) {
    if (!a.makes_output()) return;
    const std::int32_t sender = messages_[chains_.output(a.stage, a.micro, a.passes_gradient())].sender;
    if (sender < 0) return;
    Stream& stream = streams_[batch(sender).stream];
    if (--batch(sender).unmade == 0 && stream.head < stream.batches.size() && stream.batches[stream.head] == sender)
      start_head(stream);
  }

  void start_head(Stream& stream) {
    if (stream.head == stream.batches.size()) return;
    Batch& b = batch(stream.batches[stream.head]);
    if (b.unmade > 0 || b.started) return;
    b.started = true;
    each_of(stream, b, [&](const Action& a) { work_.push_back(output(a)); });
  }

  /// Calls visit(action) for the messages of a batch.
  template <class Visit>
  void each_of(const Stream& stream, const Batch& b, Visit&& visit) const {
    std::int32_t left = b.open;
    for (std::size_t i = b.first; left > 0; ++i) {
      const Action& a = row(stream.rank)[i];
      const Message& m = messages_[output(a)];
      if (&batches_[a.is_send() ? m.sender : m.receiver] != &b) continue;
      --left;
      visit(a);
    }
  }

  void advance(Message& m) {
    const bool sending = batch(m.sender).started, receiving = batch(m.receiver).started;
    if (sending && !m.sent && (receiving || eager())) {
      m.sent = true;
      close(m.sender);
    }
    if (!sending || !receiving || m.received) return;
    m.received = true;
    const int rank = streams_[batch(m.receiver).stream].rank;
    close(m.receiver);
    const std::size_t r = rank;
    if (--slots_[r][m.user].missing == 0 && done_[r] == m.user) compute(rank);
  }

  void close(std::int32_t b) {
    if (--batch(b).open > 0) return;
    Stream& stream = streams_[batch(b).stream];
    ++stream.head;
    start_head(stream);
  }

  int node_of(std::int32_t b) const { return static_cast<int>(slots_.size()) + batches_[b].stream; }
  using Position = std::pair<int, int>;  ///< Rank and index in its row.
  Position wait_of_rank(int rank, WaitGraph&) const;
  Position wait_of_stream(int stream, WaitGraph&) const;
  ScheduleProblem explain() const;

  const ActionTable& table_;
  Chains chains_;
  RendezvousOptions options_;
  std::vector<std::vector<Slot>> slots_;  ///< [rank]
  std::vector<std::int32_t> done_;        ///< [rank]: slots that have run.
  std::vector<Batch> batches_;
  std::vector<Message> messages_;  ///< [output]
  std::vector<Stream> streams_;
  std::vector<OwnStream> own_streams_;  ///< Streams of the rank that is being read; a rank has few.
  std::vector<std::size_t> work_;       ///< Messages that may advance.
};

/// Adds what the next slot of a rank waits for; returns where the slot stands.
RendezvousCheck::Position RendezvousCheck::wait_of_rank(int rank, WaitGraph& waits) const {
  const auto& slots = slots_[rank];
  const int done = done_[rank];
  if (done == std::ssize(slots)) return {-1, -1};
  for (int i = slots[done].first; i < std::ssize(row(rank)); ++i) {
    const Action& a = row(rank)[i];
    const bool gradient = a.passes_gradient();
    if (a.makes_output() && chains_.source(a.stage, gradient) >= 0) {
      const Message& m = messages_[chains_.input(a.stage, a.micro, gradient)];
      if (!m.received) waits.add(rank, node_of(m.receiver), fmt::format("{} waits for what it receives", to_text(a)));
    }
    if (!a.fused) break;
  }
  return {rank, slots[done].first};
}

/// Adds what the batch at the head of a stream waits for; returns where the batch stands.
RendezvousCheck::Position RendezvousCheck::wait_of_stream(int s, WaitGraph& waits) const {
  const Stream& stream = streams_[s];
  if (stream.head == stream.batches.size()) return {-1, -1};
  const int node = static_cast<int>(slots_.size()) + s;
  const Batch& b = batches_[stream.batches[stream.head]];
  for (int i = b.first; i < std::ssize(row(stream.rank)) && row(stream.rank)[i].is_message(); ++i) {
    const Action& a = row(stream.rank)[i];
    const Message& m = messages_[output(a)];
    if (&batches_[a.is_send() ? m.sender : m.receiver] != &b) continue;
    if (!b.started && a.is_send() && m.maker >= done_[stream.rank])
      waits.add(node, stream.rank, fmt::format("{} waits for its op", to_text(a)));
    if (b.started && !(a.is_send() ? m.sent : m.received))
      waits.add(node, node_of(a.is_send() ? m.receiver : m.sender),
                fmt::format("{} waits for rank {} to {}", to_text(a), peer_of(a), a.is_send() ? "receive" : "send"));
  }
  return {stream.rank, b.first};
}

/// Nodes are the next slots of the ranks and the heads of the streams; the shortest cycle of waits is reported.
ScheduleProblem RendezvousCheck::explain() const {
  WaitGraph waits(static_cast<int>(slots_.size() + streams_.size()));
  std::vector<Position> position;
  for (int r = 0; r < std::ssize(slots_); ++r) position.push_back(wait_of_rank(r, waits));
  for (int s = 0; s < std::ssize(streams_); ++s) position.push_back(wait_of_stream(s, waits));
  auto cycle = waits.shortest_cycle();
  for (WaitGraph::Wait& w : cycle) w.reason = fmt::format("rank {}: {}", position[w.node].first, w.reason);
  const auto& [rank, index] = position[cycle.front().node];
  return {"deadlock", 6, rank, index, to_text(row(rank)[index]), joined_reasons(cycle)};
}

}  // namespace

std::vector<ScheduleProblem> check_rendezvous(const ActionTable& table, const Plan& plan,
                                              const RendezvousOptions& options) {
  return RendezvousCheck(table, plan, options).run();
}

}  // namespace stagecraft
