// Reads times of tasks that megatron/training/simulation of Megatron-LM writes (pull requests 3138 and 5104), as a
// model with a layer for each chunk, for `import megatron-timing`. Both files have a task for each forward and backward
// of a micro-batch in a model chunk of a pipeline rank, with its milliseconds: task_durations.json as {TASK:
// {"duration_ms": ...}}, finished_tasks.json as {RANK: [{"duration": ...}]}.

#include "sim/interchange/imports/megatron_timing.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json_reader.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr double kLargestNumber = 1 << 20;  ///< The most ranks, chunks and micro-batches.
constexpr double kLongestTask = 1e12;       ///< Milliseconds, so that sums are finite.

/// Times of one chunk by the number of the micro-batch, in milliseconds.
struct ChunkTimes {
  std::map<int, double> forward, backward;
};

std::string name_of_task(const char* direction, int chunk, int rank) {
  return fmt::format("the {} of chunk {} of pipeline rank {}", direction, chunk, rank);
}

class TimingReader {
 public:
  TimingReader(std::string_view text, const std::string& file) : file_(file) {
    const Json json = parsed(text);
    if (!json.is_object()) refuse("the file is no object of tasks");
    for (const JsonMember& member : json.members()) {
      if (!member.value.is_array()) {
        add(member.value, "duration_ms");
        continue;
      }
      for (const Json& task : member.value.items()) add(task, "duration");
    }
    require_all();
  }

  MegatronTiming timing(int samples) const {
    MegatronTiming result;
    result.model.name = "measured";
    for (const auto& [position, times] : chunks_) {
      const auto [chunk, rank] = position;
      // Seconds of one sample: the mean over the micro-batches, divided by the samples of each.
      const double each = 1e-3 / samples;
      const Seconds backward{mean(times.backward) * each / 2};
      Layer layer;
      layer.name = fmt::format("chunk{}_rank{}", chunk, rank);
      if (!result.model.layers.empty()) layer.inputs = {LayerId{result.model.layers.size() - 1}};
      layer.times = LayerTimes{{mean(times.forward) * each}, backward, backward};
      result.model.layers.push_back(std::move(layer));
    }
    result.notes = notes();
    return result;
  }

 private:
  [[noreturn]] void refuse(
      std::string message,
      std::string help = "give task_durations.json or finished_tasks.json of --simulate-result-dir") const {
    throw InputError({{{file_, 0, 0}, {}, std::move(message), std::move(help), "megatron-timing"}});
  }

  Json parsed(std::string_view text) const {
    try {
      return parse_json(text);
    } catch (const JsonSyntaxError& error) {
      refuse(with_line(error, text));
    }
  }

  static double mean(const std::map<int, double>& times) {
    double sum = 0;
    for (const auto& [micro_batch, time] : times) sum += time;
    return sum / static_cast<double>(times.size());
  }

  int number(const Json& task, const char* name) const {
    const Json* value = task.find(name);
    if (!value || !value->is_whole() || value->number() < 0 || value->number() > kLargestNumber)
      refuse(fmt::format("task {}: '{}' is no whole number from 0 to {}", tasks_, name, kLargestNumber));
    return static_cast<int>(value->number());
  }

  void add(const Json& task, const char* duration) {
    ++tasks_;
    if (!task.is_object()) refuse(fmt::format("task {} is no object", tasks_));
    const Json *type = task.find("task_type"), *time = task.find(duration);
    const bool forward = type && *type == Json("forward");
    if (!forward && !(type && *type == Json("backward")))
      refuse(fmt::format("task {}: 'task_type' is neither forward nor backward", tasks_));
    const int rank = number(task, "pp_rank"), chunk = number(task, "model_chunk_id");
    const int micro_batch = number(task, "microbatch_id");
    const std::string name = name_of_task(forward ? "forward" : "backward", chunk, rank);
    if (!time || !time->is_number() || !std::isfinite(time->number()) || time->number() < 0 ||
        time->number() > kLongestTask)
      refuse(fmt::format("{} has no '{}' for micro-batch {}", name, duration, micro_batch));
    ChunkTimes& times = chunks_[{chunk, rank}];
    if (!(forward ? times.forward : times.backward).emplace(micro_batch, time->number()).second)
      refuse(fmt::format("{} is there twice for micro-batch {}", name, micro_batch));
    ranks_ = std::max(ranks_, rank + 1);
    chunks_of_rank_ = std::max(chunks_of_rank_, chunk + 1);
    micro_batches_ = std::max(micro_batches_, micro_batch + 1);
  }

  /// Every chunk of every rank has run both directions of every micro-batch.
  void require_all() const {
    if (tasks_ == 0) refuse("the file has no task");
    for (int chunk = 0; chunk < chunks_of_rank_; ++chunk)
      for (int rank = 0; rank < ranks_; ++rank) {
        const auto times = chunks_.find({chunk, rank});
        if (times == chunks_.end())
          refuse(fmt::format("chunk {} of pipeline rank {} has no task", chunk, rank),
                 "the file of a run that ended by itself has all");
        require_micro_batches(times->second.forward, name_of_task("forward", chunk, rank));
        require_micro_batches(times->second.backward, name_of_task("backward", chunk, rank));
      }
  }

  void require_micro_batches(const std::map<int, double>& times, const std::string& name) const {
    if (std::ssize(times) != micro_batches_)
      refuse(
          fmt::format("{} is there for {} of {}", name, times.size(), pluralize(micro_batches_, "micro-batch", "es")),
          "the file of a run that ended by itself has all");
  }

  /// The largest deviation of a micro-batch from the mean of its chunk, as a part of the mean.
  double spread() const {
    double largest = 0;
    for (const auto& [position, chunk] : chunks_)
      for (const auto* times : {&chunk.forward, &chunk.backward}) {
        const double middle = mean(*times);
        if (middle == 0) continue;
        for (const auto& [micro_batch, time] : *times) largest = std::max(largest, std::abs(time / middle - 1));
      }
    return largest;
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> list{fmt::format("taken: {} of {} each on {}, {}", pluralize(chunks_of_rank_, "chunk"),
                                              pluralize(micro_batches_, "micro-batch", "es"),
                                              pluralize(ranks_, "pipeline rank"), pluralize(tasks_, "task"))};
    // Sums of equal times may differ from them in the last digits.
    if (const double largest = spread(); largest > 1e-9)
      list.push_back(fmt::format("times are means over the micro-batches, which differ from them by up to {:.3g} %",
                                 100 * largest));
    list.emplace_back(
        "the file has neither layers inside of chunks nor messages, parameters or bytes of outputs, so a chunk is one "
        "layer and these are 0; each gradient has half of the backward, which includes recomputation");
    return list;
  }

  const std::string& file_;
  std::map<std::pair<int, int>, ChunkTimes> chunks_;  ///< By chunk and rank, which is the order of the model.
  int ranks_ = 0, chunks_of_rank_ = 0, micro_batches_ = 0;
  std::int64_t tasks_ = 0;
};

}  // namespace

MegatronTiming read_megatron_timing(std::string_view text, const std::string& file, int samples) {
  return TimingReader(text, file).timing(samples);
}

}  // namespace stagecraft
