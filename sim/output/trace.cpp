// Writes a run in the Trace Event Format for Perfetto and Chrome (trace.json, `run --trace`): slices, arrows of
// messages, and counters of memory and links.

#include "sim/output/trace.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "sim/core/json.hpp"
#include "sim/core/text.hpp"
#include "sim/result/link_use.hpp"
#include "sim/result/memory.hpp"
#include "sim/result/time_classes.hpp"

namespace stagecraft {
namespace {

std::string stream_title(const Stream& stream, const Cluster& cluster) {
  const std::string peer = stream.peer.valid() ? cluster.devices[stream.peer].name : "";
  switch (stream.kind) {
    case StreamKind::Compute:
      return "compute";
    case StreamKind::Communication:
      return peer.empty() ? "communication" : "communication with " + peer;
    case StreamKind::Send:
      return "send to " + peer;
    case StreamKind::Receive:
      return "receive from " + peer;
    case StreamKind::Collective:
      return "collective";
    case StreamKind::Copy:
      return "copy";
  }
  return {};
}

/// "0-5", or "0-2,7" where layers are not consecutive.
std::string layer_range(const std::vector<LayerId>& layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t last = i;
    while (last + 1 < layers.size() && layers[last + 1].value == layers[last].value + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", layers[i].value);
    if (last > i) text += fmt::format("-{}", layers[last].value);
    i = last + 1;
  }
  return text;
}

class TraceWriter {
 public:
  TraceWriter(const Program& program, const Timeline& timeline, const Cluster& cluster, const TraceContext& context)
      : p_(program), t_(timeline), cluster_(cluster), context_(context) {
    if (context_.range) limit_time();
    if (!context_.plan) return;
    for (const Stage& stage : context_.plan->stages) layers_.push_back(layer_range(stage.shape.layers));
  }

  std::string run() {
    text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    for (int d = 0; d < p_.devices; ++d)
      event(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":{}}})", d,
            Json(cluster_.devices[DeviceId{d}].name).dump());
    assign_tracks();
    for (std::size_t n = 0; n < p_.size(); ++n)
      if (is_shown(n)) slice(n);
    for (std::size_t t = 0; t < p_.transfers.size(); ++t)
      if (is_shown(p_.transfers[t].send.value)) arrow(t);
    memory();
    if (!cluster_.changes.empty()) changes();
    if (context_.report) links();
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  bool is_in_range(const Instruction& i) const {
    return !i.is_numbered_by_update() && i.number >= context_.range->first && i.number <= context_.range->last;
  }

  void limit_time() {
    from_ = std::numeric_limits<double>::infinity(), until_ = 0;
    for (const InstructionId n : p_.instructions.ids()) {
      if (!is_in_range(p_.at(n))) continue;
      from_ = std::min(from_, t_.start[n]);
      until_ = std::max(until_, t_.end[n]);
    }
  }

  bool is_shown(std::size_t n) const {
    if (!context_.range) return true;
    const InstructionId id{static_cast<std::uint32_t>(n)};
    const Instruction& i = p_.at(id);
    return is_in_range(i) || (i.is_numbered_by_update() && t_.start[id] >= from_ && t_.start[id] <= until_);
  }

  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    text_ += first_ ? "{" : ",\n{";
    first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '}';
  }
  /// `count` decimals, without zeros at the end.
  static std::string decimals(double value, int count) {
    std::string text = fmt::format("{:.{}f}", value, count);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  }

  /// Microseconds in whole picoseconds, so that a slice ends exactly where the next begins.
  static std::string us(double seconds) { return decimals(std::round(seconds * 1e12) / 1e6, 6); }

  /// Microseconds between times that are rounded to picoseconds.
  static std::string duration(double from, double to) {
    return us((std::round(to * 1e12) - std::round(from * 1e12)) / 1e12);
  }

  /// The color of a computation in Chrome's viewer; messages are most of the slices, and go without.
  static std::string color_of(const Instruction& i) {
    return i.is_compute() ? fmt::format(R"(,"cname":"{}")", label(i.kind).trace_color) : "";
  }

  /// The rest of a slice's arguments, each with a comma before it.
  std::string details(const Instruction& i) const {
    std::string text = fmt::format(R"(,"stage":{})", i.stage.value);
    if (!i.is_numbered_by_update()) text += fmt::format(R"(,"micro_batch":{})", i.number);
    const std::size_t stage = i.stage.value;
    if (i.is_compute() && stage < layers_.size()) text += fmt::format(R"(,"layers":"{}")", layers_[stage]);
    if (i.is_message()) text += fmt::format(R"(,"bytes":{},"class":"pipeline")", p_.shape(i).bytes);
    if (i.kind == InstructionKind::Collective) {
      const CollectiveCall& c = p_.collective(i);
      text += fmt::format(R"(,"bytes":{},"class":"{}")", p_.shape(c).bytes, class_name(c.purpose));
    }
    return text;
  }

  /// Every slice goes to a track of its stream that is free at its start; a stream in strict order needs one.
  void assign_tracks() {
    std::vector<std::map<int, double>> free_at(p_.streams.size() + p_.devices);  // By track.
    std::vector<std::uint32_t> order;
    for (std::size_t n = 0; n < p_.size(); ++n)
      if (is_shown(n)) order.push_back(static_cast<std::uint32_t>(n));
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return t_.start[InstructionId{a}] < t_.start[InstructionId{b}];
    });
    track_.resize(p_.size());
    int next = 0;
    for (const std::uint32_t n : order) {
      const Instruction& i = p_.at(InstructionId{n});
      const bool ordered = i.stream.valid();
      auto& lanes = free_at[ordered ? i.stream.value : p_.streams.size() + i.device.value];
      auto free = std::find_if(lanes.begin(), lanes.end(),
                               [&](const auto& track) { return track.second <= t_.start[InstructionId{n}]; });
      if (free == lanes.end()) {
        const std::string title = ordered ? stream_title(p_.streams[i.stream], cluster_) : "messages";
        event(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", i.device.value, next,
              Json(title).dump());
        event(R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})", i.device.value,
              next, ordered ? i.stream.value : static_cast<int>(p_.streams.size()));
        free = lanes.emplace(next++, 0).first;
      }
      free->second = t_.end[InstructionId{n}];
      track_[n] = free->first;
    }
  }

  void slice(std::size_t n) {
    const Instruction& i = p_.at(InstructionId{n});
    event(
        R"("ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{},"dur":{}{},"args":{{"id":{},"iteration":{},"version":{}{}}})",
        to_text(p_, InstructionId{n}), i.is_compute() ? "compute" : "communication", i.device.value, track_[n],
        us(t_.start[InstructionId{n}]), duration(t_.start[InstructionId{n}], t_.end[InstructionId{n}]), color_of(i), n,
        p_.iteration_of(i), p_.version_of(i), details(i));
  }

  void arrow(std::size_t t) {
    const Transfer& transfer = p_.transfers[t];
    const std::size_t s = transfer.send.value, r = transfer.receive.value;
    event(R"("ph":"s","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{})", t,
          p_.at(InstructionId{s}).device.value, track_[s], us(t_.start[InstructionId{s}]));
    event(R"("ph":"f","bp":"e","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{})", t,
          p_.at(InstructionId{r}).device.value, track_[r], us(t_.end[InstructionId{r}]));
  }

  /// Three counters for each device, each with a sample only where it changes: most changes are of messages alone.
  void memory() {
    const MemoryHistory history(p_, t_);
    for (int d = 0; d < p_.devices; ++d) {
      const auto counter = [&](double time, const char* name, Bytes bytes) {
        event(R"("ph":"C","name":"{}","pid":{},"ts":{},"args":{{"MB":{}}})", name, d, us(time),
              decimals(bytes.value / 1e6, 3));
      };
      counter(0, "model", p_.memory[DeviceId{d}].total());
      Bytes activations{-1}, messages{-1};
      const auto sample = [&](double time, const MemorySample& s) {
        if (s.stash != activations) counter(time, "activations", s.stash);
        if (s.received + s.outgoing != messages) counter(time, "messages", s.received + s.outgoing);
        activations = s.stash, messages = s.received + s.outgoing;
      };
      sample(0, {});
      for (const MemorySample& s : history.curve(DeviceId{d}))
        if (s.time >= from_ && s.time <= until_) sample(s.time, s);
    }
  }

  /// Writes a process after the processes of the devices, with a track for each change. A periodic change shows its
  /// first times only.
  void changes() {
    constexpr int kMostTimes = 1000;
    const double end = std::min(until_, t_.last_end().value);
    event(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":"changes"}})", p_.devices);
    for (std::size_t c = 0; c < cluster_.changes.size(); ++c) {
      const Change& change = cluster_.changes[c];
      const double until = std::min(end, change.until.value), every = change.every.value;
      double from = change.from.value;
      for (int time = 0; time < kMostTimes && from < until; ++time) {
        const double over = every > 0 ? std::min(until, from + change.lasts.value) : until;
        event(R"("ph":"X","name":{},"cat":"change","pid":{},"tid":{},"ts":{},"dur":{})",
              Json(to_text(change, cluster_)).dump(), p_.devices, c, us(from), duration(from, over));
        from = every > 0 ? change.from.value + (time + 1) * every : until;
      }
    }
  }

  /// Writes a process with a counter for each of the busiest links: its use in percent, in equal parts of the run.
  void links() {
    constexpr int kParts = 400;
    constexpr std::size_t kMostLinks = 16;
    const Report& report = *context_.report;
    if (report.links.empty() || !(report.length.value > 0)) return;
    const int process = p_.devices + 1;
    event(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":"links"}})", process);
    const auto use = link_use(p_, t_, cluster_, report, kParts);
    const double begin = *std::min_element(t_.start.begin(), t_.start.end());
    for (std::size_t l = 0; l < std::min(use.size(), kMostLinks); ++l) {
      const std::string name = Json("link % " + cluster_.links[report.links[l].link].name).dump();
      for (int part = 0; part < kParts; ++part) {
        if (part > 0 && use[l][part] == use[l][part - 1]) continue;
        const double time = begin + report.length.value * part / kParts;
        if (time > until_) break;
        event(R"("ph":"C","name":{},"pid":{},"ts":{},"args":{{"use":{:.2f}}})", name, process, us(time),
              100 * use[l][part]);
      }
    }
  }

  const Program& p_;
  const Timeline& t_;
  const Cluster& cluster_;
  TraceContext context_;
  double from_ = 0, until_ = std::numeric_limits<double>::infinity();  ///< The time of the range.
  std::vector<std::string> layers_;                                    ///< [stage]: "0-5".
  std::vector<int> track_;
  bool first_ = true;
  std::string text_;
};

}  // namespace

std::string chrome_trace(const Program& program, const Timeline& timeline, const Cluster& cluster,
                         const TraceContext& context) {
  return TraceWriter(program, timeline, cluster, context).run();
}

}  // namespace stagecraft
