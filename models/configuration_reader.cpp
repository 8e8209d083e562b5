#include "models/configuration_reader.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "sim/core/text.hpp"

namespace stagecraft {

using config::Problems;
using config::Value;

ConfigurationReader::ConfigurationReader(const Value& configuration, Problems& problems)
    : configuration_(configuration), problems_(problems) {
  model_.kind = Value::Kind::Map;
  model_.where = configuration.where;
  set("builder", "transformer");
  set("kind", "gpt");
}

const Value* ConfigurationReader::fact(std::string_view name) const {
  const Value* value = configuration_.find(name);
  return value && value->kind != Value::Kind::Null ? value : nullptr;
}

void ConfigurationReader::put(std::string_view ours, Value value) {
  Value* map = &model_;
  std::string key(ours);
  if (const auto dot = ours.find('.'); dot != std::string_view::npos) {
    const std::string outer(ours.substr(0, dot));
    key = ours.substr(dot + 1);
    if (!model_.has(outer)) {
      Value inner;
      inner.kind = Value::Kind::Map;
      inner.where = value.where;
      model_.members.push_back({outer, value.where, std::move(inner)});
    }
    map = model_.find(outer);
  }
  const Where where = value.where;
  map->members.push_back({std::move(key), where, std::move(value)});
}

void ConfigurationReader::take(const char* theirs, const char* ours) {
  if (const Value* value = fact(theirs)) put(ours, *value);
}

void ConfigurationReader::require(const char* theirs, const char* ours) {
  if (fact(theirs)) return take(theirs, ours);
  problems_.add(configuration_.where, theirs, fmt::format("the configuration does not have '{}'", theirs),
                fmt::format("it says the field '{}' of the model", ours), "missing-field");
}

void ConfigurationReader::set(const char* ours, std::string text) { set(ours, std::move(text), configuration_.where); }

void ConfigurationReader::set(const char* ours, std::string text, const Where& where) {
  put(ours, Value::scalar(std::move(text), where, "computed"));
}

bool ConfigurationReader::flag(const char* theirs, bool fallback) {
  const Value* value = fact(theirs);
  if (!value) return fallback;
  if (!value->is_scalar() || (value->text != "true" && value->text != "false")) {
    refuse(theirs, "this must be true or false", {});
    return fallback;
  }
  return value->text == "true";
}

int ConfigurationReader::number(const char* theirs, int fallback) {
  const Value* value = fact(theirs);
  if (!value) return fallback;
  std::string_view text = value->text;
  const auto read = value->is_scalar() ? read_number(text) : std::nullopt;
  if (read && text.empty()) return *read;
  refuse(theirs, "a whole number is needed here", {});
  return fallback;
}

void ConfigurationReader::expect_word(const char* theirs, const std::vector<std::string>& words) {
  const Value* value = fact(theirs);
  if (!value || (value->is_scalar() && std::find(words.begin(), words.end(), value->text) != words.end())) return;
  refuse(theirs, value->is_scalar() ? fmt::format("'{}' is not known here", value->text) : "a word is needed here",
         "known: " + join(words));
}

void ConfigurationReader::refuse(const char* theirs, const std::string& message, const std::string& help) {
  const Value* value = configuration_.find(theirs);
  problems_.add(value ? value->where : configuration_.where, theirs, message, help, "configuration");
}

// The length that the first part of the training used: `max_position_embeddings` is what rotation was stretched to
// later.
void ConfigurationReader::read_sequence() {
  const Value* scaling = fact(fact("rope_parameters") ? "rope_parameters" : "rope_scaling");
  const Value* original = scaling && scaling->is_map() ? scaling->find("original_max_position_embeddings") : nullptr;
  if (fact("initial_context_length"))
    take("initial_context_length", "sequence");
  else if (original)
    put("sequence", *original);
  else
    require("max_position_embeddings", "sequence");
}

void ConfigurationReader::read_precision() {
  const char* theirs = fact("dtype") ? "dtype" : "torch_dtype";
  expect_word(theirs, {"bfloat16", "float16", "float32"});
  const Value* word = fact(theirs);
  const Where& where = word ? word->where : configuration_.where;
  set("precision", word && word->text == "float32" ? "fp32" : "mixed", where);
}

void ConfigurationReader::read_llama_shape() {
  require("num_hidden_layers", "layers");
  require("hidden_size", "hidden");
  require("num_attention_heads", "heads");
  require("intermediate_size", "feed_forward");
  require("vocab_size", "vocabulary");
  expect_word("hidden_act", {"silu"});
  read_sequence();
  read_precision();
  for (const auto& [field, text] : {std::pair{"positions", "rotary"}, {"norm", "rms"}, {"gated", "true"}})
    set(field, text);
  set("flash_attention", "true");
  const Value* tied = configuration_.find("tie_word_embeddings");
  set("tied", flag("tie_word_embeddings", false) ? "true" : "false", tied ? tied->where : configuration_.where);
}

void ConfigurationReader::read_grouped_heads() {
  take("num_key_value_heads", "key_value_heads");
  take("head_dim", "head_width");
}

void ConfigurationReader::read_latent_attention() {
  take("q_lora_rank", "latent.query");
  require("kv_lora_rank", "latent.key_value");
  require("qk_rope_head_dim", "latent.rope");
  require("qk_nope_head_dim", "latent.nope");
  require("v_head_dim", "latent.value");
}

void ConfigurationReader::read_layer_types() {
  const Value* types = fact("layer_types");
  if (!types) return;
  if (!types->is_list()) return refuse("layer_types", "a list is needed here, with a word for each layer", {});
  std::vector<bool> full;
  for (const Value& type : types->items) {
    if (type.text != "full_attention" && type.text != "sliding_attention")
      problems_.add(type.where, "layer_types", fmt::format("'{}' is not known here", type.text),
                    "known: full_attention, sliding_attention", "configuration");
    full.push_back(type.text == "full_attention");
  }
  if (const int layers = number("num_hidden_layers", 0); layers != static_cast<int>(full.size()))
    return refuse("layer_types", fmt::format("{} layers have {} types", layers, full.size()), {});
  const auto first = std::find(full.begin(), full.end(), true);
  if (first == full.end()) return take("sliding_window", "window");
  const auto every = first - full.begin() + 1;
  for (std::size_t l = 0; l < full.size(); ++l)
    if (full[l] != ((static_cast<std::ptrdiff_t>(l) + 1) % every == 0))
      return refuse("layer_types", "layers with full attention do not come at equal distances",
                    "only a pattern such as sliding, sliding, full, sliding, sliding, full can be read");
  if (every == 1) return;
  require("sliding_window", "window");
  set("full_every", std::to_string(every), types->where);
}

void ConfigurationReader::read_switched_window() {
  if (!flag("use_sliding_window", false)) return;
  if (fact("layer_types")) return read_layer_types();
  // Without types of layers, only the layers from `max_window_layers` on have the window.
  if (number("max_window_layers", -1) == 0) return require("sliding_window", "window");
  if (number("max_window_layers", 0) < number("num_hidden_layers", 0))
    refuse("max_window_layers", "a window in the upper layers only cannot be read", "write 0, or layer_types");
}

void ConfigurationReader::read_deepseek_experts() {
  if (!fact("n_routed_experts")) return;
  require("n_routed_experts", "experts.count");
  require("num_experts_per_tok", "experts.active");
  require("moe_intermediate_size", "experts.width");
  take("n_shared_experts", "experts.shared");
  take("first_k_dense_replace", "experts.first_dense");
  if (number("moe_layer_freq", 1) != 1)
    refuse("moe_layer_freq", "only 1 can be read, which is experts in every layer after the dense ones", {});
  // Groups of experts are whole on a node, so that a token reaches at most as many nodes as it chooses groups.
  if (number("n_group", 1) > 1) take("topk_group", "experts.nodes");
}

void ConfigurationReader::read_deepseek_shape() {
  read_llama_shape();
  set("bias", "false");
  set("attention_bias", flag("attention_bias", false) ? "true" : "false");
  read_latent_attention();
  read_deepseek_experts();
}

Value read_configuration(const Value& configuration, Problems& problems) {
  Value unreadable = configuration;
  unreadable.unreadable = true;
  const Value* type = configuration.is_map() ? configuration.find("model_type") : nullptr;
  const auto families = model_configurations::catalog();
  if (!type || !type->is_scalar()) {
    problems.add(type ? type->where : configuration.where, "model_type",
                 "this is not the configuration of a model: it has no word 'model_type'",
                 "a config.json of Hugging Face's transformers has one", "configuration");
    return unreadable;
  }
  if (const ConfigurationFamily* family = find_in(families, type->text)) {
    const std::size_t before = problems.list().size();
    Value model = family->read(configuration, problems);
    model.unreadable = problems.list().size() > before;
    return model;
  }
  problems.add(type->where, "model_type", fmt::format("models of the type '{}' cannot be read", type->text),
               suggest(type->text, names_of(families)), "configuration");
  return unreadable;
}

}  // namespace stagecraft
