// Reads a file of topologies/devices, with its relatives (`like`), as an Accelerator.

#include "sim/cluster/accelerator.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "sim/cluster/memory_reserve.hpp"
#include "sim/config/library.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using config::Dimension;
using config::MapSpec;
using config::Problems;
using config::Value;

constexpr double kLeast = 1e-30, kLargest = 1e30;  // In base units: seconds, bytes, FLOP/s, watts.

/// Copies what the file says over what the relative has.
class AcceleratorReader {
 public:
  AcceleratorReader(const Value& map, Accelerator& target) : map_(map), target_(target) {}

  void read_formats() {
    const Value* formats = map_.find("formats");
    for (const config::Member& m : formats ? formats->members : std::vector<config::Member>{}) {
      const auto format = parse_number_format(m.key);
      if (!format) {
        problems_.add(m.where, "formats." + m.key, fmt::format("there is no number format '{}'", m.key),
                      suggest(m.key, number_format_names()), "unknown-field");
        continue;
      }
      FormatFacts facts;
      facts.peak = above_zero<FlopRate>(m.value.at("peak"), Dimension::WorkRate);
      const FormatFacts& inherited = target_.formats[*format];
      facts.share = real_of(m.value, "share", inherited.share);
      facts.half_depth = real_of(m.value, "half_depth", inherited.half_depth);
      facts.calibrated = m.value.has("measured");
      facts.origin = inherited.origin;
      for (const char* key : {"measured", "assumed"})
        if (const Value* origin_text = m.value.find(key)) facts.origin = origin_text->text;
      formats_[*format] = std::move(facts);
    }
    target_.formats = formats_;
  }

  void read_roofline() {
    target_.type.peak = {};
    const Value* roofline = map_.find("roofline");
    if (!roofline) return;
    if (const Value* peak = roofline->find("peak"))
      target_.type.peak = above_zero<FlopRate>(*peak, Dimension::WorkRate);
    target_.type.efficiency = real_of(*roofline, "efficiency", target_.type.efficiency);
    if (const Value* launch = roofline->find("launch"))
      target_.type.launch = not_negative<Seconds>(*launch, Dimension::Time);
  }

  void read_memory() {
    const Value* memory = map_.find("memory");
    const Value* reserve = memory ? memory->find("reserve") : nullptr;
    if (memory) read_rates(*memory);
    target_.type.memory_reserve =
        reserve ? not_negative<Bytes>(*reserve, Dimension::Size) : gpu_memory_reserve(target_.type.memory);
    if (reserve && target_.type.memory.value > 0 && target_.type.memory_reserve >= target_.type.memory)
      problems_.add(reserve->where, "memory.reserve", "nothing is left of the memory", "a part of it, such as 1 GiB",
                    "range");
  }

  void read_rates(const Value& memory) {
    if (const Value* size = memory.find("size")) target_.type.memory = above_zero<Bytes>(*size, Dimension::Size);
    if (const Value* rate = memory.find("rate"))
      target_.type.memory_bandwidth = above_zero<Bandwidth>(*rate, Dimension::Bandwidth);
    target_.memory_share = real_of(memory, "share", target_.memory_share);
    target_.permute_share = real_of(memory, "permute_share", target_.permute_share);
  }

  void read_products() {
    if (const Value* count = map_.find("multiprocessors")) target_.multiprocessors = config::as_int(*count);
    if (const Value* tiles = map_.find("tiles")) {
      target_.tiles.clear();
      for (const Value& tile : tiles->items) read_tile(tile);
    }
    if (const Value* grouped = map_.find("grouped"))
      target_.grouped = {config::as_real(grouped->at("share")), config::as_real(grouped->at("half_rows"))};
  }

  void read_attention() {
    target_.attention_penalty = real_of(map_, "attention_penalty", target_.attention_penalty);
    const Value* attention = map_.find("attention");
    if (!attention) return;
    target_.attention = {};
    target_.attention_forward = target_.attention_backward = {};
    if (attention->has("forward") != attention->has("backward"))
      problems_.add(attention->where, "attention", "a forward and a backward belong together", "give both, or none",
                    "missing-field");
    if (attention->has("forward") && attention->has("backward")) {
      for (AttentionKernelFacts& facts : target_.attention) facts = attention_kernel(*attention), facts.derived = true;
      target_.attention_forward = target_.attention.front().forward;
      target_.attention_backward = target_.attention.front().backward;
    }
    for (const AttentionKernel kernel : kAttentionKernels) {
      const Value* map = attention->find(std::string(name(kernel)));
      if (!map) continue;
      target_.attention[kernel] = attention_kernel(*map);
      target_.attention[kernel].derived = !map->has("measured");
      if (attention->has("forward")) continue;
      target_.attention_forward = target_.attention[kernel].forward;
      target_.attention_backward = target_.attention[kernel].backward;
    }
  }

  void read_rest() {
    if (const Value* host = map_.find("host")) target_.host = host->text == name(Host::Grace) ? Host::Grace : Host::X86;
    if (const Value* launch = map_.find("launch")) {
      target_.launch = not_negative<Seconds>(*launch, Dimension::Time);
      target_.has_launch = true;
    }
    if (const Value* c = map_.find("collectives"))
      target_.collectives = {
          not_negative<Seconds>(c->at("alpha"), Dimension::Time), not_negative<Seconds>(c->at("hop"), Dimension::Time),
          above_zero<Bandwidth>(c->at("bus"), Dimension::Bandwidth),
          not_negative<Seconds>(c->at("root"), Dimension::Time).value, config::as_int(c->at("mesh"))};
    if (const Value* domain = map_.find("domain")) target_.domain = config::as_int(*domain);
    if (const Value* idle = map_.find("idle")) target_.type.idle = not_negative<Watts>(*idle, Dimension::Power);
    if (const Value* busy = map_.find("busy")) target_.type.busy = not_negative<Watts>(*busy, Dimension::Power);
  }

  /// Fills what follows from other figures, and refuses a device type that lacks one.
  void complete() {
    const FormatFacts wide = target_.formats[target_.wide_format()];
    DeviceType& type = target_.type;
    if (type.peak.value == 0) type.peak = wide.peak;
    if (type.efficiency == 0) type.efficiency = wide.share;
    require(type.memory.value > 0, "memory.size");
    require(type.memory_bandwidth.value > 0, "memory.rate");
    if (map_.has("formats")) {
      require(wide.peak.value > 0 && wide.share > 0, "formats.bf16.share");
      require_kernels();
    } else {
      require(type.peak.value > 0, "roofline.peak");
      require(type.efficiency > 0, "roofline.efficiency");
    }
    const bool measured = std::any_of(target_.formats.begin(), target_.formats.end(),
                                      [](const FormatFacts& facts) { return facts.calibrated; });
    if (target_.calibrated != measured)
      problems_.add(map_.where, "calibrated",
                    measured ? "a share of a format is measured, so this is true"
                             : "no share of a format is measured, so this is false",
                    "write `measured:` next to a share that comes from runs of this device type", "range");
    problems_.throw_if_any();
    for (FormatFacts& facts : target_.formats) {
      if (facts.peak.value == 0 || facts.share > 0) continue;
      facts.share = wide.share;
      facts.half_depth = wide.half_depth * (facts.peak / wide.peak);
      facts.origin = "share of 16-bit products; half depth in proportion to the peak";
    }
  }

 private:
  void require(bool given, const char* what) {
    if (!given)
      problems_.add(map_.where, what, fmt::format("the figure '{}' is missing", what),
                    "give it, or name a relative with `like:`", "missing-field");
  }

  void require_kernels() {
    require(target_.memory_share > 0, "memory.share");
    require(target_.multiprocessors > 0 && !target_.tiles.empty(), "multiprocessors");
    require(target_.attention_forward.share > 0, "attention");
    require(target_.collectives.bus.value > 0, "collectives");
  }

  static double real_of(const Value& map, const char* key, double otherwise) {
    const Value* value = map.find(key);
    return value ? config::as_real(*value) : otherwise;
  }

  template <class Quantity>
  Quantity above_zero(const Value& value, Dimension dimension) {
    return within<Quantity>(value, dimension, kLeast);
  }
  template <class Quantity>
  Quantity not_negative(const Value& value, Dimension dimension) {
    return within<Quantity>(value, dimension, 0);
  }
  template <class Quantity>
  Quantity within(const Value& value, Dimension dimension, double min_value) {
    const double number = config::as_quantity(value, dimension);
    if (number < min_value || number > kLargest)
      problems_.add(
          value.where, std::string(config::dimension_name(dimension)),
          fmt::format("{} is not possible here", value.text),
          min_value > 0 ? "it has to be more than zero, and at most 1e30 in base units" : "it is beyond any machine",
          "range");
    return Quantity{number};
  }

  AttentionKernelFacts attention_kernel(const Value& map) {
    const auto pass = [&](const char* key) {
      const Value& facts = map.at(key);
      return AttentionFacts{config::as_real(facts.at("share")),
                            not_negative<Seconds>(facts.at("fixed"), Dimension::Time)};
    };
    return {.forward = pass("forward"), .backward = pass("backward")};
  }

  void read_tile(const Value& tile) {
    if (tile.items.size() == 2)
      target_.tiles.push_back({config::as_int(tile.items[0]), config::as_int(tile.items[1])});
    else
      problems_.add(tile.where, "tiles", "a tile has rows and columns", "write [128, 256]", "wrong-count");
  }

  const Value& map_;
  Accelerator& target_;
  EnumArray<NumberFormat, FormatFacts, kNumberFormatCount> formats_;
  Problems problems_;
};

/// The file of the relative that `like` names in `file`.
std::string file_of_relative(const Value& like, const std::filesystem::path& file) {
  std::string relative = find_file(FileKind::Device, like.text, file.string());
  if (relative.empty())
    throw InputError({{like.where, "like", fmt::format("there is no device type '{}'", like.text),
                       suggest_file(FileKind::Device, like.text, ""), "unknown-type"}});
  return relative;
}

Accelerator load(const std::filesystem::path& file, std::vector<std::string>& loading) {
  if (std::find(loading.begin(), loading.end(), file.string()) != loading.end())
    throw InputError({{{file.string(), 0, 0},
                       "like",
                       "the relatives of this device type form a circle",
                       "give one of them all figures",
                       "circle"}});
  loading.push_back(file.string());
  Problems problems;
  Value root = config::parse_yaml_file(file.string(), problems);
  problems.throw_if_any();
  root = config::check(root, accelerator_fields(), "", problems);
  problems.throw_if_any();
  const Value* like = root.find("like");
  Accelerator relative;
  if (like) relative = load(file_of_relative(*like, file), loading);
  Accelerator result = read_accelerator(root, like ? &relative : nullptr);
  result.name = result.type.name = result.type.preset = file.stem().string();
  return result;
}

}  // namespace

Accelerator read_accelerator(const Value& checked, const Accelerator* relative) {
  Accelerator result = relative ? *relative : Accelerator{};
  if (!relative) result.type.efficiency = 0;  // Not known until the file says it, or a number format.
  result.title = checked.at("title").text;
  result.source = checked.at("source").text;
  const Value* like = checked.find("like");
  result.like = like ? like->text : std::string{};
  result.calibrated = config::as_bool(checked.at("calibrated"));
  AcceleratorReader reader(checked, result);
  reader.read_roofline();
  reader.read_formats();
  reader.read_memory();
  reader.read_products();
  reader.read_attention();
  reader.read_rest();
  reader.complete();
  return result;
}

Accelerator load_accelerator(const std::string& file) {
  std::vector<std::string> loading;
  return load(file, loading);
}

}  // namespace stagecraft
