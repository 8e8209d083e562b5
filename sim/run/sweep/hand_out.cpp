#include "sim/run/sweep/hand_out.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

using Wall = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kBeat = 1s, kSilence = 10s;
constexpr int kTick = 1;         // Milliseconds between two looks for words of others.
constexpr double kAhead = 0.1;   // Seconds of work that a process has beside what it is at: no way is waited for.
constexpr int kMostAhead = 100;  // Jobs of that, for each worker.

// How words begin.
constexpr char kReady = 'r', kEnd = 'e', kFailed = 'f', kAlive = 'a';  // To the first process.
constexpr char kJob = 'j', kAll = 'q';                                 // From it; and kAlive.

class Beat {
 public:
  bool due() {
    if (Wall::now() - last_ < kBeat) return false;
    last_ = Wall::now();
    return true;
  }

 private:
  Wall::time_point last_ = Wall::now();
};

/// A process as the first one sees it.
struct Hand {
  int workers = 0;        ///< None before it has said that it is ready.
  std::deque<int> given;  ///< Jobs whose end it has not told.
  Wall::time_point heard = Wall::now();
  bool lost = false;
};

class HandOut {
 public:
  HandOut(std::span<const int> jobs, const std::string& key, Crew& own, const std::function<void(const JobEnd&)>& done,
          HandedOut& out)
      : key_(key), own_(own), done_(done), out_(out), left_(jobs.size()), waiting_(jobs.begin(), jobs.end()) {
    hands_.resize(static_cast<std::size_t>(world().size));
    hands_.front().workers = own.workers();
  }

  void run(const std::function<bool()>& stop) {
    while (left_ > 0) {
      if ((out_.stopped = stop())) return;
      for (int r = 0; r < world().size; ++r) give(r);
      hear_own();
      while (const auto word = hear()) listen(*word);
      for (int r = 1; r < world().size; ++r) look_after(r);
      if (beat_.due())
        for (int r = 1; r < world().size; ++r) tell(r, {kAlive});
    }
  }

 private:
  Hand& hand(int rank) { return hands_[rank]; }

  void hear_own() {
    if (out_.without_workers.contains(0)) {
      std::this_thread::sleep_for(kTick * 1ms);
      return;
    }
    try {
      for (const std::string& end : own_.wait(kTick)) ended(0, job_end_from_bytes(end));
    } catch (const BackendError& e) {
      drop_workers(0, e.what());
    }
  }

  /// MPI stands no fork, so a process cannot have new ones.
  void drop_workers(int rank, const std::string& why) {
    take_back(rank);
    hand(rank).workers = 0;
    out_.without_workers.emplace(rank, why);
    if (out_.without_workers.size() + out_.lost.size() < hands_.size() || left_ == 0) return;
    throw BackendError("no process has workers left: " + why);
  }

  void give(int rank) {
    Hand& h = hand(rank);
    const double mean = ends_ > 0 ? seconds_ / ends_ : kAhead + 1;
    const int ahead = static_cast<int>(std::min<double>(kMostAhead, kAhead / std::max(mean, 1e-9)));
    const auto most = static_cast<std::size_t>(h.workers * (1 + ahead));
    while (!h.lost && h.given.size() < most && !waiting_.empty()) {
      const int job = waiting_.front();
      waiting_.pop_front();
      h.given.push_back(job);
      if (rank == 0)
        own_.give(job);
      else
        tell(rank, kJob + std::to_string(job));
    }
  }

  void listen(const Word& word) {
    Hand& h = hand(word.from);
    h.heard = Wall::now();
    std::erase(out_.lost, word.from);  // It was only slow; what it had done counts where it is the first.
    h.lost = false;
    const std::string text = word.text.substr(1);
    switch (word.text.front()) {
      case kReady:
        h.workers = std::stoi(text);
        if (text.substr(text.find(' ') + 1) != key_)
          throw BackendError(
              fmt::format("process {} of {} has read another sweep than the first: do all of them see "
                          "the same files, and are they the same program?",
                          word.from, world().size));
        break;
      case kEnd:
        ended(word.from, job_end_from_bytes(text));
        break;
      case kFailed:
        drop_workers(word.from, text);
        break;
      default:
        break;
    }
  }

  void ended(int rank, const JobEnd& end) {
    std::erase(hand(rank).given, end.job);
    if (over_[end.job]) return;
    over_[end.job] = true;
    std::erase(waiting_, end.job);
    ++ends_, --left_;
    seconds_ += end.seconds;
    done_(end);
  }

  void look_after(int rank) {
    Hand& h = hand(rank);
    if (h.lost || Wall::now() - h.heard < kSilence) return;
    h.lost = true;
    out_.lost.push_back(rank);
    std::sort(out_.lost.begin(), out_.lost.end());
    take_back(rank);
  }

  /// What it had goes to others.
  void take_back(int rank) {
    Hand& h = hand(rank);
    std::deque<int> given = std::exchange(h.given, {});
    std::erase_if(given, [&](int job) { return over_[job]; });
    for (const int job : losses_.too_many(given, h.workers))
      ended(rank, {job, JobEnd::How::Crashed, "twice the workers that were at it were lost", 0});
    std::erase_if(given, [&](int job) { return over_[job]; });
    waiting_.insert(waiting_.begin(), given.begin(), given.end());
  }

  const std::string& key_;
  Crew& own_;
  const std::function<void(const JobEnd&)>& done_;
  HandedOut& out_;
  std::size_t left_;
  std::deque<int> waiting_;
  std::vector<Hand> hands_;
  std::map<int, bool> over_;
  Losses losses_;
  int ends_ = 0;
  double seconds_ = 0;
  Beat beat_;
};

/// False when the first has said that this is all.
bool obey(Crew& own, Wall::time_point& heard) {
  while (const auto word = hear()) {
    heard = Wall::now();
    if (word->text.front() == kAll) return false;
    if (word->text.front() == kJob) own.give(std::stoi(word->text.substr(1)));
  }
  if (Wall::now() - heard > kSilence)
    throw BackendError(fmt::format("the first process has been silent for {} s", kSilence.count()));
  return true;
}

}  // namespace

std::vector<int> Losses::too_many(const std::deque<int>& given, int workers) {
  constexpr int kMost = 2;
  std::vector<int> jobs;
  for (std::size_t i = 0; i < std::min(given.size(), static_cast<std::size_t>(workers)); ++i)
    if (++count_[given[i]] == kMost) jobs.push_back(given[i]);
  return jobs;
}

void hand_out(std::span<const int> jobs, const std::string& key, Crew& own, const std::function<bool()>& stop,
              const std::function<void(const JobEnd&)>& done, HandedOut& out) {
  HandOut(jobs, key, own, done, out).run(stop);
}

void take_part(const std::string& key, Crew& own) {
  tell(0, fmt::format("{}{} {}", kReady, own.workers(), key));
  Beat beat;
  bool works = true;
  for (auto heard = Wall::now(); obey(own, heard);) {
    try {
      for (const std::string& end : works ? own.wait(kTick) : std::vector<std::string>{}) tell(0, kEnd + end);
    } catch (const BackendError& e) {
      works = false;
      tell(0, kFailed + std::string(e.what()));
    }
    if (beat.due()) tell(0, {kAlive});
  }
  part(true);
}

Dismissal::~Dismissal() {
  for (int r = 1; r < world().size; ++r) tell(r, {kAll});
  part(!out_.stopped && out_.lost.empty());
}

}  // namespace stagecraft
