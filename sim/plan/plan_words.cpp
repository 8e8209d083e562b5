// A plan in the words of people who run it, "TP 4 · PP 8 x VPP 5 · DP 8": for headings, tables and files.

#include "sim/plan/plan_words.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostListed = 4;

/// "1,024".
std::string with_commas(int number) {
  std::string text = std::to_string(number);
  for (int place = static_cast<int>(text.size()) - 3; place > 0; place -= 3) text.insert(place, 1, ',');
  return text;
}

/// The stages without the copies that run other micro-batches with the same weights.
std::vector<const Stage*> different_stages_of(const Plan& plan) {
  std::vector<const Stage*> stages;
  for (const StageId s : plan.stages.ids())
    if (const StageId twin = plan.stages[s].twin; !twin.valid() || s < twin) stages.push_back(&plan.stages[s]);
  return stages;
}

using StageNumber = std::function<int(const Stage&)>;

bool is_shared(const std::vector<const Stage*>& stages, const StageNumber& number) {
  return std::all_of(stages.begin(), stages.end(),
                     [&](const Stage* s) { return number(*s) == number(*stages.front()); });
}

/// "4"; "15-1" of few stages; "1 to 8" of many.
std::string number_words(const std::vector<const Stage*>& stages, const StageNumber& number) {
  std::vector<int> numbers;
  for (const Stage* s : stages) numbers.push_back(number(*s));
  if (is_shared(stages, number)) return std::to_string(numbers.front());
  if (numbers.size() > kMostListed) {
    const auto [smallest, largest] = std::minmax_element(numbers.begin(), numbers.end());
    return fmt::format("{} to {}", *smallest, *largest);
  }
  std::vector<std::string> words;
  for (const int n : numbers) words.push_back(std::to_string(n));
  return join(words, "-");
}

/// "PP 8 x VPP 5": pipeline ranks, each a set of devices that share stages, and the stages of each.
std::string pipeline_words(const Plan& plan, const std::vector<const Stage*>& stages) {
  std::map<std::vector<DeviceId>, int> stages_on;
  for (const Stage* s : stages) {
    std::vector<DeviceId> devices = s->all_devices();
    std::sort(devices.begin(), devices.end());
    ++stages_on[devices];
  }
  std::size_t devices = 0;
  for (const auto& [set, count] : stages_on) devices += set.size();
  if (devices != devices_of(plan).size())
    return pluralize(std::ssize(stages), "stage");  // Some devices are in two sets.
  std::string words = fmt::format("PP {}", stages_on.size());
  if (!plan.has_whole_stages() || stages.size() == stages_on.size()) return words;
  const int first = stages_on.begin()->second;
  const bool is_even =
      std::all_of(stages_on.begin(), stages_on.end(), [&](const auto& s) { return s.second == first; });
  return words + (is_even ? fmt::format(" x VPP {}", first) : ", " + pluralize(std::ssize(stages), "stage"));
}

/// "MBS 1 x 128" where each replica of every stage runs micro-batches of one size; else the samples of all replicas.
std::string batch_words(const Plan& plan, std::vector<const Stage*> stages) {
  std::erase_if(stages, [](const Stage* s) {  // Their only micro-batch is the whole batch.
    return s->task == StageTask::Update || s->task == StageTask::TakeWeights;
  });
  const auto size = [](const Stage& s) { return s.micro_batch_size; };
  const auto count = [&](const Stage& s) { return plan.mini_batch / s.micro_batch_size; };
  const auto parts = [](const Stage& s) { return s.replicas() / s.turns(); };
  const bool is_even = std::all_of(stages.begin(), stages.end(), [&](const Stage* s) {
    return size(*s) % parts(*s) == 0 && count(*s) % s->turns() == 0;
  });
  const auto own_size = [&](const Stage& s) { return size(s) / parts(s); };
  const auto own_count = [&](const Stage& s) { return count(s) / s.turns(); };
  if (is_even && is_shared(stages, own_size) && is_shared(stages, own_count))
    return fmt::format("MBS {} x {}", own_size(*stages.front()), own_count(*stages.front()));
  return fmt::format("micro-batches of {} x {}", number_words(stages, size), number_words(stages, count));
}

}  // namespace

std::string plan_words(const Plan& plan) {
  const std::vector<const Stage*> stages = different_stages_of(plan);
  std::vector<std::string> words;
  const auto add_degree = [&](const char* name, const StageNumber& degree) {
    const std::string number = number_words(stages, degree);
    if (number != "1") words.push_back(fmt::format("{} {}", name, number));
  };
  add_degree("TP", [](const Stage& s) { return s.shape.degrees.tensor; });
  add_degree("CP", [](const Stage& s) { return s.shape.degrees.context; });
  add_degree("EP", [](const Stage& s) { return s.shape.degrees.expert; });
  for (const auto& [dispatcher, name] : {std::pair{ExpertDispatch::PerNode, "per-node dispatch"},
                                         std::pair{ExpertDispatch::AllGather, "all-gather dispatch"}})
    if (std::any_of(stages.begin(), stages.end(), [&, d = dispatcher](const Stage* s) {
          return s->shape.degrees.expert > 1 && s->shape.dispatcher == d;
        }))
      words.emplace_back(name);
  add_degree("ETP", [](const Stage& s) { return s.shape.degrees.expert_tensor; });
  words.push_back(pipeline_words(plan, stages));
  add_degree("DP", [](const Stage& s) { return s.replicas(); });
  const auto level = [](const Stage& s) { return static_cast<int>(s.shape.sharding); };
  if (const std::string number = number_words(stages, level); number != "0") words.push_back("ZeRO-" + number);
  words.push_back(batch_words(plan, stages));
  return join(words, " · ");
}

std::string plan_line(const Plan& plan, int tokens) {
  const int slices = plan.loads.slices, samples = plan.mini_batch / slices;
  const auto is_whole = [&](const Load& load) { return load.samples == 1 && load.rows == 1.0 / slices; };
  const bool is_packed =
      slices == 1 ? !plan.loads.empty() : !std::all_of(plan.loads.classes.begin(), plan.loads.classes.end(), is_whole);
  std::string line = fmt::format("{} = {} {}{}", plan_words(plan), with_commas(samples), is_packed ? "pack" : "sample",
                                 samples == 1 ? "" : "s");
  if (tokens > 0 && !is_packed) line += fmt::format(" of {} tokens", with_commas(tokens));
  return slices > 1 ? fmt::format("{} in {}", line, pluralize(slices, "slice")) : line;
}

}  // namespace stagecraft
