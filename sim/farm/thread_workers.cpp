// Workers of a JobFarm that are threads of this process.

#include <atomic>
#include <condition_variable>
#include <iterator>
#include <list>
#include <utility>

#include "sim/core/stop_point.hpp"
#include "sim/core/threads.hpp"
#include "sim/farm/workers.hpp"

namespace stagecraft {
namespace {

using SteadyClock = std::chrono::steady_clock;
using DescribedJobFunction = std::function<std::string(int job, const std::string& description)>;

class ThreadWorkers : public Workers {
 public:
  ThreadWorkers(const FarmOptions& options, bool is_caller_one, const DescribedJobFunction& work)
      : work_(work),
        stop_(options.stop),
        is_caller_one_(is_caller_one),
        max_threads_(options.workers - (is_caller_one ? 1 : 0)) {}

  ~ThreadWorkers() override { cancel(); }

  void add(int job, const std::string& description) override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace_back(description, std::list<JobEnd>{{.job = job}});
    }
    if (std::ssize(threads_) < max_threads_) {
      std::jthread thread = thread_if_possible([this](const std::stop_token& end) { work_until(end); });
      if (thread.joinable())
        threads_.push_back(std::move(thread));
      else
        max_threads_ = static_cast<int>(threads_.size());
    }
    added_.notify_one();
  }

  std::vector<JobEnd> wait(int milliseconds) override {
    std::unique_lock lock(mutex_);
    if ((is_caller_one_ || threads_.empty()) && !waiting_.empty())
      do_next(lock);
    else
      ended_.wait_for(lock, std::chrono::milliseconds(milliseconds), [this] { return !ends_.empty(); });
    for (JobEnd& end : ends_)
      if (end.error) end.text = message_of(end.error);
    std::vector<JobEnd> ends(std::make_move_iterator(ends_.begin()), std::make_move_iterator(ends_.end()));
    ends_.clear();
    return ends;
  }

  void cancel() override {
    std::unique_lock lock(mutex_);
    waiting_.clear();
    cancelled_ = true;
    ended_.wait(lock, [this] { return running_ == 0; });
    cancelled_ = false;
    ends_.clear();
  }

 private:
  void work_until(const std::stop_token& end) {
    std::unique_lock lock(mutex_);
    while (added_.wait(lock, end, [this] { return !waiting_.empty(); })) do_next(lock);
  }

  /// A description with the place of the job's end: a thread that has run out of memory has to be able to say so.
  using Job = std::pair<std::string, std::list<JobEnd>>;

  void do_next(std::unique_lock<std::mutex>& lock) {
    auto [description, end] = std::move(waiting_.front());
    waiting_.pop_front();
    ++running_;
    lock.unlock();
    work_on(description, end.front());
    lock.lock();
    --running_;
    ends_.splice(ends_.end(), end);
    ended_.notify_one();
  }

  void work_on(const std::string& description, JobEnd& end) const {
    const auto begin = SteadyClock::now();
    const StopScope scope([this] { return cancelled_ || !stop_().empty(); });
    try {
      try {
        stop_point();
        end.text = work_(end.job, description);
      } catch (const Stopped&) {
        end.how = JobEnd::How::Undone, end.text = stop_();
      }
    } catch (const std::exception&) {
      end.how = JobEnd::How::Threw, end.error = std::current_exception();
    }
    end.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  }

  static std::string message_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      return e.what();
    }
  }

  DescribedJobFunction work_;
  std::function<std::string()> stop_;
  bool is_caller_one_;
  int max_threads_;
  std::mutex mutex_;  ///< Guards `waiting_`, `ends_` and `running_`.
  std::condition_variable_any added_, ended_;
  std::deque<Job> waiting_;
  std::list<JobEnd> ends_;
  int running_ = 0;
  std::atomic<bool> cancelled_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace

std::unique_ptr<Workers> thread_workers(const FarmOptions& options, bool is_caller_one,
                                        const DescribedJobFunction& work) {
  return std::make_unique<ThreadWorkers>(options, is_caller_one, work);
}

}  // namespace stagecraft
