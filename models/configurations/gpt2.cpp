#include "models/configuration_reader.hpp"

namespace stagecraft::model_configurations {
namespace {

void read_gpt2(ConfigurationReader& r) {
  r.copy_required("n_layer", "layers");
  r.copy_required("n_embd", "hidden");
  r.copy_required("n_head", "heads");
  r.copy_optional("n_inner", "feed_forward");
  r.copy_required("n_positions", "sequence");
  r.copy_required("vocab_size", "vocabulary");
  r.expect_word("activation_function", {"gelu_new", "gelu", "gelu_pytorch_tanh"});
  r.set("tied", r.flag("tie_word_embeddings", true) ? "true" : "false");
  r.read_precision();
}

}  // namespace

extern const ConfigurationFamily gpt2{
    .name = "gpt2",
    .summary = "GPT-2: learned positions, layer norm, GELU",
    .source = "Radford et al., 2019; GPT2Config of transformers",
    .read = read_gpt2,
};

}  // namespace stagecraft::model_configurations
