#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/model/configuration.hpp"

namespace stagecraft {

/// Turns the facts of a config.json into fields of the builder `transformer`. A fact that is null counts as absent.
class ConfigurationReader {
 public:
  ConfigurationReader(const config::Value& configuration, config::Problems& problems);

  /// The fact `theirs` becomes the field `ours`; a dotted name is a field inside a map, such as "experts.count". The
  /// first is a problem where it is absent; the second does nothing then.
  void require(const char* theirs, const char* ours);
  void take(const char* theirs, const char* ours);
  /// A field that no single fact says.
  void set(const char* ours, std::string text);
  void set(const char* ours, std::string text, const Where& where);

  /// The fact, or nullptr where it is absent or null.
  const config::Value* fact(std::string_view name) const;
  bool flag(const char* theirs, bool fallback);
  /// A whole number; `fallback` where it is absent, or is a problem.
  int number(const char* theirs, int fallback);
  /// The fact must be one of these words, or absent.
  void expect_word(const char* theirs, const std::vector<std::string>& words);
  void refuse(const char* theirs, const std::string& message, const std::string& help);

  /// Shape, vocabulary, precision and length of a sample, which all decoders with RMS norm, rotation and SwiGLU name
  /// alike. Embedding and scores are tied only if the configuration says so.
  void read_llama_shape();
  /// Heads of keys and values, and the width of a head.
  void read_grouped_heads();
  /// Multi-head latent attention.
  void read_latent_attention();
  /// The `layer_types`: full attention in each n-th layer or in all, a sliding window elsewhere.
  void read_layer_types();
  /// A sliding window that `use_sliding_window` switches on, in the layers that `layer_types` or `max_window_layers`
  /// say.
  void read_switched_window();
  /// Routed and shared experts as DeepSeek names them.
  void read_deepseek_experts();
  /// The decoder of DeepSeek-V2, on which V3 and Kimi K2 build: latent attention and experts, without biases.
  void read_deepseek_shape();
  /// The number format of the weights; 16 bits are trained in mixed precision.
  void read_precision();

  config::Value finish() { return std::move(model_); }

 private:
  void read_sequence();
  void put(std::string_view ours, config::Value value);

  const config::Value& configuration_;
  config::Problems& problems_;
  config::Value model_;
};

}  // namespace stagecraft
