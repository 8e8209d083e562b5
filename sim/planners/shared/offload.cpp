// The field `plan.offload` of a scenario, as values and as text.

#include "sim/planners/shared/offload.hpp"

#include <optional>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/cost/offloaded_arrays.hpp"

namespace stagecraft {
namespace {

using config::Dimension;
using config::Value;

const config::MapSpec& optimizer_fields() {
  static const config::MapSpec spec{
      "States of the optimizer in host memory, where the host updates them.",
      {config::text("share").fallback("100 %").doc("Share of the two moments of Adam, in fp32, that the host has."),
       config::boolean("beside").fallback("true").doc(
           "Whether gradients go down, the host updates, and weights come up next to each other, bucket by bucket. "
           "false: one after the other.")}};
  return spec;
}

const config::MapSpec& offload_fields() {
  static const config::MapSpec spec{
      "What host memory keeps for a part of the time.",
      {config::text("activations")
           .optional()
           .doc("What a copy engine takes to host memory after each forward and brings back before its backward, where "
                "the time between them is enough for both: a share of each stash, such as 50 %; full, all of it; "
                "selective, the least share of each device with which the plan fits, of the stages whose stashes live "
                "longest first. Default: 0 %, and all of what `modules` name."),
       config::list("modules", config::choice("module", offload_modules()))
           .optional()
           .doc("Only the inputs of these modules of each layer, by the names that Megatron-LM has for them in its "
                "offload-modules, so that a share in `activations` is one of these inputs. attn_norm and mlp_norm "
                "are the norms of a layer, qkv_linear its first products, core_attn the inside of attention and "
                "attn_proj the product after it; expert_fc1 and moe_act are the first product and the activation of "
                "experts, fused_group_mlp is both with the second product. What `recompute` computes again stays. "
                "Default: all that a stage keeps."),
       config::quantity("less", Dimension::Size)
           .fallback("0 B")
           .doc(
               "What each rank keeps on its device of each stash in addition to what the rank before it keeps, because "
               "later ranks have fewer stashes."),
       config::integer("chunks", 1, 1024)
           .optional()
           .doc("Only the first stages of each rank. With two chunks, the first has the longer-lived half. Default: "
                "all stages."),
       config::integer("ahead", 1, 1 << 20)
           .fallback("1")
           .doc("A stash is asked back when the op this many places before its backward starts."),
       config::boolean("late").fallback("true").doc(
           "Whether forwards before the first backward of a device wait until the next stage needs them, so that less "
           "of their stashes is on the device."),
       config::map("optimizer", optimizer_fields())
           .optional()
           .doc("States of the optimizer in host memory. Default: they stay on the devices.")}};
  return spec;
}

/// "50 %", "0.5" or "full".
double share_of(const Value& value, const std::string& path, const std::string& words) {
  if (value.text == "full") return 1;
  std::string why;
  std::optional<double> share = config::parse_quantity(Dimension::Share, value.text, why);
  if (!share) share = config::parse_number(value.text, why);
  if (share && *share >= 0 && *share <= 1) return *share;
  throw InputError(
      {{value.where, path,
        share ? fmt::format("{} is more than the whole", value.text) : fmt::format("'{}' is no share", value.text),
        fmt::format("a share from 0 % to 100 %{}", words), "offload"}});
}

}  // namespace

config::Field offload_field() {
  return config::map("offload", offload_fields())
      .optional()
      .doc(
          "Activations that wait for their backward in the memory of hosts (cluster.host), and states of the optimizer "
          "that stay there. Default: nothing.");
}

Offload read_offload(const Value& map) {
  Offload offload;
  if (const Value* modules = map.find("modules"))
    for (const Value& module : modules->items) offload.modules.push_back(module.text);
  if (!offload.modules.empty()) offload.activations = 1;
  if (const Value* activations = map.find("activations")) {
    offload.selective = activations->text == "selective";
    offload.activations =
        offload.selective ? 0 : share_of(*activations, "plan.offload.activations", ", full or selective");
  }
  offload.less = config::as_bytes(map.at("less"));
  if (offload.selective && offload.less.value > 0)
    throw InputError({{map.at("less").where, "plan.offload.less",
                       "the least shares that fit say how much of each stash moves, so less does not go with them",
                       "activations: 100 %, or take less out", "offload"}});
  if (offload.less.value > 0 && !offload.moves_stashes())
    throw InputError({{map.at("less").where, "plan.offload.less", "nothing moves that a rank could keep more of",
                       "activations: 100 %, or take less out", "offload"}});
  if (const Value* chunks = map.find("chunks")) offload.chunks = config::as_int(*chunks);
  offload.ahead = config::as_int(map.at("ahead"));
  offload.late = config::as_bool(map.at("late"));
  if (const Value* optimizer = map.find("optimizer")) {
    offload.optimizer = share_of(optimizer->at("share"), "plan.offload.optimizer.share", "");
    offload.beside = config::as_bool(optimizer->at("beside"));
  }
  return offload;
}

namespace {

std::string share(double part) { return shortest(100 * part) + " %"; }
std::string activations(const Offload& o) { return o.selective ? "selective" : share(o.activations); }

}  // namespace

std::string short_text(const Offload& o) {
  const std::string modules = join(o.modules, " + ");
  std::string text = o.moves_stashes() ? activations(o) : "";
  if (o.moves_stashes() && !modules.empty()) text = o.activations == 1 ? modules : text + " of " + modules;
  if (o.optimizer > 0) text += text.empty() ? "optimizer" : " and optimizer";
  return text.empty() ? "nothing" : text;
}

std::string to_text(const Offload& o) {
  const Offload usual;
  std::string text = fmt::format("{{activations: {}", activations(o));
  if (!o.modules.empty()) text += fmt::format(", modules: [{}]", join(o.modules));
  if (o.less.value > 0) text += fmt::format(", less: {} B", shortest(o.less.value));
  if (o.chunks > 0) text += fmt::format(", chunks: {}", o.chunks);
  if (o.ahead != usual.ahead) text += fmt::format(", ahead: {}", o.ahead);
  if (o.late != usual.late) text += fmt::format(", late: {}", o.late);
  if (o.optimizer > 0)
    text += fmt::format(", optimizer: {{share: {}{}}}", share(o.optimizer), o.beside ? "" : ", beside: false");
  return text + "}";
}

}  // namespace stagecraft
