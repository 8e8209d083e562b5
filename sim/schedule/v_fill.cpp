#include "sim/schedule/v_fill.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/core/id_vector.hpp"
#include "sim/schedule/v_clock.hpp"

namespace stagecraft {
namespace {

class Filler {
 public:
  Filler(const VRows& rows, int micro_batches)
      : rows_(rows), peak_(peak_of(rows)), clock_(static_cast<int>(rows.size()), micro_batches), ranks_(rows.size()) {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      ranks_[r].result.reserve(rows[r].size());
      for (const VPass pass : kAllVPasses) ranks_[r].place[pass] = next_place(rows[r], pass, 0);
    }
  }

  VRows filled() {
    std::vector<int> awake(rows_.size()), now;
    std::iota(awake.begin(), awake.end(), 0);
    const std::vector<int> order = ranks_by_step(rows_);
    std::vector<std::size_t> seen(rows_.size(), 0);
    auto rank = order.begin();
    const auto time = [&] { return rows_[*rank][seen[*rank]].time; };
    for (int t = 0; rank != order.end() || !awake.empty(); ++t) {
      if (awake.empty()) t = time();
      now.swap(awake);
      awake.clear();
      for (; rank != order.end() && time() == t; ++seen[*rank++]) now.push_back(*rank);
      for (const int r : now)
        if (look(r, t)) wake(r, awake);
    }
    VRows result;
    for (Rank& one : ranks_) result.push_back(std::move(one.result));
    return result;
  }

 private:
  struct Rank {
    EnumArray<VPass, std::size_t, kVPasses> place{};  ///< Where the next pass of each kind stands.
    std::size_t next = 0;                             ///< The first place whose step is not over.
    int looked = -1, alive = 0;
    VRow result;
  };

  static std::size_t next_place(const VRow& row, VPass pass, std::size_t place) {
    while (place < row.size() && row[place].pass != pass) ++place;
    return place;
  }

  void wake(int r, std::vector<int>& awake) const {
    const int last = static_cast<int>(rows_.size()) - 1;
    for (int other = std::max(r - 1, 0); other <= std::min(r + 1, last); ++other) awake.push_back(other);
  }

  bool ran(const Rank& rank, const VRow& row, std::size_t place) const { return place < rank.place[row[place].pass]; }

  /// Whether the rank runs something in the step, its own pass or a later one.
  bool look(int r, int t) {
    Rank& rank = ranks_[r];
    const VRow& row = rows_[r];
    if (std::exchange(rank.looked, t) == t) return false;
    while (rank.next < row.size() && row[rank.next].time < t) ++rank.next;
    const bool own = rank.next < row.size() && row[rank.next].time == t && !ran(rank, row, rank.next);
    const std::size_t place = own ? rank.next : later(r, t);
    if (place == row.size()) return false;
    const VPass pass = row[place].pass;
    rank.place[pass] = next_place(row, pass, place + 1);
    rank.alive += activations(pass);
    rank.result.push_back({t, pass});
    clock_.run(r, pass, t);
    return true;
  }

  /// The first later pass that can run; the size of the row for none.
  std::size_t later(int r, int t) const {
    const Rank& rank = ranks_[r];
    const VRow& row = rows_[r];
    EnumArray<VPass, std::size_t, kVPasses> places = rank.place;
    for (const VPass pass : kAllVPasses) {
      const auto input = clock_.input(r, pass);
      if (!input || *input >= t) places[pass] = row.size();
    }
    std::sort(places.begin(), places.end());
    int change = 0, most = 0;
    std::size_t seen = rank.next;
    for (const std::size_t place : places) {
      if (place == row.size() || !is_forward(row[place].pass)) return place;
      if (rank.alive >= peak_) continue;
      for (; seen < place; ++seen)
        if (!ran(rank, row, seen)) most = std::max(most, change += activations(row[seen].pass));
      if (rank.alive + most < peak_) return place;
    }
    return row.size();
  }

  const VRows& rows_;
  int peak_;
  VClock clock_;
  std::vector<Rank> ranks_;
};

}  // namespace

void fill_bubbles(VRows& rows, int micro_batches) { rows = Filler(rows, micro_batches).filled(); }

}  // namespace stagecraft
