#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/model/configuration.hpp"

namespace stagecraft {

/// Converts the values of a config.json to fields of the builder `transformer`. A null counts as absent.
class ConfigurationReader {
 public:
  ConfigurationReader(const config::Value& configuration, config::Problems& problems, ConfigurationReading& reading);

  /// Copies the value of `key` to the field `field`; a dotted field is inside a map, such as "experts.count". If the
  /// key is absent, copy_required() adds a problem and copy_optional() does nothing.
  void copy_required(const char* key, const char* field);
  void copy_optional(const char* key, const char* field);
  /// Copies the value of `key`, or sets what the family has without it.
  void copy_or(const char* key, const char* field, const char* fallback);
  /// Sets a field that no single key determines.
  void set(const char* field, std::string text);
  void set(const char* field, std::string text, const Where& where);

  /// The value of a key; null if it is absent or null.
  const config::Value* find(std::string_view name);
  /// Whether the key is there, be it with a null.
  bool has(std::string_view name) const { return configuration_.has(name); }
  bool flag(const char* key, bool fallback);
  /// A whole number; `fallback` if it is absent. Anything else adds a problem and gives `fallback`.
  int number(const char* key, int fallback);
  /// Adds a problem unless the value is one of these words or absent.
  void expect_word(const char* key, const std::vector<std::string>& words);
  void refuse(const char* key, const std::string& message, const std::string& help);

  void note(std::string sentence) { reading_.notes.push_back(std::move(sentence)); }

  /// Reads shape, vocabulary, precision and sequence length, whose keys are equal in all decoders with RMS norm, rotary
  /// positions and SwiGLU. Embedding and logits are tied only if the configuration says so.
  void read_llama_shape();
  /// The length of a sample from `key` or, if it is absent, `fallback`; 0: the key is required.
  void read_sequence_of(const char* key, int fallback);
  /// Tokens of a sample.
  int sequence() const { return sequence_; }
  /// What does not depend on the activation: precision, rotation, RMS norm, a gate, fused attention, and whether
  /// embedding and logits are tied.
  void read_gated_decoder(bool tied);
  /// Reads a window in all layers but the last of each `pattern`; `layer_types` says it too.
  void read_window_pattern(const char* window_fallback, int pattern);
  /// Reads the heads of keys and values, and the width of a head.
  void read_grouped_heads();
  /// Reads multi-head latent attention.
  void read_latent_attention();
  /// Reads `layer_types`: full attention in each n-th layer or in all, a sliding window in the others.
  void read_layer_types();
  /// Reads a sliding window that `use_sliding_window` enables, in the layers that `layer_types` or `max_window_layers`
  /// select.
  void read_optional_window();
  /// Reads routed and shared experts by DeepSeek's keys.
  void read_deepseek_experts();
  /// Reads the decoder of DeepSeek-V2, on which V3 and Kimi K2 build: latent attention and experts, without biases.
  void read_deepseek_shape();
  /// Reads the decoder of Gemma 2, on which Gemma 3 builds, up to its norms and windows. The fallbacks are the size of
  /// the vocabulary and the length of a sample.
  void read_gemma_shape(const char* vocabulary_fallback, int sequence_fallback);
  /// Reads the number format of the weights; models with 16 bits are trained in mixed precision.
  void read_precision();

  config::Value finish() { return std::move(model_); }

 private:
  void read_sequence();
  void put_sequence(config::Value value);
  void put(std::string_view field, config::Value value);

  const config::Value& configuration_;
  config::Problems& problems_;
  config::Value model_;
  int sequence_ = 0;
  ConfigurationReading& reading_;
};

}  // namespace stagecraft
