// Turns a config.json of Hugging Face into a model file, and sorts its keys into read, not modeled, without use and
// unknown for the notes of `import huggingface`.

#include "sim/interchange/imports/huggingface.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/core.h>

#include "sim/experiment/scenario.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "sim/model/configuration.hpp"

namespace stagecraft {
namespace {

using config::Value;

/// Facts that change what a real iteration takes, unless they are zero, and that no field of a model stands for.
const std::set<std::string> kUnmodeledFacts{"attention_dropout",
                                            "hidden_dropout",
                                            "attn_pdrop",
                                            "embd_pdrop",
                                            "resid_pdrop",
                                            "dropout",
                                            "ep_size",
                                            "quantization_config",
                                            "attn_logit_softcapping",
                                            "final_logit_softcapping"};

/// Beginnings of facts about tokens, generation, initial weights, routing and constants of formulas. Some of them are
/// read in other families.
constexpr const char* kFactsWithoutUse[] = {"architectures",
                                            "auto_map",
                                            "_name_or_path",
                                            "_attn_implementation",
                                            "transformers_version",
                                            "use_cache",
                                            "initializer_range",
                                            "rms_norm_eps",
                                            "layer_norm_epsilon",
                                            "rope_",
                                            "partial_rotary_factor",
                                            "max_position_embeddings",
                                            "n_ctx",
                                            "pretraining_tp",
                                            "bos_token_id",
                                            "eos_token_id",
                                            "pad_token_id",
                                            "scoring_func",
                                            "topk_method",
                                            "topk_group",
                                            "n_group",
                                            "norm_topk_prob",
                                            "routed_scaling_factor",
                                            "aux_loss_alpha",
                                            "seq_aux",
                                            "router_",
                                            "output_router_logits",
                                            "swiglu_limit",
                                            "num_key_value_heads",
                                            "head_dim",
                                            "num_experts_per_tok",
                                            "experts_per_token",
                                            "sliding_window",
                                            "max_window_layers",
                                            "layer_types",
                                            "summary_",
                                            "task_specific_params",
                                            "scale_attn_",
                                            "query_pre_attn_scalar",
                                            "cache_implementation",
                                            "hidden_act",
                                            "original_max_position_embeddings",
                                            "_sliding_window_pattern",
                                            "attn_temperature_tuning",
                                            "attn_scale",
                                            "floor_scale",
                                            "for_llm_compression",
                                            "no_rope_layer",
                                            "attention_chunk_size",
                                            "use_bidirectional_attention",
                                            "use_qk_norm",
                                            "embd_layer_norm_eps",
                                            "layer_norm_eps",
                                            "reorder_and_upcast_attn"};

bool is_zero(const Value& value) {
  return value.kind == Value::Kind::Null ||
         (value.is_scalar() && !value.text.empty() && value.text.find_first_not_of("0.") == std::string::npos);
}

std::string written(const config::Member& member) {
  return member.value.is_scalar() ? fmt::format("{} = {}", member.key, member.value.text) : member.key;
}

/// Parts of a model of several kinds of input, of which the one about text is read.
constexpr const char* kOtherParts[] = {"vision_config", "audio_config"};

TrainingSetup sorted_facts(const Value& whole, const ConfigurationReading& read) {
  const Value configuration = text_part(whole);
  const std::set<std::string>& keys_read = read.keys;
  TrainingSetup facts;
  for (const char* part : kOtherParts)
    if (whole.has("text_config") && whole.has(part)) facts.unmodeled.emplace_back(part);
  for (const config::Member& member : configuration.members) {
    const auto begins = [&](const char* start) { return member.key.starts_with(start); };
    if (member.key == "model_type" || (keys_read.contains(member.key) && member.value.kind != Value::Kind::Null))
      facts.matched.push_back(written(member));
    else if (kUnmodeledFacts.contains(member.key) && !is_zero(member.value))
      facts.unmodeled.push_back(written(member));
    else if (kUnmodeledFacts.contains(member.key) || keys_read.contains(member.key) ||
             std::any_of(std::begin(kFactsWithoutUse), std::end(kFactsWithoutUse), begins))
      facts.without_use.push_back(written(member));
    else
      facts.unknown.push_back(written(member));
  }
  facts.assumed = read.notes;
  return facts;
}

}  // namespace

HuggingFaceModel read_huggingface(const std::string& text, const std::string& file, int sequence, bool details) {
  constexpr int kUsualSequence = 4096;
  config::Problems problems;
  const Value configuration = config::parse_json(text, file, problems);
  problems.throw_if_any();
  ConfigurationReading facts{.sequence = sequence, .limit = kUsualSequence, .keys = {}, .notes = {}};
  const Value model = read_configuration(configuration, problems, &facts);
  problems.throw_if_any();
  Value wrapped;
  wrapped.kind = Value::Kind::Map;
  wrapped.members.push_back({"model", configuration.where, model});
  const Value checked = config::check(wrapped, model_fields(), "", problems);
  problems.throw_if_any();
  build_model(checked.at("model"));  // Refuses heads that do not divide the width, with their place in the file.
  return {"schema: model/1\n" + config::to_yaml(model, false), notes_of(sorted_facts(configuration, facts), details)};
}

}  // namespace stagecraft
