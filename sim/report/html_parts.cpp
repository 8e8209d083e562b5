#include "sim/report/html_parts.hpp"

#include <cmath>
#include <map>
#include <utility>

#include "sim/core/json.hpp"

namespace stagecraft {
namespace {

/// Samples of a part: few enough that the first devices are drawn while the rest is loading.
constexpr std::int64_t kPart = 8192;
constexpr double kExact = 0x1p53;

void put(std::string& out, std::uint64_t number) {
  constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  do {
    const std::uint64_t digit = number % 32;
    number /= 32;
    out += kDigits[number > 0 ? digit + 32 : digit];
  } while (number > 0);
}

/// Zigzag code of a difference, which may wrap around.
std::uint64_t folded(std::uint64_t difference) {
  return (difference << 1) ^ (difference >> 63 ? ~std::uint64_t{0} : 0);
}

class SpanWriter {
 public:
  explicit SpanWriter(const HtmlSpans& spans)
      : s_(spans), is_critical_(spans.gap.size(), 0), expected_(spans.ops.size()) {
    for (const std::int64_t n : s_.critical) is_critical_[n] = 1;
  }

  void write(std::string& out, std::size_t n) {
    Expected& expected = expected_[s_.op[n]];
    const Expected is{s_.length[n], whole(s_.micro[n]), whole(s_.iteration[n]), whole(s_.version[n])};
    const bool differs = is != expected;
    put(out, 4 * whole(s_.op[n]) + 2 * is_critical_[n] + (differs ? 1 : 0));
    put(out, whole(s_.gap[n]));
    if (differs) {
      put(out, whole(is.length));
      put(out, folded(is.micro - expected.micro));
      put(out, folded(is.iteration - expected.iteration));
      put(out, folded(is.version - expected.version));
    }
    expected = is;
    ++expected.micro;
  }

 private:
  struct Expected {
    std::int64_t length = 0;
    std::uint64_t micro = 0, iteration = 0, version = 0;
    bool operator==(const Expected&) const = default;
  };
  static std::uint64_t whole(std::int64_t number) { return static_cast<std::uint64_t>(number); }

  const HtmlSpans& s_;
  std::vector<std::uint8_t> is_critical_;
  std::vector<Expected> expected_;
};

/// Whole numbers without a point.
Json size_json(double bytes) {
  return bytes == std::floor(bytes) && std::abs(bytes) < kExact ? Json(static_cast<std::int64_t>(bytes)) : Json(bytes);
}

Json memory_json(const HtmlMemory& memory) {
  JsonArray states;
  std::map<std::pair<double, double>, std::size_t> known;
  std::string samples;
  for (std::size_t i = 0; i < memory.gap.size(); ++i) {
    const auto [at, fresh] = known.try_emplace({memory.stash[i], memory.messages[i]}, known.size());
    if (fresh) {
      states.push_back(size_json(memory.stash[i]));
      states.push_back(size_json(memory.messages[i]));
    }
    put(samples, static_cast<std::uint64_t>(memory.gap[i]));
    put(samples, at->second);
  }
  return JsonObject{{"samples", std::move(samples)}, {"states", std::move(states)}};
}

}  // namespace

std::vector<HtmlPart> html_parts(const HtmlSpans& spans, std::span<const HtmlMemory> by_device) {
  std::vector<HtmlPart> parts;
  SpanWriter writer(spans);
  std::size_t lane = 0, curve = 0, n = 0;
  while (lane < spans.lanes.size() || curve < by_device.size()) {
    HtmlPart part;
    std::string digits;
    JsonArray memory;
    for (std::int64_t size = 0; size < kPart && (lane < spans.lanes.size() || curve < by_device.size());) {
      const std::int64_t device = curve == by_device.size() || (lane < spans.lanes.size() &&
                                                                spans.lanes[lane].device <= by_device[curve].device)
                                      ? spans.lanes[lane].device
                                      : by_device[curve].device;
      for (; lane < spans.lanes.size() && spans.lanes[lane].device == device; ++lane, ++part.lanes) {
        size += spans.lanes[lane].spans;
        for (const std::size_t end = n + spans.lanes[lane].spans; n < end; ++n) writer.write(digits, n);
      }
      for (; curve < by_device.size() && by_device[curve].device == device; ++curve, ++part.curves) {
        size += static_cast<std::int64_t>(by_device[curve].gap.size());
        memory.push_back(memory_json(by_device[curve]));
      }
    }
    part.json = Json(JsonObject{{"spans", std::move(digits)}, {"memory", std::move(memory)}}).dump();
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace stagecraft
