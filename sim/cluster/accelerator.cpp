#include "sim/cluster/accelerator.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using config::Dimension;
using config::MapSpec;
using config::Problems;
using config::Value;

const MapSpec& format_fields() {
  static const MapSpec spec{
      .title = "Matrix products in one number format.",
      .fields = {
          config::quantity("peak", Dimension::WorkRate).doc("Dense rate of the data sheet, never the sparse one."),
          config::real("share", 0.001, 1)
              .optional()
              .doc("Share of the peak that a product of many full waves and of great depth reaches."),
          config::real("half_depth", 0, 1e5).optional().doc("Depth at which a product reaches half of that share."),
          config::text("measured").optional().doc("The kernels or runs of this device type that give the share."),
          config::text("assumed").optional().doc("Why it has this share where nothing was measured.")}};
  return spec;
}

const MapSpec& memory_fields() {
  static const MapSpec spec{
      .title = "Memory of the device.",
      .fields = {
          config::quantity("size", Dimension::Size).optional().doc("Capacity."),
          config::quantity("rate", Dimension::Bandwidth).optional().doc("Data sheet, reads and writes together."),
          config::real("share", 0.001, 1).optional().doc("Share of the rate that streaming kernels reach."),
          config::real("permute_share", 0.001, 1)
              .optional()
              .doc("Share of the rate that kernels reach which reorder rows.")}};
  return spec;
}

const MapSpec& attention_pass_fields() {
  static const MapSpec spec{
      .title = "Fused attention in one direction.",
      .fields = {config::real("share", 0.001, 1).doc("Share of the peak of 16-bit products."),
                 config::quantity("fixed", Dimension::Time).doc("Time of one call without work.")}};
  return spec;
}

const MapSpec& attention_fields() {
  static const MapSpec spec{.title = "Fused attention.",
                            .fields = {config::map("forward", attention_pass_fields()).doc("Its forward."),
                                       config::map("backward", attention_pass_fields()).doc("Its backward."),
                                       config::text("known").fallback("\"\"").doc("Where the shares come from.")}};
  return spec;
}

const MapSpec& grouped_fields() {
  static const MapSpec spec{
      .title = "Products of experts, all in one kernel.",
      .fields = {
          config::real("share", 0.001, 1).doc("Share of the peak with many rows for each expert."),
          config::real("half_rows", 0, 1e6).doc("Rows of an expert at which a product reaches half of that share."),
          config::text("known").fallback("\"\"").doc("Where they come from.")}};
  return spec;
}

const MapSpec& collective_fields() {
  static const MapSpec spec{
      .title = "An all-reduce inside a node: alpha + hop (n - 1) + 2 (n - 1)/n S / bus + root sqrt(S).",
      .fields = {
          config::quantity("alpha", Dimension::Time).doc("Time of a collective without bytes on two devices."),
          config::quantity("hop", Dimension::Time).doc("Additional time for each further device."),
          config::quantity("bus", Dimension::Bandwidth).doc("Bandwidth of the bus, as nccl-tests counts it."),
          config::quantity("root", Dimension::Time).doc("Time for each square root of a byte."),
          config::integer("mesh", 0, 1024)
              .fallback("0")
              .doc("Devices of a node that links join in pairs; `bus` is then what all links of one carry together, "
                   "and a smaller group has fewer of them. 0: a switch joins them."),
          config::text("known").fallback("\"\"").doc("Where the constants come from.")}};
  return spec;
}

constexpr double kLeast = 1e-30, kLargest = 1e30;  // In base units: seconds, bytes, FLOP/s, watts.

/// Copies what the file says over what the relative has.
class AcceleratorReader {
 public:
  AcceleratorReader(const Value& map, Accelerator& target) : map_(map), target_(target) {}

  void read_formats() {
    for (const config::Member& m : map_.at("formats").members) {
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

  void read_memory() {
    const Value* memory = map_.find("memory");
    if (!memory) return;
    if (const Value* size = memory->find("size")) target_.memory = above_zero<Bytes>(*size, Dimension::Size);
    if (const Value* rate = memory->find("rate"))
      target_.memory_rate = above_zero<Bandwidth>(*rate, Dimension::Bandwidth);
    target_.memory_share = real_of(*memory, "share", target_.memory_share);
    target_.permute_share = real_of(*memory, "permute_share", target_.permute_share);
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
    const auto pass = [&](const char* key) {
      const Value& map = attention->at(key);
      return AttentionFacts{config::as_real(map.at("share")), not_negative<Seconds>(map.at("fixed"), Dimension::Time)};
    };
    target_.attention_forward = pass("forward");
    target_.attention_backward = pass("backward");
  }

  void read_rest() {
    if (const Value* launch = map_.find("launch")) target_.launch = not_negative<Seconds>(*launch, Dimension::Time);
    if (const Value* c = map_.find("collectives"))
      target_.collectives = {
          not_negative<Seconds>(c->at("alpha"), Dimension::Time), not_negative<Seconds>(c->at("hop"), Dimension::Time),
          above_zero<Bandwidth>(c->at("bus"), Dimension::Bandwidth),
          not_negative<Seconds>(c->at("root"), Dimension::Time).value, config::as_int(c->at("mesh"))};
    if (const Value* domain = map_.find("domain")) target_.domain = config::as_int(*domain);
    if (const Value* idle = map_.find("idle")) target_.idle = not_negative<Watts>(*idle, Dimension::Power);
    if (const Value* busy = map_.find("busy")) target_.busy = not_negative<Watts>(*busy, Dimension::Power);
  }

  /// Fills formats that have only a peak, and refuses a device type that lacks a figure.
  void complete() {
    const auto require = [&](bool given, const char* what) {
      if (!given)
        problems_.add(map_.where, what, fmt::format("the figure '{}' is missing", what),
                      "give it, or name a relative with `like:`", "missing-field");
    };
    const FormatFacts wide = target_.formats[target_.wide_format()];
    require(wide.peak.value > 0 && wide.share > 0, "formats.bf16.share");
    require(target_.memory_rate.value > 0 && target_.memory_share > 0, "memory.rate");
    require(target_.memory.value > 0, "memory.size");
    require(target_.multiprocessors > 0 && !target_.tiles.empty(), "multiprocessors");
    require(target_.attention_forward.share > 0, "attention");
    require(target_.collectives.bus.value > 0, "collectives");
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
  if (like) relative = load(file.parent_path() / (like->text + ".yaml"), loading);
  Accelerator result = read_accelerator(root, like ? &relative : nullptr);
  result.name = file.stem().string();
  return result;
}

}  // namespace

const MapSpec& accelerator_fields() {
  static const MapSpec spec{
      .title = "A device type for the shape-based cost model: figures of data sheets and measured shares.",
      .fields = {
          config::choice("schema", {"device/1"}).doc("Kind and version of the file."),
          config::text("title").doc("Title for people."),
          config::text("source").doc("Where peaks, memory and multiprocessors come from."),
          config::text("like").optional().doc("Name of the device type whose figures hold where this file has none."),
          config::boolean("calibrated").doc("Whether shares come from measured runs of this device type."),
          config::table("formats", config::map("format", format_fields()))
              .doc("Number formats of its matrix products."),
          config::map("memory", memory_fields()).optional().doc("Memory."),
          config::integer("multiprocessors", 1, 1e5).optional().doc("Multiprocessors, or compute units."),
          config::list("tiles", config::list("tile", config::integer("size", 1, 65536)).positional())
              .positional()
              .optional()
              .doc("Shapes of the part of a result that one multiprocessor computes: [rows, columns]."),
          config::map("attention", attention_fields()).optional().doc("Fused attention."),
          config::real("attention_penalty", 1, 1000)
              .optional()
              .doc("Factor on products of attention that is not fused, where the head width is no multiple of 8."),
          config::map("grouped", grouped_fields()).optional().doc("Products of experts."),
          config::quantity("launch", Dimension::Time).optional().doc("Time of the host for each kernel."),
          config::map("collectives", collective_fields()).optional().doc("Collectives inside a node."),
          config::integer("domain", 1, 1e6).optional().doc("Devices that NVLink, or its like, connects at full rate."),
          config::quantity("idle", Dimension::Power).optional().doc("Power while it waits."),
          config::quantity("busy", Dimension::Power).optional().doc("Power while it computes: the limit of the board."),
      }};
  return spec;
}

Accelerator read_accelerator(const Value& checked, const Accelerator* relative) {
  Accelerator result = relative ? *relative : Accelerator{};
  result.title = checked.at("title").text;
  result.source = checked.at("source").text;
  const Value* like = checked.find("like");
  result.like = like ? like->text : std::string{};
  result.calibrated = config::as_bool(checked.at("calibrated"));
  AcceleratorReader reader(checked, result);
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
