// Workers of a JobFarm that are threads of this process.

#include <atomic>
#include <condition_variable>
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
      waiting_.emplace_back(job, description);
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
    return std::exchange(ends_, {});
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

  void do_next(std::unique_lock<std::mutex>& lock) {
    const auto [job, description] = std::move(waiting_.front());
    waiting_.pop_front();
    ++running_;
    lock.unlock();
    JobEnd end = end_of(job, description);
    lock.lock();
    --running_;
    ends_.push_back(std::move(end));
    ended_.notify_one();
  }

  JobEnd end_of(int job, const std::string& description) const {
    JobEnd end{.job = job};
    const auto begin = SteadyClock::now();
    const StopScope scope([this] { return cancelled_ || !stop_().empty(); });
    try {
      stop_point();
      end.text = work_(job, description);
    } catch (const Stopped&) {
      end.how = JobEnd::How::Undone, end.text = stop_();
    } catch (const std::exception& e) {
      end.how = JobEnd::How::Threw, end.text = e.what(), end.error = std::current_exception();
    }
    end.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
    return end;
  }

  DescribedJobFunction work_;
  std::function<std::string()> stop_;
  bool is_caller_one_;
  int max_threads_;
  std::mutex mutex_;  ///< Guards `waiting_`, `ends_` and `running_`.
  std::condition_variable_any added_, ended_;
  std::deque<std::pair<int, std::string>> waiting_;
  std::vector<JobEnd> ends_;
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
