#include "sim/experiment/imports/trace_events.hpp"

#include <cmath>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

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

}  // namespace

std::optional<std::int64_t> TraceEvent::number(std::string_view argument) const {
  const Json* value = arguments ? arguments->find(argument) : nullptr;
  constexpr double kExact = 9e15;  // Doubles are whole up to 2^53.
  if (value == nullptr || !value->is_whole() || std::abs(value->number()) > kExact) return {};
  return static_cast<std::int64_t>(value->number());
}

const Json::Array& TraceDocument::all_events() const {
  return json.is_array() ? json.items() : json.at("traceEvents").items();
}

void TraceDocument::require_finished(const std::string& file) const {
  if (unfinished > 0) refuse(file, first_unfinished + ", has no duration");
}

TraceDocument read_trace_events(std::string_view text, const std::string& file) {
  if (text.starts_with("\x1f\x8b")) refuse(file, "the trace is compressed; unpack it with gunzip first");
  std::optional<Json> json = Json::parse(text);
  if (!json) refuse(file, "the file is no JSON, or it is cut off");
  const Json* list = json->is_array() ? &*json : json->find("traceEvents");
  if (list == nullptr || !list->is_array()) refuse(file, "there is no list 'traceEvents'");
  TraceDocument document{.json = std::move(*json)};
  std::size_t number = 0;
  for (const Json& event : document.all_events()) {
    ++number;
    if (!event.is_object()) refuse(file, fmt::format("event {} is no object", number));
    if (member_text(event, "ph") != "X") continue;
    const double start = member_number(event, "ts"), duration = member_number(event, "dur");
    const auto name = [&] { return fmt::format("event {}, '{}'", number, member_text(event, "name")); };
    if (!std::isfinite(start)) refuse(file, name() + ", has no start");
    if (!std::isfinite(duration) || duration < 0) {
      if (document.unfinished++ == 0) document.first_unfinished = name();
      continue;
    }
    const Json* arguments = event.find("args");
    document.events.push_back({member_text(event, "name"), member_text(event, "cat"),
                               member_text(event, "pid") + "/" + member_text(event, "tid"), start, duration,
                               arguments && arguments->is_object() ? arguments : nullptr});
    document.events.back().category = canonical_category(document.events.back());
  }
  return document;
}

}  // namespace stagecraft
