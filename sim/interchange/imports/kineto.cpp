// Reads a trace of torch.profiler (Kineto) as a chain of layers with measured times, for `import kineto` and `import
// nsight`. A kernel has the correlation id of the call that launched it; an operator of backward has the sequence
// number of its operator in forward.

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/layer_ranges.hpp"
#include "sim/interchange/imports/trace_events.hpp"
#include "sim/interchange/imports/traces.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kModule = "nn.Module: ", kBackward = "autograd::engine::evaluate_function: ";

struct MeasuredModule {
  double first = 0;  ///< Start of the first call.
  int calls = 0;
  double forward = 0, backward = 0;  ///< Microseconds of all calls.
};

/// Calls of one thread that do not overlap, by their starts.
struct CallInterval {
  double start, end;
  int module;  ///< -1: an operator of backward of no layer.
};
using Calls = std::unordered_map<std::string, std::vector<CallInterval>>;

const CallInterval* call_at(const Calls& calls, const std::string& thread, double time) {
  const auto of_thread = calls.find(thread);
  if (of_thread == calls.end()) return nullptr;
  const std::vector<CallInterval>& list = of_thread->second;
  auto after =
      std::upper_bound(list.begin(), list.end(), time, [](double t, const CallInterval& c) { return t < c.start; });
  if (after == list.begin()) return nullptr;
  --after;
  return time <= after->end ? &*after : nullptr;
}

/// "TransformerBlock" of "nn.Module: TransformerBlock_3"; empty for other events.
std::string class_of(const TraceEvent& event) {
  if (!event.name.starts_with(kModule)) return {};
  const std::string instance = event.name.substr(kModule.size());
  return instance.substr(0, instance.rfind('_'));
}

class KinetoReader {
 public:
  KinetoReader(std::string_view text, const std::string& file, const std::vector<std::string>& classes, int samples)
      : file_(file),
        classes_(classes.begin(), classes.end()),
        samples_(samples),
        trace_(read_trace_events(text, file)) {
    name_ranges();
    for (const TraceEvent& event : trace_.events) order_.push_back(&event);
    // The outer one of two events with one start comes first.
    std::stable_sort(order_.begin(), order_.end(), [](const TraceEvent* a, const TraceEvent* b) {
      return a->start != b->start ? a->start < b->start : a->duration > b->duration;
    });
  }

  KinetoModel read() {
    require_classes();
    find_backward();
    find_calls();
    match_sequences();
    add_kernels();
    return model();
  }

 private:
  /// Where no module has a name, ranges of record_function() or NVTX stand for them. The number of a layer, from below
  /// zero, is the sequence number that joins its backward to its forward.
  void name_ranges() {
    for (const TraceEvent& event : trace_.events)
      if (event.name.starts_with(kModule)) return;
    std::map<std::string, std::int64_t> numbers;
    for (TraceEvent& event : trace_.events) {
      const bool is_range = event.category.empty() || event.category == "user_annotation";
      const std::optional<LayerRange> range = layer_of_range(event.name);
      if (!is_range || !range || event.name.find("Backward") != std::string::npos) continue;
      const auto number = static_cast<std::int64_t>(numbers.size()) + 1;
      range_sequence_[&event] = -numbers.try_emplace(range->name, number).first->second;
      event.name = (range->backward ? kBackward : kModule);
      event.name += range->name;
    }
  }
  std::optional<std::int64_t> sequence_of(const TraceEvent* event) const {
    const auto range = range_sequence_.find(event);
    return range == range_sequence_.end() ? event->number("Sequence number") : range->second;
  }

  [[noreturn]] void refuse(std::string message, std::string help) const {
    throw InputError({{{file_, 0, 0}, {}, std::move(message), std::move(help), "trace"}});
  }

  void require_classes() const {
    std::map<std::string, std::set<std::string>> instances;
    for (const TraceEvent* event : order_)
      if (const std::string name = class_of(*event); !name.empty()) instances[name].insert(event->name);
    if (instances.empty())
      refuse("no event names a module of PyTorch",
             "profile with torch.profiler.profile(with_stack=True, with_modules=True), or with ranges such as "
             "record_function(\"layer_3\") and \"layer_3 backward\"; --overlap needs neither");
    std::string list;
    for (const auto& [name, set] : instances)
      list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", name, set.size());
    const char* kind = range_sequence_.empty() ? "module" : "range";
    if (classes_.empty())
      refuse(fmt::format("which {}s are layers is not said", kind), "--layer CLASS, one of: " + list);
    for (const std::string& name : classes_)
      if (!instances.contains(name)) refuse(fmt::format("no {} has the class '{}'", kind, name), "one of: " + list);
  }

  /// Operators of backward, whose modules are found later.
  void find_backward() {
    for (const TraceEvent* event : order_) {
      if (!event->name.starts_with(kBackward)) continue;
      std::vector<CallInterval>& list = backward_[event->thread];
      if (!list.empty() && event->start < list.back().end) continue;
      list.push_back({event->start, event->end(), -1});
      backward_events_.push_back(event);
    }
  }

  void find_calls() {
    std::unordered_map<std::string, int> numbers;
    for (const TraceEvent* event : order_) {
      if (!classes_.contains(class_of(*event))) continue;
      std::vector<CallInterval>& list = forward_[event->thread];
      if (!list.empty() && event->start < list.back().end) continue;  // Inside of another layer.
      if (call_at(backward_, event->thread, event->start) != nullptr) {
        ++recomputed_;
        continue;
      }
      const auto [entry, is_new] = numbers.try_emplace(event->name, static_cast<int>(modules_.size()));
      if (is_new) {
        modules_.push_back({.first = event->start});
        names_.push_back(event->name.substr(kModule.size()));
      }
      ++modules_[entry->second].calls;
      list.push_back({event->start, event->end(), entry->second});
      forward_time_[entry->second] += event->duration;
    }
    if (modules_.empty())
      refuse("the chosen layers are called in backward only", "--layer with a class that is called in forward");
  }

  void match_sequences() {
    std::unordered_map<std::int64_t, int> module_of;
    for (const TraceEvent* event : order_) {
      const auto sequence = sequence_of(event);
      const bool is_range = range_sequence_.contains(event) && event->name.starts_with(kModule);
      if (!sequence || (event->category != "cpu_op" && !is_range)) continue;
      if (const CallInterval* call = call_at(forward_, event->thread, event->start))
        module_of[*sequence] = call->module;
    }
    for (const TraceEvent* event : backward_events_) {
      const auto sequence = sequence_of(event);
      const auto module = sequence ? module_of.find(*sequence) : module_of.end();
      if (module == module_of.end()) continue;
      const_cast<CallInterval*>(call_at(backward_, event->thread, event->start))->module = module->second;
      backward_time_[module->second] += event->duration;
    }
  }

  void add_kernels() {
    std::unordered_map<std::int64_t, const TraceEvent*> launches;
    for (const TraceEvent* event : order_)
      if (event->category == "cuda_runtime")
        if (const auto id = event->number("correlation")) launches[*id] = event;
    for (const TraceEvent* event : order_) {
      if (event->category != "kernel" && event->category != "gpu_memcpy" && event->category != "gpu_memset") continue;
      ++kernels_;
      all_time_ += event->duration;
      const auto id = event->number("correlation");
      const auto launch = id ? launches.find(*id) : launches.end();
      if (launch == launches.end()) continue;
      const TraceEvent& at = *launch->second;
      if (const CallInterval* call = call_at(backward_, at.thread, at.start)) {
        if (call->module >= 0) add(modules_[call->module].backward, event->duration);
      } else if (const CallInterval* forward = call_at(forward_, at.thread, at.start)) {
        add(modules_[forward->module].forward, event->duration);
      }
    }
    if (kernels_ > 0 && matched_ == 0)
      refuse(
          fmt::format("{} in the trace, none launched by a chosen layer", pluralize(kernels_, "kernel")),
          "profile with torch.profiler.ProfilerActivity.CPU and CUDA together; CUDA graphs hide who launches a kernel");
    if (kernels_ > 0) return;
    for (const auto& [module, time] : forward_time_) add(modules_[module].forward, time);
    for (const auto& [module, time] : backward_time_) add(modules_[module].backward, time);
  }

  void add(double& sum, double time) {
    sum += time;
    ++matched_;
    matched_time_ += time;
  }

  KinetoModel model() const {
    KinetoModel result;
    result.model.name = "profiled";
    for (std::size_t m = 0; m < modules_.size(); ++m) {
      const MeasuredModule& module = modules_[m];
      const double each = 1e-6 / module.calls / samples_;
      Layer layer;
      layer.name = names_[m];
      if (m > 0) layer.inputs = {LayerId{m - 1}};
      layer.times = LayerTimes{{module.forward * each}, {module.backward * each / 2}, {module.backward * each / 2}};
      result.model.layers.push_back(std::move(layer));
    }
    const int calls = modules_.front().calls;
    result.notes.push_back(
        fmt::format("taken: {} with {} each", pluralize(std::ssize(modules_), "layer"), pluralize(calls, "call")));
    if (kernels_ > 0)
      result.notes.push_back(fmt::format("{} of {} belong to layers: {:.4g} of {:.4g} ms on the GPU", matched_,
                                         pluralize(kernels_, "kernel"), matched_time_ / 1e3, all_time_ / 1e3));
    else
      result.notes.emplace_back("there are no kernels, so times are of the CPU");
    if (trace_.unfinished > 0)
      result.notes.push_back(fmt::format("{} without a duration {} left out; the first is {}",
                                         pluralize(trace_.unfinished, "event"), trace_.unfinished == 1 ? "is" : "are",
                                         trace_.first_unfinished));
    if (recomputed_ > 0)
      result.notes.push_back(fmt::format("{} of layers during backward are recomputation and count as backward",
                                         pluralize(recomputed_, "call")));
    result.notes.emplace_back(
        "a trace has neither parameters nor bytes of outputs, so both are 0; each gradient has half of the backward");
    return result;
  }

  const std::string& file_;
  std::set<std::string> classes_;
  int samples_;
  TraceDocument trace_;
  std::vector<const TraceEvent*> order_, backward_events_;
  std::unordered_map<const TraceEvent*, std::int64_t> range_sequence_;  ///< Numbers of ranges that stand for modules.
  Calls forward_, backward_;
  std::vector<MeasuredModule> modules_;
  std::vector<std::string> names_;
  std::map<int, double> forward_time_, backward_time_;
  std::int64_t kernels_ = 0, matched_ = 0;
  int recomputed_ = 0;
  double matched_time_ = 0, all_time_ = 0;
};

}  // namespace

KinetoModel read_kineto(std::string_view text, const std::string& file, const std::vector<std::string>& layers,
                        int samples) {
  return KinetoReader(text, file, layers, samples).read();
}

}  // namespace stagecraft
