// Configurations of Hugging Face become models; what cannot be read is refused at its place.

#include <doctest/doctest.h>

#include "sim/model/configuration.hpp"
#include "tests/support/presets.hpp"

namespace stagecraft::configuration_test {
namespace {

config::Value read(const std::string& json) {
  config::Problems problems;
  const config::Value tree = config::parse_yaml(json, "config.json", problems);
  problems.throw_if_any();
  config::Value model = read_configuration(tree, problems);
  problems.throw_if_any();
  return model;
}

ModelGraph built(const std::string& json) { return test::model_of(read(json)); }

std::string error_of(const std::string& json) {
  return test::input_error_of([&] { built(json); });
}

ModelGraph preset(const std::string& name) { return test::model_of(test::file_tree("models/" + name + ".yaml")); }

/// Both have equal layers, with equal operations and amounts.
void check_same(const ModelGraph& a, const ModelGraph& b) {
  REQUIRE(a.layers.size() == b.layers.size());
  CHECK(a.precision.weight == b.precision.weight);
  CHECK(a.parameters() == b.parameters());
  for (const LayerId l : a.layers.ids()) {
    CAPTURE(a.layers[l].name);
    CHECK(a.layers[l].operations == b.layers[l].operations);
    CHECK(a.layers[l].stash == b.layers[l].stash);
    CHECK(a.layers[l].forward == b.layers[l].forward);
    CHECK(a.layers[l].tie == b.layers[l].tie);
  }
}

std::string with(const std::string& json, const std::string& more) {
  return json.substr(0, json.rfind('}')) + ", " + more + "}";
}

const std::string kLlama =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
        "hidden_act": "silu", "max_position_embeddings": 8192, "rope_scaling": null, "torch_dtype": "bfloat16"})";

const std::string kDeepseek =
    R"({"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
        "num_key_value_heads": 128, "intermediate_size": 18432, "vocab_size": 129280, "hidden_act": "silu",
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
        "n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1,
        "first_k_dense_replace": 3, "moe_layer_freq": 1, "n_group": 8, "topk_group": 4, "attention_bias": false,
        "max_position_embeddings": 163840, "rope_scaling": {"type": "yarn", "original_max_position_embeddings": 4096},
        "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";

}  // namespace

TEST_CASE("every family of configurations says what it is and from where") {
  CHECK(model_configurations::catalog().size() >= 18);
  for (const ConfigurationFamily* family : model_configurations::catalog()) {
    CHECK_FALSE(family->summary.empty());
    CHECK_FALSE(family->source.empty());
  }
}

TEST_CASE("llama: the configuration of Llama 3 8B makes its preset") {
  check_same(built(kLlama), preset("llama-3-8b"));
}

TEST_CASE("llama: heads of keys, biases, tied embeddings and formats are respected") {
  const ModelGraph plain = built(kLlama), biased = built(with(kLlama, R"("attention_bias": true)"));
  CHECK(biased.parameters() - plain.parameters() == 32 * (4096 + 2 * 1024 + 4096));
  const ModelGraph dense = built(with(kLlama, R"("mlp_bias": true)"));
  CHECK(dense.parameters() - plain.parameters() == 32 * (2 * 14336 + 4096));
  const ModelGraph tied = built(with(kLlama, R"("tie_word_embeddings": true)"));
  CHECK(plain.parameters() - tied.parameters() == 128256.0 * 4096);
  CHECK(built(with(kLlama, R"("dtype": "float32")")).precision.weight == 4);
  CHECK(read(with(kLlama, R"("rope_parameters": {"original_max_position_embeddings": 2048})")).at("sequence").text ==
        "2048");
}

TEST_CASE("mistral: a window, which may be null") {
  const std::string mistral =
      R"({"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
          "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000, "hidden_act": "silu",
          "max_position_embeddings": 8192, "torch_dtype": "bfloat16")";
  check_same(built(mistral + R"(, "sliding_window": 4096})"), preset("mistral-7b"));
  check_same(built(mistral + "}"), preset("mistral-7b"));
  CHECK_FALSE(read(mistral + R"(, "sliding_window": null})").has("window"));
}

TEST_CASE("mixtral: experts of the width of its dense layers") {
  check_same(built(R"({"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096, "sliding_window": null,
                       "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
                       "vocab_size": 32000, "hidden_act": "silu", "num_local_experts": 8, "num_experts_per_tok": 2,
                       "max_position_embeddings": 32768, "torch_dtype": "bfloat16"})"),
             preset("mixtral-8x7b"));
}

TEST_CASE("qwen2: a bias at queries, keys and values alone") {
  const std::string qwen =
      R"({"model_type": "qwen2", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 8,
          "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 50, "hidden_act": "silu",
          "max_position_embeddings": 128, "max_window_layers": 1, "sliding_window": 32, "tie_word_embeddings": true)";
  const ModelGraph model = built(qwen + R"(, "use_sliding_window": false})");
  CHECK(model.parameters() == 50 * 64 + 64 + 2 * (64 * 96 + 96 + 64 * 64 + 3 * 64 * 96 + 2 * 64));
  CHECK(error_of(qwen + R"(, "use_sliding_window": true})").find("a window in the upper layers only") !=
        std::string::npos);
}

TEST_CASE("qwen3 and qwen3_moe: heads are normalized, and experts have a width of their own") {
  const std::string shape =
      R"("num_attention_heads": 64, "head_dim": 128, "vocab_size": 151936, "hidden_act": "silu",
         "max_position_embeddings": 4096, "attention_bias": false, "use_sliding_window": false,
         "torch_dtype": "bfloat16"})";
  check_same(built(R"({"model_type": "qwen3", "num_hidden_layers": 64, "hidden_size": 5120, "num_key_value_heads": 8,
                       "intermediate_size": 25600, )" +
                   shape),
             preset("qwen3-32b"));
  const std::string experts =
      R"({"model_type": "qwen3_moe", "num_hidden_layers": 94, "hidden_size": 4096, "num_key_value_heads": 4,
          "intermediate_size": 12288, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1536,
          "decoder_sparse_step": 1, )";
  check_same(built(experts + R"("mlp_only_layers": [], )" + shape), preset("qwen3-235b-a22b"));
  CHECK(read(experts + R"("mlp_only_layers": [0, 1], )" + shape).at("experts").at("first_dense").text == "2");
  CHECK(error_of(experts + R"("mlp_only_layers": [3], )" + shape).find("dense layers after the first ones") !=
        std::string::npos);
}

TEST_CASE("deepseek_v2, deepseek_v3, kimi_k2: latent attention, experts and tokens further on") {
  check_same(built(kDeepseek), preset("deepseek-v3"));
  const ModelGraph later = built(with(kDeepseek, R"("num_nextn_predict_layers": 1)"));
  CHECK(later.find("mtp0.loss").has_value());
  const std::string v2 =
      R"({"model_type": "deepseek_v2", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
          "intermediate_size": 96, "vocab_size": 50, "hidden_act": "silu", "q_lora_rank": null, "kv_lora_rank": 16,
          "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8, "n_routed_experts": 6,
          "num_experts_per_tok": 2, "moe_intermediate_size": 24, "n_shared_experts": 2, "first_k_dense_replace": 1,
          "n_group": 1, "topk_group": 1, "max_position_embeddings": 32})";
  const config::Value model = read(v2);
  CHECK_FALSE(model.at("latent").has("query"));
  CHECK_FALSE(model.at("experts").has("nodes"));
  CHECK(built(v2).layers.size() == 7);
  std::string kimi = kDeepseek;
  kimi.replace(kimi.find("deepseek_v3"), 11, "kimi_k2");
  check_same(built(kimi), preset("deepseek-v3"));
  CHECK(error_of(with(v2, R"("moe_layer_freq": 2)")).find("only 1 can be read") != std::string::npos);
}

TEST_CASE("gpt_oss: types of layers become a window in all but each n-th layer") {
  const std::string shape =
      R"({"model_type": "gpt_oss", "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8,
          "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088, "hidden_act": "silu",
          "num_local_experts": 128, "num_experts_per_tok": 4, "sliding_window": 128, "attention_bias": true,
          "initial_context_length": 4096, "max_position_embeddings": 131072, "torch_dtype": "bfloat16")";
  check_same(built(shape + R"(, "num_hidden_layers": 36})"), preset("gpt-oss-120b"));
  const std::string s = R"("sliding_attention")", f = R"("full_attention")";
  const auto typed = [&](int layers, const std::string& types) {
    return shape + ", \"num_hidden_layers\": " + std::to_string(layers) + ", \"layer_types\": [" + types + "]}";
  };
  CHECK(read(typed(4, s + "," + f + "," + s + "," + f)).at("full_every").text == "2");
  CHECK(read(typed(4, s + "," + s + "," + f + "," + s)).at("full_every").text == "3");
  CHECK_FALSE(read(typed(2, f + "," + f)).has("window"));
  CHECK_FALSE(read(typed(2, s + "," + s)).has("full_every"));
  CHECK(error_of(typed(3, f + "," + s + "," + f)).find("equal distances") != std::string::npos);
  CHECK(error_of(typed(3, f)).find("1 type for 3 layers") != std::string::npos);
  CHECK(error_of(typed(1, R"("linear_attention")")).find("'linear_attention' is not known here") != std::string::npos);
}

// The published weights have these numbers of parameters.
TEST_CASE("gemma2 and gemma3_text: wide heads, four norms a layer, tied embeddings and a window in some layers") {
  const std::string gemma2 =
      R"({"model_type": "gemma2", "num_hidden_layers": 42, "hidden_size": 3584, "num_attention_heads": 16,
          "num_key_value_heads": 8, "head_dim": 256, "intermediate_size": 14336, "vocab_size": 256000,
          "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 4096,
          "max_position_embeddings": 8192, "query_pre_attn_scalar": 256, "torch_dtype": "float32"})";
  CHECK(built(gemma2).parameters() == 9241705984.0);
  const config::Value fields = read(gemma2);
  CHECK(fields.at("window").text == "4096");
  CHECK(fields.at("full_every").text == "2");
  CHECK(fields.at("precision").text == "fp32");
  const std::string gemma3 =
      R"({"model_type": "gemma3_text", "num_hidden_layers": 26, "hidden_size": 1152, "num_attention_heads": 4,
          "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144,
          "sliding_window": 512, "sliding_window_pattern": 6, "max_position_embeddings": 32768})";
  CHECK(built(gemma3).parameters() == 999885952.0);
  CHECK(read(gemma3).at("full_every").text == "6");
}

TEST_CASE("a model of text and pictures is its text_config, with the defaults of its family") {
  const std::string gemma =
      R"({"model_type": "gemma3", "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152},
          "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
                          "model_type": "gemma3_text", "sliding_window": 1024}})";
  CHECK(built(gemma).parameters() == 3880263168.0);
  CHECK(read(gemma).at("sequence").text == "131072");
  CHECK(error_of(R"({"model_type": "llava", "text_config": {"model_type": "opt"}})").find("'opt' cannot be read") !=
        std::string::npos);
}

TEST_CASE("phi3: a window and untied embeddings, or none and tied ones") {
  const std::string phi =
      R"({"model_type": "phi3", "num_hidden_layers": 32, "hidden_size": 3072, "num_attention_heads": 32,
          "num_key_value_heads": 32, "intermediate_size": 8192, "vocab_size": 32064, "hidden_act": "silu",
          "sliding_window": 2047, "max_position_embeddings": 131072, "original_max_position_embeddings": 4096,
          "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";
  CHECK(built(phi).parameters() == 3821079552.0);
  CHECK(read(phi).at("window").text == "2047");
  CHECK(read(phi).at("sequence").text == "4096");
}

TEST_CASE("llama4_text: a shared expert, dense layers between, and attention inside of chunks") {
  const std::string scout =
      R"({"model_type": "llama4", "torch_dtype": "bfloat16", "text_config": {"model_type": "llama4_text",
          "num_hidden_layers": 48, "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 8,
          "head_dim": 128, "intermediate_size": 8192, "intermediate_size_mlp": 16384, "vocab_size": 202048,
          "num_local_experts": 16, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "use_qk_norm": false,
          "attention_chunk_size": 8192, "max_position_embeddings": 16384, "hidden_act": "silu"}})";
  CHECK(built(scout).parameters() == 107769861120.0);
  CHECK(read(scout).at("window").text == "4096");  // Half of a chunk.
  std::string maverick = scout;
  maverick.replace(maverick.find(R"("interleave_moe_layer_step": 1)"), 30, R"("interleave_moe_layer_step": 2)");
  maverick.replace(maverick.find(": 16384, \"hidden_act\""), 7, ": 8192");
  const ModelGraph model = built(maverick);
  int with_experts = 0;
  for (const Layer& layer : model.layers) with_experts += layer.type == "experts_layer";
  CHECK(with_experts == 24);
  CHECK_FALSE(read(maverick).has("window"));  // A sample is one chunk.
}

TEST_CASE("linear attention is refused with the nearest model that can be built") {
  const std::string next =
      R"({"model_type": "qwen3_next", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 16,
          "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "vocab_size": 151936,
          "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512, "full_attention_interval": 4,
          "linear_num_value_heads": 32, "max_position_embeddings": 262144})";
  const std::string error = error_of(next);
  CHECK(error.find("36 of 48 layers have linear attention") != std::string::npos);
  const std::size_t begin = error.find("{builder: transformer");
  REQUIRE(begin != std::string::npos);
  config::Problems problems;
  const std::string nearest = error.substr(begin, error.rfind('}') + 1 - begin);
  const ModelGraph model = test::model_of(config::parse_yaml(nearest, "nearest.yaml", problems));
  CHECK(model.parameters() > 7.5e10);
  CHECK(model.parameters() < 8.5e10);  // 80 billion are published.
}

TEST_CASE("a sample has what is asked for, or at most a limit") {
  const auto sequence_of = [](ConfigurationReading& reading) {
    config::Problems problems;
    const config::Value tree = config::parse_yaml(kLlama, "config.json", problems);
    return read_configuration(tree, problems, &reading).at("sequence").text;
  };
  ConfigurationReading asked{2048, 4096, {}, {}}, limited{0, 4096, {}, {}}, whole;
  CHECK(sequence_of(asked) == "2048");
  CHECK(asked.notes.empty());
  CHECK(sequence_of(limited) == "4096");
  REQUIRE(limited.notes.size() == 1);
  CHECK(limited.notes.front().find("8192") != std::string::npos);
  CHECK(sequence_of(whole) == "8192");
  CHECK(whole.notes.empty());
}

TEST_CASE("gpt2: the configuration of GPT-2 small makes its preset") {
  check_same(built(R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_inner": null,
                       "n_positions": 1024, "vocab_size": 50257, "activation_function": "gelu_new"})"),
             preset("gpt2-small"));
}

TEST_CASE("what cannot be read is refused with its place") {
  CHECK(error_of("[1, 2]").find("this is not the configuration of a model") != std::string::npos);
  CHECK(error_of("{}").find("has no word 'model_type'") != std::string::npos);
  CHECK(error_of(R"({"model_type": ["llama"]})").find("has no word 'model_type'") != std::string::npos);
  CHECK(error_of(R"({"model_type": "lama"})").find("did you mean 'llama'?") != std::string::npos);
  CHECK(error_of(R"({"model_type": "mamba"})").find("models of the type 'mamba' cannot be read") != std::string::npos);
  const std::string missing = error_of(R"({"model_type": "llama"})");
  for (const char* fact :
       {"num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size"})
    CHECK(missing.find("the configuration does not have '" + std::string(fact)) != std::string::npos);
  CHECK(error_of(with(kLlama, R"("attention_bias": "maybe")")).find("this must be true or false") != std::string::npos);
  std::string changed = kLlama;
  changed.replace(changed.find("\"silu\""), 6, "\"relu2\"");
  CHECK(error_of(changed).find("3: hidden_act: 'relu2' is not known here [known: silu]") != std::string::npos);
  changed = kLlama;
  changed.replace(changed.find("14336"), 5, "[1]");
  CHECK(error_of(changed).find("2: feed_forward: a list cannot stand here") != std::string::npos);
  changed = kLlama;
  changed.replace(changed.find("4096"), 4, "4095");
  CHECK(error_of(changed).find("32 heads do not divide a width of 4095") != std::string::npos);
  CHECK(error_of(with(kLlama, R"("layers": 1, "num_hidden_layers": 2)")).find("num_hidden_layers") !=
        std::string::npos);  // Twice the same fact.
}

}  // namespace stagecraft::configuration_test
