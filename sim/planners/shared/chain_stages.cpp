// What the planners `balanced` and `layout` share: their options, the devices of each stage by its placement, and the
// second direction.

#include "sim/planners/shared/chain_stages.hpp"

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/plan/vocabulary.hpp"
#include "sim/planners/shared/group.hpp"

namespace stagecraft {
namespace {

/// The placement that was asked for, with as many stages on a device as it allows, or the schedule's own.
PlacementRule placing_of(const PlannerInput& input) {
  const std::optional<Placement> asked = input.options.placement;
  PlacementRule placing = input.placing;
  if (asked && *asked != placing.placement) placing = {*asked, chunks_of(*asked)};
  if (placing.placement != Placement::Bidirectional) return placing;
  if (input.micro_batches < 2)
    throw Infeasible("micro-batches",
                     "the schedule runs the model in both directions, but there is one micro-batch alone",
                     "at least 2 in run.micro_batches");
  placing.chunks = chunks_of(placing.placement);  // The stages of the model; their copies come with them.
  return placing;
}

/// What the devices are enough for, where each of `ranks` has `each` of them: fewer stages, or fewer replicas.
std::string most_text(const PlannerInput& input, int ranks, int per_device, int each, int there) {
  const int asked = input.options.shape(1).degrees.replicas, group = each / asked;
  const int replicas = there / (there >= ranks * group ? ranks * group : group);
  const std::string fewer_stages = there >= each ? pluralize(there / each * per_device, "stage") : "";
  const std::string fewer_replicas = replicas > 0 && replicas < asked ? pluralize(replicas, "replica") : "";
  if (fewer_stages.empty() && fewer_replicas.empty()) return fmt::format("groups of {}", pluralize(there, "device"));
  return fewer_stages + (fewer_stages.empty() || fewer_replicas.empty() ? "" : " or ") + fewer_replicas;
}

[[noreturn]] void refuse(const PlannerInput& input, const PlacementRule& placing, int stages, int devices, int there) {
  const Where where = input.options.where("stages");
  const int per_device = placing.chunks.min;
  if (stages % per_device != 0)
    throw InputError({{where, "plan.stages",
                       fmt::format("the schedule wants {} on each device, and {} cannot be divided so", per_device,
                                   pluralize(stages, "stage")),
                       fmt::format("a multiple of {}", per_device), "placement"}});
  const std::string each = devices == 1 ? "" : fmt::format(" of {} devices each", devices);
  const std::int64_t needed = static_cast<std::int64_t>(stages) / per_device * devices;
  throw Infeasible(
      {where, "plan.stages",
       fmt::format("{}{}{} need{} {}, but {} {}", pluralize(stages, "stage"), each,
                   per_device == 1 ? "" : fmt::format(", {} on each device,", per_device), stages == 1 ? "s" : "",
                   pluralize(needed, "device"), input.options.devices ? "the plan lists" : "the cluster has", there),
       fmt::format("at most {}, or {} more", most_text(input, stages / per_device, per_device, devices, there),
                   pluralize(needed - there, "device")),
       "devices"});
}

/// `each` devices of each rank, by ascending position in the list of devices.
std::vector<std::vector<DeviceId>> choose_ranks(const PlannerInput& input, const PlacementRule& placing, int stages,
                                                int each) {
  const std::vector<DeviceId> devices = available_devices(input);
  const auto there = static_cast<int>(devices.size());
  const int ranks = ranks_for(placing, stages, there / each);
  if (ranks == 0) refuse(input, placing, stages, each, there);
  std::vector<std::vector<DeviceId>> chosen;
  for (const std::vector<int>& positions : positions_of_ranks(input.options.shape(ranks).degrees)) {
    std::vector<DeviceId>& rank = chosen.emplace_back();
    for (const int i : positions) rank.push_back(devices[i]);
  }
  return chosen;
}

[[noreturn]] void refuse_vocabulary(const PlannerInput& input, const std::string& what, const std::string& help) {
  throw InputError({{input.options.where("vocabulary"), "plan.vocabulary", what, help, "vocabulary"}});
}

/// Refuses what cannot divide a vocabulary, or of which nothing says what happens then.
void check_vocabulary(const PlannerInput& input, const Plan& plan) {
  const std::vector<LayerId> layers = vocabulary_layers(input.model);
  if (layers.empty())
    refuse_vocabulary(input,
                      "the operations of the model show no single embedding, scores of all words and loss to divide",
                      "vocabulary: ends, or a model of the builder transformer without modules for later tokens");
  if (input.options.share == Share::MicroBatches)
    refuse_vocabulary(input, "replicas that take micro-batches in turn do not meet for the scores of each",
                      "share: samples");
  int words = 0;
  for (const Operation& op : input.model.layers[layers[1]].operations)
    if (op.division == Division::Vocabulary) words = op.columns;
  const int ranks = static_cast<int>(vocabulary_stages(plan).size());
  const int parts = ranks * plan.stages.back().shape.degrees.tensor;
  if (words < parts)
    refuse_vocabulary(input,
                      fmt::format("{} cannot be divided over {}, because each needs at least one",
                                  pluralize(words, "word"), pluralize(parts, "device")),
                      "fewer stages, a smaller group.tensor, or a model with a larger vocabulary");
}

}  // namespace

config::MapSpec chain_fields(std::string title, config::Field division) {
  return {
      std::move(title),
      {std::move(division),
       config::choice("placement", std::vector<std::string>{"auto", "linear", "loop", "v", "wave"})
           .fallback("auto")
           .doc("Which device runs which stages. linear: one stage on each. loop: round-robin. v: forth over the "
                "devices and back once. wave: forth and back repeatedly. auto: the placement of the schedule, which "
                "may include a second copy of every stage in the opposite direction."),
       config::integer("replicas", 1, 1e6).fallback("1").doc("Copies of each stage, each on one device or one group."),
       share_field(), device_group_field(), shard_field(),
       config::integer("micro_batch_size", 1, 1e6).fallback("1").doc("Samples of one micro-batch of each replica."),
       recompute_field(false, true),
       config::integer("recompute_layers", 1, 1e6)
           .optional()
           .doc("With recompute: layers, only the first layers with attention of each stage run again, as with "
                "Megatron-LM's recompute-method block. Default: all layers."),
       config::choice("vocabulary", std::vector<std::string>{"ends", "all"})
           .fallback("ends")
           .doc("Who has the layers of the vocabulary. ends: the first stage the embedding, the last one scores and "
                "loss. all: each rank an equal part of the words of all of them, which needs run.schedule: vocab-1, "
                "vocab-2 or interlaced. Tied weights need no sum then, and words are not padded to a multiple of the "
                "stages."),
       config::list("devices", config::text("device"))
           .optional()
           .doc("Device names in the order of the stages; devices of a group, and replicas of a stage, are "
                "consecutive. node0.gpu[0-3] stands for four devices, node[0-1].gpu[0-3] for eight. Default: the order "
                "of the cluster."),
       config::boolean("sequential").fallback("false").doc("Whether parallel branches run one after the other.")}};
}

ChainStages place_chain(const PlannerInput& input, int count) {
  const PlanSpec& options = input.options;
  const PlacementRule placing = placing_of(input);
  const auto ranks = choose_ranks(input, placing, count, options.replicas * options.group.group());
  const int rank_count = static_cast<int>(ranks.size());
  ChainStages chain{.plan = {}, .both_ways = placing.placement == Placement::Bidirectional};
  if (placing.turn) chain.turn = placing.turn(rank_count, input.micro_batches);
  for (int s = 0; s < count; ++s) {
    Stage& stage = chain.plan.stages.emplace_back();
    stage.name = fmt::format("s{}", s);
    stage.shape = options.shape(rank_count);
    stage.place_on(ranks[rank_of(placing.placement, s, rank_count)]);
    stage.share = options.share;
    stage.micro_batch_size = options.micro_batch_size;
    stage.shape.recomputation = recomputations(options, input.model).front();
  }
  count_samples(chain.plan, input);
  check_group(input, chain.plan);
  return chain;
}

Plan finish_chain(ChainStages chain, const PlannerInput& input) {
  finish_plan(chain.plan, input, input.options.sequential);
  if (chain.both_ways) {
    add_way_back(chain.plan, chain.turn);
    check_plan(chain.plan);
  }
  if (input.options.divides_vocabulary) {
    check_vocabulary(input, chain.plan);
    divide_vocabulary(chain.plan, input.model);
    for (const Stage& stage : chain.plan.stages)
      if (stage.shape.layers.empty())
        refuse_vocabulary(input, fmt::format("stage '{}' has layers of the vocabulary alone", stage.name),
                          "fewer stages");
  }
  return std::move(chain.plan);
}

}  // namespace stagecraft
