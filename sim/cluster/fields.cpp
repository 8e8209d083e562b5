// The fields of a device type and of a link in a cluster file, and their values; every generator uses them.

#include <fmt/core.h>

#include "sim/cluster/device_presets.hpp"
#include "sim/cluster/generator.hpp"
#include "sim/cluster/memory_reserve.hpp"
#include "sim/config/library.hpp"

namespace stagecraft {
namespace {

using config::Dimension;
using config::Value;

constexpr double kLargestAmount = 1e30;  // In base units: seconds, bytes, FLOP/s, watts.

/// Reads the fields that are there, and keeps the places of those that make no sense.
class FieldsReader {
 public:
  FieldsReader(const Value& map, std::string path) : map_(&map), path_(std::move(path)) {}

  /// A member read by `read` that has to be above zero, or at least zero.
  template <class Read, class Target>
  void take(const char* key, Read read, Target& target, bool zero_allowed) {
    const Value* value = map_->find(key);
    if (!value) return;
    target = read(*value);
    if (target.value > kLargestAmount) {
      problems_.add(value->where, fmt::format("{}.{}", path_, key),
                    fmt::format("{} is beyond any machine", value->text), {}, "range");
      return;
    }
    if (target.value > 0 || (zero_allowed && target.value == 0)) return;
    const bool is_bandwidth = std::string_view(key) == "bandwidth";
    problems_.add(value->where, fmt::format("{}.{}", path_, key),
                  is_bandwidth ? fmt::format("a bandwidth of {} carries nothing", value->text)
                               : fmt::format("{} is not possible here", value->text),
                  is_bandwidth   ? "write one above zero, such as 10 Gbit/s; a link that is not there is left out"
                  : zero_allowed ? "it may not be negative"
                                 : "it has to be more than zero",
                  "range");
  }

  void take_ratio(const char* key, double& target) const {
    if (const Value* value = map_->find(key)) target = config::as_real(*value);
  }

  /// `type_name`: of the type that needs the field; a preset of this name is probably meant.
  void require(const char* key, bool given, const std::string& type_name) {
    if (given || map_->has(key)) return;
    problems_.add(
        map_->where, path_, fmt::format("the field '{}' is missing", key),
        !library_file(FileKind::Device, type_name).empty()
            ? fmt::format("give it, or write `preset: {}` to change only some figures of that device", type_name)
            : "give it, or name a `preset`",
        "missing-field");
  }

  void refuse_all_reserved(const DeviceType& type) {
    const Value* reserve = map_->find("memory_reserve");
    if (!reserve || !problems_.empty() || type.memory_reserve < type.memory) return;
    problems_.add(reserve->where, path_ + ".memory_reserve",
                  fmt::format("{} reserved leaves nothing of {}", to_text(type.memory_reserve), to_text(type.memory)),
                  "a reserve is a part of the memory, such as 1 GiB", "range");
  }

  void refuse_queue_without_contention(const Link& link) {
    if (!link.one_queue || link.duplex != Duplex::Unshared) return;
    problems_.add(map_->at("queue").where, path_ + ".queue", "nothing waits for a link with `duplex: unshared`",
                  "leave `queue: fifo` out, or write duplex: full or half", "queue");
  }

  void finish() const { problems_.throw_if_any(); }

 private:
  const Value* map_;
  std::string path_;
  config::Problems problems_;
};

}  // namespace

const config::MapSpec& device_type_fields() {
  static const config::MapSpec spec{
      "A kind of machine that computes.",
      {config::choice("preset", device_preset_names)
           .optional()
           .doc("A known device type whose figures the other fields replace."),
       config::quantity("peak", Dimension::WorkRate)
           .optional()
           .doc("Peak rate of dense arithmetic in the number format of the model, from the data sheet. Required "
                "without a preset."),
       config::real("efficiency", 1e-6, 1)
           .optional()
           .doc("Share of the peak that dense layers reach. Default: the preset's, or 1."),
       config::quantity("memory_bandwidth", Dimension::Bandwidth)
           .optional()
           .doc("Bandwidth of the device's memory. Required without a preset."),
       config::quantity("memory", Dimension::Size).optional().doc("Memory capacity. Required without a preset."),
       config::quantity("memory_reserve", Dimension::Size)
           .optional()
           .doc("The part of the memory that no plan may use. Default: with the preset of a data-center or desktop GPU "
                "2 GiB and 3 % of its memory, at most a quarter of it; else 0. The CUDA context and NCCL take 1.1 to "
                "1.2 "
                "GB (nccl issue 1685, Megatron-LM issue 525), each further NCCL communicator 0.5 to 0.7 GB (nccl issue "
                "964), and fragmentation 1.4 to 3.6 % (Megatron-LM issues 965 and 525, threestudio discussion 403), "
                "with experts 9 % (Megatron-LM issue 756). Better is what nvidia-smi shows beyond the framework's "
                "peak."),
       config::quantity("launch", Dimension::Time)
           .optional()
           .doc("Time to launch one layer. Default: the preset's, or 0."),
       config::real("speed", 1e-9, 1e9)
           .optional()
           .doc("Factor by which layers with given times run faster. Default: 1."),
       config::quantity("idle", Dimension::Power)
           .optional()
           .doc("Power while it is idle. Default: the preset's, or 0."),
       config::quantity("busy", Dimension::Power)
           .optional()
           .doc("Power while it computes. Default: the preset's, or 0.")}};
  return spec;
}

const config::MapSpec& link_fields() {
  static const config::MapSpec spec{
      "A cable, or a medium that several share.",
      {config::quantity("bandwidth", Dimension::Bandwidth).doc("Bandwidth in one direction."),
       config::quantity("latency", Dimension::Time).fallback("0").doc("Time from one end to the other."),
       config::choice("duplex", std::vector<std::string>{"full", "half", "unshared"})
           .fallback("full")
           .doc("full: each direction has the whole bandwidth. half: both directions share it. unshared: every "
                "transfer has all of it."),
       config::real("efficiency", 1e-6, 1)
           .optional()
           .doc("Share of the bandwidth that messages get; headers take the rest. Ethernet with TCP, IPv4 and an MTU "
                "of 1500: 0.956, which is 1448 of 1514 bytes; SimGrid's model LV08 has 0.97. Default: 1."),
       config::quantity("window", Dimension::Size)
           .optional()
           .doc("What one message may have under way without an acknowledgement, such as TCP's receive window. A "
                "message gets at most the smallest window of its route for each round trip, which is twice the latency "
                "of the route. Default: no limit."),
       config::boolean("slow_start")
           .optional()
           .doc("Whether the first message of a connection starts with ten packets under way and doubles them each "
                "round trip, as TCP does (RFC 6928). A connection is one stream of a device to one other device. "
                "Default: false."),
       config::choice("queue", std::vector<std::string>{"fair", "fifo"})
           .optional()
           .doc("What waits for the link. fair: messages are served in turn, and words of a handshake do not wait. "
                "fifo: one queue in the order of arrival, as most switches and cards have; the words of "
                "run.transfers: handshake wait in it. Only the backend fluid simulates fifo. Default: fair.")}};
  return spec;
}

DeviceType read_device_type(const Value& map, const std::string& name, const std::string& path) {
  DeviceType type;
  const Value* preset = map.find("preset");
  if (preset) type = find_device_preset(preset->text)->type;
  type.name = name;

  FieldsReader reader(map, path);
  for (const char* key : {"peak", "memory_bandwidth", "memory"}) reader.require(key, preset != nullptr, name);
  reader.take("peak", config::as_flop_rate, type.peak, false);
  reader.take("memory_bandwidth", config::as_bandwidth, type.memory_bandwidth, false);
  reader.take("memory", config::as_bytes, type.memory, false);
  if (type.memory_reserve.value > 0) type.memory_reserve = gpu_memory_reserve(type.memory);
  reader.take("memory_reserve", config::as_bytes, type.memory_reserve, true);
  reader.refuse_all_reserved(type);
  reader.take("launch", config::as_seconds, type.launch, true);
  reader.take("idle", config::as_watts, type.idle, true);
  reader.take("busy", config::as_watts, type.busy, true);
  reader.take_ratio("efficiency", type.efficiency);
  reader.take_ratio("speed", type.speed);
  reader.finish();
  return type;
}

Link read_link(const Value& map, const std::string& name) {
  Link link;
  link.name = name;
  FieldsReader reader(map, name);
  reader.take("bandwidth", config::as_bandwidth, link.bandwidth, false);
  reader.take("latency", config::as_seconds, link.latency, true);
  reader.take("window", config::as_bytes, link.window, false);
  if (const Value* efficiency = map.find("efficiency")) {
    link.efficiency = config::as_real(*efficiency);
    link.bandwidth = link.bandwidth * link.efficiency;
  }
  if (const Value* slow_start = map.find("slow_start")) link.slow_start = config::as_bool(*slow_start);
  if (const Value* queue = map.find("queue")) link.one_queue = queue->text == "fifo";
  const Value* duplex = map.find("duplex");
  if (duplex && duplex->text == "half") link.duplex = Duplex::Half;
  if (duplex && duplex->text == "unshared") link.duplex = Duplex::Unshared;
  reader.refuse_queue_without_contention(link);
  reader.finish();
  return link;
}

}  // namespace stagecraft
