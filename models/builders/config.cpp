// The builder `config`, which has fields but builds nothing: when a scenario is read, the builder and the fields that a
// config.json of Hugging Face leads to take its place, so that a resolved scenario stands alone.

#include "sim/core/diagnostic.hpp"
#include "sim/model/builder.hpp"

namespace stagecraft::model_builders {
namespace {

using namespace config;

const MapSpec kConfigFields{
    "The model that a config.json of Hugging Face describes: Llama, Mistral, Mixtral, Qwen, DeepSeek, Kimi, GPT, "
    "Gemma, Phi.",
    {text("config").doc("Path of the config.json, from the folder of the file that names it."),
     integer("sequence", 1, 1e8)
         .optional()
         .doc("Tokens of one sample; left out: the length that the configuration was trained with first."),
     boolean("flash_attention")
         .optional()
         .doc("Whether backward recomputes the probabilities; left out: as the software stack does, and yes without "
              "one."),
     choice("precision", std::vector<std::string>{"fp32", "fp64", "mixed"})
         .optional()
         .doc("As of the builder transformer; left out: mixed, or fp32 if the weights are.")}};

ModelGraph build_config(const Value&) { throw InternalError("a configuration was built before it was read"); }

}  // namespace

extern const ModelBuilder config{
    .name = "config",
    .summary = "What a config.json of Hugging Face describes.",
    .source = "Wolf et al., Transformers, EMNLP 2020",
    .fields = &kConfigFields,
    .build = build_config,
};

}  // namespace stagecraft::model_builders
