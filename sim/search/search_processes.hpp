#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sim/core/json.hpp"

namespace stagecraft {

/// Thrown on the other processes when the first one has ended the search.
struct SearchEnded {};

/// What all processes know after a batch.
struct BatchResults {
  std::vector<Json> results;  ///< [number in the batch]; null: not done.
  std::string stopped;        ///< Why the search stops; empty: it goes on.
};

/// The processes that a launcher has started together and that share one search. All of them take the same decisions
/// from the same results. Each evaluates its share of every batch, and the first one collects the results and hands
/// them to all. A process that is silent for ten seconds is lost: the first one evaluates its share, and it gets no
/// more.
class SearchProcesses {
 public:
  /// BackendError if another process has another `question`.
  explicit SearchProcesses(const std::string& question);
  /// The first process tells the others that the search has ended.
  ~SearchProcesses();
  SearchProcesses(const SearchProcesses&) = delete;
  SearchProcesses& operator=(const SearchProcesses&) = delete;

  bool are_several() const { return size_ > 1; }
  bool is_first() const { return rank_ == 0; }
  int rank() const { return rank_; }

  /// The process of each task of a batch. `preferred` has a rank for each, or -1; shares are equal to one task.
  std::vector<int> owners(const std::vector<int>& preferred) const;

  /// On the first process: waits for the shares of the others. `batch` has its own results, and gets theirs; results
  /// of lost processes stay null. Stops waiting when `hurry` says true.
  void collect(BatchResults& batch, const std::function<bool()>& hurry);
  /// On the first process: hands all results to the others.
  void announce(const BatchResults& batch);
  /// On the others: sends their own results and returns all of them. SearchEnded if the first one ends the search.
  BatchResults deliver(const BatchResults& share);
  /// On the others: an error that ends the search of all.
  void fail(const std::string& why);
  /// On the others: they have no share of the next batch, and the search of all ends with it. Returns when it has.
  void give_up(const std::string& why);
  /// On the others: returns when the first process has ended the search.
  void wait_for_end();
  /// On the first process: it ends the search before the others are ready to.
  void interrupt() { whole_ = false; }

  std::vector<int> lost() const;

 private:
  using SteadyClock = std::chrono::steady_clock;
  struct Process {
    SteadyClock::time_point heard = SteadyClock::now();
    bool delivered = false, lost = false;
  };
  void beat(const std::stop_token&);  ///< Tells the other processes that this one is alive, until it is to stop.
  void send(int rank, char kind, const std::string& text);
  void take_message(int from, const std::string& message, BatchResults* batch);
  bool receive_all(BatchResults* batch);
  void check_silence(int rank);

  int rank_, size_;
  std::string question_;
  bool ended_ = false, whole_ = true, gave_up_ = false;
  int number_ = 0;  ///< The number of the batch.
  std::vector<Process> processes_;
  BatchResults announced_;
  bool is_announced_ = false;
  mutable std::mutex mutex_;  ///< Guards the calls of MPI.
  std::jthread heartbeat_;
};

}  // namespace stagecraft
