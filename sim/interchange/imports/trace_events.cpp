// Reads the complete events (ph: X) of a trace in Chrome's JSON format, event by event without a tree of the whole
// file, and renames the categories of older profilers; the importers of traces share it.

#include "sim/interchange/imports/trace_events.hpp"

#include <cmath>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json_reader.hpp"

namespace stagecraft {
namespace {

[[noreturn]] void refuse(const std::string& file, std::string message) {
  throw InputError({{{file, 0, 0}, {}, std::move(message), "give a trace in Chrome's JSON format", "trace"}});
}

/// The text of a member; identifiers may be numbers or strings.
std::string member_text(const Json& event, const char* name) {
  const Json* value = event.find(name);
  if (value == nullptr) return {};
  return value->is_string() ? value->text() : value->dump();
}

double member_number(const Json& event, const char* name) {
  const Json* value = event.find(name);
  return value && value->is_number() ? value->number() : std::nan("");
}

/// Kineto's category of today. PyTorch 1.8 to 1.11 wrote Operator, Runtime, Kernel, Memcpy and Memset, with ranges of
/// record_function() among the operators; ROCm, XPU and other accelerators have runtimes and drivers of their own.
std::string canonical_category(const TraceEvent& event) {
  const std::string& category = event.category;
  if (category == "Operator") {
    const bool is_operator = event.name.find("::") != std::string::npos ||
                             event.name.find("Backward") != std::string::npos || event.number("Sequence number");
    return is_operator ? "cpu_op" : "user_annotation";
  }
  if (category == "Kernel") return "kernel";
  if (category == "Memcpy" || category == "Memset") return category == "Memcpy" ? "gpu_memcpy" : "gpu_memset";
  if (category == "Runtime" || category.ends_with("_runtime") || category.ends_with("_driver")) return "cuda_runtime";
  return category;
}

/// A whole number that a double holds exactly.
std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr double kExact = 9e15;  // Doubles are whole up to 2^53.
  if (!value.is_whole() || std::abs(value.number()) > kExact) return {};
  return static_cast<std::int64_t>(value.number());
}

std::vector<std::pair<std::string, std::int64_t>> whole_numbers(const Json* arguments) {
  std::vector<std::pair<std::string, std::int64_t>> numbers;
  if (arguments == nullptr || !arguments->is_object()) return numbers;
  for (const JsonMember& member : arguments->members())
    if (const auto number = whole_number(member.value)) numbers.emplace_back(member.key, *number);
  numbers.shrink_to_fit();
  return numbers;
}

/// Takes the events of a list, or of the list `traceEvents` of an object, one after the other as they are read.
class TraceReader : public JsonHandler {
 public:
  explicit TraceReader(const std::string& file) : file_(file) {}

  TraceDocument finish() {
    if (!found_list_) refuse(file_, "there is no list 'traceEvents'");
    return std::move(document_);
  }

  void scalar(Json value, std::size_t begin) override {
    if (in_list()) event_.scalar(std::move(value), begin), take_event();
  }
  void key(std::string name, std::size_t begin) override {
    if (in_list())
      event_.key(std::move(name), begin);
    else if (depth_ == 1)
      names_events_ = name == "traceEvents";
  }
  void open(bool is_object, std::size_t begin) override {
    if (in_list()) {
      event_.open(is_object, begin);
    } else if (!is_object && (depth_ == 0 || (depth_ == 1 && names_events_))) {
      list_depth_ = depth_ + 1;
      found_list_ = true;
      number_ = 0;
      document_ = {};
    }
    ++depth_;
  }
  void close() override {
    if (--depth_ < list_depth_) {
      list_depth_ = 0;
    } else if (in_list()) {
      event_.close();
      take_event();
    }
  }

 private:
  bool in_list() const { return list_depth_ > 0; }

  void take_event() {
    if (!event_.complete()) return;
    ++number_;
    const Json event = event_.take();
    if (!event.is_object()) refuse(file_, fmt::format("event {} is no object", number_));
    const std::string name = member_text(event, "name"), pid = member_text(event, "pid");
    const Json* arguments = event.find("args");
    if (name == "process_name" && arguments) document_.processes[pid] = member_text(*arguments, "name");
    if (member_text(event, "ph") != "X") return;
    const double start = member_number(event, "ts"), duration = member_number(event, "dur");
    const auto described = [&] { return fmt::format("event {}, '{}'", number_, name); };
    if (!std::isfinite(start)) refuse(file_, described() + ", has no start");
    if (!std::isfinite(duration) || duration < 0) {
      if (document_.unfinished++ == 0) document_.first_unfinished = described();
      return;
    }
    TraceEvent& complete = document_.events.emplace_back(
        TraceEvent{name, member_text(event, "cat"), pid + "/" + member_text(event, "tid"), start, duration});
    complete.numbers = whole_numbers(arguments);
    complete.category = canonical_category(complete);
  }

  const std::string& file_;
  TraceDocument document_;
  JsonBuilder event_;
  std::size_t depth_ = 0, list_depth_ = 0;  ///< Open brackets; how many with that of the list, 0 outside of it.
  bool names_events_ = false, found_list_ = false;
  std::size_t number_ = 0;  ///< The number of the newest event, from 1 on.
};

}  // namespace

std::optional<std::int64_t> TraceEvent::number(std::string_view argument) const {
  for (const auto& [key, value] : numbers)
    if (key == argument) return value;
  return {};
}

void TraceDocument::require_finished(const std::string& file) const {
  if (unfinished > 0) refuse(file, first_unfinished + ", has no duration");
}

TraceDocument read_trace_events(std::string_view text, const std::string& file) {
  if (text.starts_with("\x1f\x8b")) refuse(file, "the trace is compressed; unpack it with gunzip first");
  TraceReader reader(file);
  try {
    read_json(text, reader);
  } catch (const JsonSyntaxError& error) {
    refuse(file, with_line(error, text));
  }
  return reader.finish();
}

}  // namespace stagecraft
