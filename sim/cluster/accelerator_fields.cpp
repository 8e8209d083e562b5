// The fields of a file in topologies/devices.

#include "sim/cluster/accelerator.hpp"

namespace stagecraft {
namespace {

using config::Dimension;
using config::MapSpec;

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
          config::quantity("reserve", Dimension::Size)
              .optional()
              .doc("The part that no plan may use. Default: 2 GiB and 3 % of the memory, at most a quarter of it, as "
                   "for "
                   "GPUs with a memory of their own."),
          config::real("share", 0.001, 1).optional().doc("Share of the rate that streaming kernels reach."),
          config::real("permute_share", 0.001, 1)
              .optional()
              .doc("Share of the rate that kernels reach which reorder rows.")}};
  return spec;
}

const MapSpec& roofline_fields() {
  static const MapSpec spec{
      .title = "A layer as a whole, where there is no software stack.",
      .fields = {config::quantity("peak", Dimension::WorkRate)
                     .optional()
                     .doc("Peak rate of dense arithmetic. Default: that of 16-bit products in `formats`."),
                 config::real("efficiency", 1e-6, 1)
                     .optional()
                     .doc("Share of the peak that dense layers reach. Default: that of `like`, or the share of 16-bit "
                          "products."),
                 config::quantity("launch", Dimension::Time)
                     .optional()
                     .doc("Time to launch one layer. Default: that of `like`, or 0."),
                 config::text("known").fallback("\"\"").doc("Where they come from.")}};
  return spec;
}

const MapSpec& attention_pass_fields() {
  static const MapSpec spec{
      .title = "Fused attention in one direction.",
      .fields = {config::real("share", 0.001, 1).doc("Share of the peak of 16-bit products."),
                 config::quantity("fixed", Dimension::Time).doc("Time of one call without work.")}};
  return spec;
}

const MapSpec& attention_kernel_fields() {
  static const MapSpec spec{
      .title = "One kernel of fused attention.",
      .fields = {
          config::map("forward", attention_pass_fields()).doc("Its forward."),
          config::map("backward", attention_pass_fields()).doc("Its backward."),
          config::text("measured").optional().doc("The kernels or runs on this device type that give the shares."),
          config::text("derived").optional().doc("What the shares follow from where nothing was measured here.")}};
  return spec;
}

const MapSpec& attention_fields() {
  static const MapSpec spec = [] {
    MapSpec kernels{.title = "Fused attention: shares of each kernel that runs it.",
                    .fields = {config::map("forward", attention_pass_fields())
                                   .optional()
                                   .doc("The forward of every kernel that is not named here."),
                               config::map("backward", attention_pass_fields())
                                   .optional()
                                   .doc("The backward of every kernel that is not named here.")}};
    for (const AttentionKernel kernel : kAttentionKernels)
      kernels.fields.push_back(config::map(std::string(name(kernel)), attention_kernel_fields())
                                   .optional()
                                   .doc(std::string(title(kernel)) + "."));
    kernels.fields.push_back(config::text("known").fallback("\"\"").doc("Where the shares come from."));
    return kernels;
  }();
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

}  // namespace

const MapSpec& accelerator_fields() {
  static const MapSpec spec{
      .title = "A device type: figures of data sheets and measured shares.",
      .fields = {
          config::choice("schema", {"device/1"}).doc("Kind and version of the file."),
          config::text("title").doc("Title for people."),
          config::text("source").doc("Where peaks, memory and multiprocessors come from."),
          config::text("like").optional().doc("Name of the device type whose figures hold where this file has none."),
          config::boolean("calibrated").doc("Whether shares come from measured runs of this device type."),
          config::map("roofline", roofline_fields())
              .optional()
              .doc("A layer as a whole, where there is no software stack."),
          config::table("formats", config::map("format", format_fields()))
              .optional()
              .doc(
                  "Number formats of its matrix products. Without them costs from shapes use the rates of `roofline`."),
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
          config::choice("host", {"x86", "grace"})
              .optional()
              .doc("The processor that launches kernels. Default: that of `like`, or x86."),
          config::quantity("launch", Dimension::Time)
              .optional()
              .doc("Time of the host for each kernel. Default: what the framework takes on such a host."),
          config::map("collectives", collective_fields()).optional().doc("Collectives inside a node."),
          config::integer("domain", 1, 1e6).optional().doc("Devices that NVLink, or its like, connects at full rate."),
          config::quantity("idle", Dimension::Power).optional().doc("Power while it waits."),
          config::quantity("busy", Dimension::Power).optional().doc("Power while it computes: the limit of the board."),
      }};
  return spec;
}

}  // namespace stagecraft
