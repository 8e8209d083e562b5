// Finds the family of a config.json of Hugging Face by its model_type; has the functions by which the families in
// models/configurations convert its values to fields of the builder `transformer`.

#include "models/configuration_reader.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <iterator>
#include <optional>

#include "sim/core/text.hpp"

namespace stagecraft {

using config::Problems;
using config::Value;

ConfigurationReader::ConfigurationReader(const Value& configuration, Problems& problems, ConfigurationReading& reading)
    : configuration_(configuration), problems_(problems), reading_(reading) {
  model_.kind = Value::Kind::Map;
  model_.where = configuration.where;
  set("builder", "transformer");
  set("kind", "gpt");
}

const Value* ConfigurationReader::find(std::string_view name) {
  reading_.keys.emplace(name);
  const Value* value = configuration_.find(name);
  return value && value->kind != Value::Kind::Null ? value : nullptr;
}

void ConfigurationReader::put(std::string_view field, Value value) {
  Value* map = &model_;
  std::string name(field);
  if (const auto dot = field.find('.'); dot != std::string_view::npos) {
    const std::string outer(field.substr(0, dot));
    name = field.substr(dot + 1);
    if (!model_.has(outer)) {
      Value inner;
      inner.kind = Value::Kind::Map;
      inner.where = value.where;
      model_.members.push_back({outer, value.where, std::move(inner)});
    }
    map = model_.find(outer);
  }
  const Where where = value.where;
  map->members.push_back({std::move(name), where, std::move(value)});
}

void ConfigurationReader::copy_optional(const char* key, const char* field) {
  if (const Value* value = find(key)) put(field, *value);
}

void ConfigurationReader::copy_or(const char* key, const char* field, const char* fallback) {
  if (find(key)) return copy_optional(key, field);
  set(field, fallback);
}

void ConfigurationReader::copy_required(const char* key, const char* field) {
  if (find(key)) return copy_optional(key, field);
  problems_.add(configuration_.where, key, fmt::format("the configuration does not have '{}'", key),
                fmt::format("it says the field '{}' of the model", field), "missing-field");
}

void ConfigurationReader::set(const char* field, std::string text) {
  set(field, std::move(text), configuration_.where);
}

void ConfigurationReader::set(const char* field, std::string text, const Where& where) {
  put(field, Value::scalar(std::move(text), where, "computed"));
}

bool ConfigurationReader::flag(const char* key, bool fallback) {
  const Value* value = find(key);
  if (!value) return fallback;
  if (!value->is_scalar() || (value->text != "true" && value->text != "false")) {
    refuse(key, "this must be true or false", {});
    return fallback;
  }
  return value->text == "true";
}

int ConfigurationReader::number(const char* key, int fallback) {
  const Value* value = find(key);
  if (!value) return fallback;
  std::string_view text = value->text;
  const auto read = value->is_scalar() ? read_number(text) : std::nullopt;
  if (read && text.empty()) return *read;
  refuse(key, "a whole number is needed here", {});
  return fallback;
}

void ConfigurationReader::expect_word(const char* key, const std::vector<std::string>& words) {
  const Value* value = find(key);
  if (!value || (value->is_scalar() && std::find(words.begin(), words.end(), value->text) != words.end())) return;
  refuse(key, value->is_scalar() ? fmt::format("'{}' is not known here", value->text) : "a word is needed here",
         "known: " + join(words));
}

void ConfigurationReader::refuse(const char* key, const std::string& message, const std::string& help) {
  const Value* value = configuration_.find(key);
  problems_.add(value ? value->where : configuration_.where, key, message, help, "configuration");
}

// Reads the sequence length of the first training phase. `max_position_embeddings` is the length after the rotary
// positions were extended.
void ConfigurationReader::read_sequence() {
  const Value* scaling = find(find("rope_parameters") ? "rope_parameters" : "rope_scaling");
  const Value* original = scaling && scaling->is_map() ? scaling->find("original_max_position_embeddings") : nullptr;
  if (const Value* initial = find("initial_context_length")) return put_sequence(*initial);
  if (original) return put_sequence(*original);
  if (const Value* outside = find("original_max_position_embeddings")) return put_sequence(*outside);
  read_sequence_of("max_position_embeddings", 0);
}

void ConfigurationReader::read_sequence_of(const char* key, int fallback) {
  if (const Value* length = find(key)) return put_sequence(*length);
  if (fallback > 0) return put_sequence(Value::scalar(std::to_string(fallback), configuration_.where, "computed"));
  copy_required(key, "sequence");
}

void ConfigurationReader::put_sequence(Value value) {
  std::string_view rest = value.text;
  const std::optional<int> limit = value.is_scalar() ? read_number(rest) : std::nullopt;
  sequence_ = reading_.sequence > 0 ? reading_.sequence : limit && rest.empty() ? *limit : 0;
  if (reading_.sequence == 0 && reading_.limit > 0 && sequence_ > reading_.limit) {
    sequence_ = reading_.limit;
    note(
        fmt::format("samples have {} tokens, because the configuration says only the most, which are {}; --sequence "
                    "NUMBER takes others",
                    sequence_, value.text));
  } else if (reading_.sequence == 0 && reading_.limit > 0) {
    note(fmt::format("samples have {} tokens, as the configuration says; --sequence NUMBER takes others", value.text));
  }
  if (sequence_ > 0 && std::to_string(sequence_) != value.text) value.text = std::to_string(sequence_);
  put("sequence", std::move(value));
}

void ConfigurationReader::read_precision() {
  const char* key = find("dtype") ? "dtype" : "torch_dtype";
  expect_word(key, {"bfloat16", "float16", "float32"});
  const Value* word = find(key);
  const Where& where = word ? word->where : configuration_.where;
  set("precision", word && word->text == "float32" ? "fp32" : "mixed", where);
}

void ConfigurationReader::read_llama_shape() {
  copy_required("num_hidden_layers", "layers");
  copy_required("hidden_size", "hidden");
  copy_required("num_attention_heads", "heads");
  copy_required("intermediate_size", "feed_forward");
  copy_required("vocab_size", "vocabulary");
  expect_word("hidden_act", {"silu"});
  read_sequence();
  read_gated_decoder(false);
}

void ConfigurationReader::read_gated_decoder(bool tied) {
  read_precision();
  for (const auto& [field, text] : {std::pair{"positions", "rotary"}, {"norm", "rms"}, {"gated", "true"}})
    set(field, text);
  set("flash_attention", "true");
  const Value* given = configuration_.find("tie_word_embeddings");
  set("tied", flag("tie_word_embeddings", tied) ? "true" : "false", given ? given->where : configuration_.where);
}

void ConfigurationReader::read_window_pattern(const char* window_fallback, int pattern) {
  if (find("layer_types")) return read_layer_types();
  copy_or("sliding_window", "window", window_fallback);
  if (pattern > 1) set("full_every", std::to_string(pattern));
}

void ConfigurationReader::read_grouped_heads() {
  copy_optional("num_key_value_heads", "key_value_heads");
  copy_optional("head_dim", "head_width");
}

void ConfigurationReader::read_latent_attention() {
  copy_optional("q_lora_rank", "latent.query");
  copy_required("kv_lora_rank", "latent.key_value");
  copy_required("qk_rope_head_dim", "latent.rope");
  copy_required("qk_nope_head_dim", "latent.nope");
  copy_required("v_head_dim", "latent.value");
}

void ConfigurationReader::read_layer_types() {
  const Value* types = find("layer_types");
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
    return refuse("layer_types",
                  fmt::format("{} for {}", pluralize(std::ssize(full), "type"), pluralize(layers, "layer")), {});
  const auto first = std::find(full.begin(), full.end(), true);
  if (first == full.end()) return copy_optional("sliding_window", "window");
  const auto every = first - full.begin() + 1;
  for (std::size_t l = 0; l < full.size(); ++l)
    if (full[l] != ((static_cast<std::ptrdiff_t>(l) + 1) % every == 0))
      return refuse("layer_types", "layers with full attention do not come at equal distances",
                    "only a pattern such as sliding, sliding, full, sliding, sliding, full can be read");
  if (every == 1) return;
  copy_required("sliding_window", "window");
  set("full_every", std::to_string(every), types->where);
}

void ConfigurationReader::read_optional_window() {
  if (!flag("use_sliding_window", false)) return;
  if (find("layer_types")) return read_layer_types();
  // Without types of layers, only the layers from `max_window_layers` on have the window.
  if (number("max_window_layers", -1) == 0) return copy_required("sliding_window", "window");
  if (number("max_window_layers", 0) < number("num_hidden_layers", 0))
    refuse("max_window_layers", "a window in the upper layers only cannot be read", "write 0, or layer_types");
}

void ConfigurationReader::read_deepseek_experts() {
  if (!find("n_routed_experts")) return;
  copy_required("n_routed_experts", "experts.count");
  copy_required("num_experts_per_tok", "experts.active");
  copy_required("moe_intermediate_size", "experts.width");
  copy_optional("n_shared_experts", "experts.shared");
  copy_optional("first_k_dense_replace", "experts.first_dense");
  if (number("moe_layer_freq", 1) != 1)
    refuse("moe_layer_freq", "only 1 can be read, which is experts in every layer after the dense ones", {});
  // Groups of experts are whole on a node, so that a token reaches at most as many nodes as it chooses groups.
  if (number("n_group", 1) > 1 && find("topk_group"))
    copy_optional("topk_group", "experts.nodes"), copy_optional("n_group", "experts.groups");
}

void ConfigurationReader::read_deepseek_shape() {
  read_llama_shape();
  set("bias", "false");
  set("attention_bias", flag("attention_bias", false) ? "true" : "false");
  read_latent_attention();
  read_deepseek_experts();
}

void ConfigurationReader::read_gemma_shape(const char* vocabulary_fallback, int sequence_fallback) {
  copy_required("num_hidden_layers", "layers");
  copy_required("hidden_size", "hidden");
  copy_or("num_attention_heads", "heads", "8");
  copy_or("num_key_value_heads", "key_value_heads", "4");
  copy_or("head_dim", "head_width", "256");
  copy_required("intermediate_size", "feed_forward");
  copy_or("vocab_size", "vocabulary", vocabulary_fallback);
  expect_word("hidden_activation", {"gelu_pytorch_tanh", "gelu"});
  expect_word("hidden_act", {"gelu_pytorch_tanh", "gelu"});
  read_sequence_of("max_position_embeddings", sequence_fallback);
  read_gated_decoder(true);
  set("bias", "false");
  set("attention_bias", flag("attention_bias", false) ? "true" : "false");
}

namespace {

std::string digits_of(std::string_view word) {
  std::string digits;
  std::copy_if(word.begin(), word.end(), std::back_inserter(digits), [](char c) { return c >= '0' && c <= '9'; });
  return digits;
}

/// A slip of letters has a suggestion. Another number is another model: qwen3_5 is no slip of qwen3.
std::string type_help(const std::string& type, const std::vector<std::string>& types) {
  const auto near = closest(type, types);
  return near && digits_of(*near) == digits_of(type) ? fmt::format("did you mean '{}'?", *near)
                                                     : "types that can be read: " + join(types);
}

}  // namespace

Value text_part(const Value& configuration) {
  const Value* text = configuration.is_map() ? configuration.find("text_config") : nullptr;
  if (!text || !text->is_map()) return configuration;
  Value part = *text;
  const Value* type = configuration.find("model_type");
  if (!part.has("model_type") && type && type->is_scalar())
    part.members.push_back({"model_type", type->where, Value::scalar(type->text + "_text", type->where)});
  for (const char* key : {"torch_dtype", "dtype", "tie_word_embeddings"})
    if (const Value* whole = configuration.find(key); whole && !part.has(key))
      part.members.push_back({key, whole->where, *whole});
  return part;
}

Value read_configuration(const Value& whole, Problems& problems, ConfigurationReading* reading) {
  const Value configuration = text_part(whole);
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
  const ConfigurationFamily* family = find_in(families, type->text);
  if (!family) family = find_in(families, type->text + "_text");  // The text of a model of several kinds of input.
  if (family) {
    const std::size_t before = problems.list().size();
    ConfigurationReading unused;
    ConfigurationReader reader(configuration, problems, reading != nullptr ? *reading : unused);
    family->read(reader);
    Value model = reader.finish();
    model.unreadable = problems.list().size() > before;
    return model;
  }
  problems.add(type->where, "model_type", fmt::format("models of the type '{}' cannot be read", type->text),
               type_help(type->text, names_of(families)), "configuration");
  return unreadable;
}

}  // namespace stagecraft
