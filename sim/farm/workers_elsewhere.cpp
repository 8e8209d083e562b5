// Workers of a JobFarm in another program, such as a Python executor: one function does all jobs of a batch.

#include <utility>

#include "sim/core/diagnostic.hpp"
#include "sim/farm/workers.hpp"

namespace stagecraft {
namespace {

class WorkersElsewhere : public Workers {
 public:
  explicit WorkersElsewhere(const FarmOptions& options) : options_(options) {}

  void add(int job, const std::string& description) override {
    jobs_.push_back(job);
    descriptions_.push_back(description);
  }

  std::vector<JobEnd> wait(int) override {
    const std::vector<int> jobs = std::exchange(jobs_, {});
    const std::vector<std::string> descriptions = std::exchange(descriptions_, {});
    std::vector<std::string> results(jobs.size());
    if (options_.stop().empty()) results = options_.elsewhere(options_.key, descriptions);
    if (results.size() != jobs.size()) throw BackendError("not every job that was done elsewhere has a result");
    std::vector<JobEnd> ends;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      JobEnd& end = ends.emplace_back(JobEnd{.job = jobs[i], .text = std::move(results[i])});
      if (!end.text.empty()) continue;
      end.how = JobEnd::How::Undone;
      const std::string why = options_.stop();
      end.text = why.empty() ? "it was stopped elsewhere" : why;
    }
    return ends;
  }

 private:
  FarmOptions options_;
  std::vector<int> jobs_;
  std::vector<std::string> descriptions_;
};

}  // namespace

std::unique_ptr<Workers> workers_elsewhere(const FarmOptions& options) {
  return std::make_unique<WorkersElsewhere>(options);
}

}  // namespace stagecraft
