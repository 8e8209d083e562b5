// Words of other programs lead to the fields here, also where the field belongs elsewhere.

#include <doctest/doctest.h>

#include "sim/config/synonyms.hpp"
#include "sim/core/diagnostic.hpp"
#include "toy.hpp"

namespace stagecraft::synonyms_test {
namespace {

std::string help_for(const std::string& text) {
  config::Problems problems;
  config::check(config::parse_yaml(text, "t.yaml", problems), toy::root, "", problems);
  REQUIRE(problems.list().size() == 1);
  return problems.list().front().help;
}

const std::string kCluster = "cluster: {links: {nv: {bandwidth: 25 GB/s}}}\n";

}  // namespace

TEST_CASE("a word of another program has a meaning in any spelling of it") {
  REQUIRE(config::meanings("num_hidden_layers").size() == 1);
  CHECK(config::meanings("num_hidden_layers").front().name == "layers");
  CHECK(config::meanings("--Tensor-Model-Parallel-Size").front().name == "tensor");
  CHECK(config::meanings("layers").empty());
  CHECK(config::meanings("").empty());
}

TEST_CASE("every word has one meaning, and no word is a name here") {
  for (const char* word : {"seq_len", "seq_length", "vocab_size", "n_layers", "num_layers", "num_hidden_layers",
                           "hidden_size", "ffn", "intermediate_size", "n_heads", "num_attention_heads", "kv_heads",
                           "bf16", "pipeline_parallel", "pp", "tp", "dp", "zero"}) {
    CAPTURE(word);
    CHECK_FALSE(config::meanings(word).empty());
    for (const config::Meaning& meaning : config::meanings(word)) CHECK(config::meanings(meaning.name).empty());
  }
}

TEST_CASE("a synonym is suggested, and the field that it means is not missing as well") {
  CHECK(help_for(kCluster + "run: {schedule: gpipe, gradient_accumulation_steps: 8}") ==
        "did you mean 'micro_batches'?");
  CHECK(help_for(kCluster + "run: {schedule: gpipe, micro_batches: 4, mbs: 2}") == "did you mean 'micro_batch_size'?");
}

TEST_CASE("a synonym of a field that belongs elsewhere names the field and the place") {
  CHECK(help_for(kCluster + "mbs: 2\nrun: {schedule: gpipe, micro_batches: 4}") ==
        "'mbs' is called 'micro_batch_size' here; 'micro_batch_size' belongs under run");
  CHECK(help_for(kCluster + "run: {schedule: {name: gpipe, vpp: 2}, micro_batches: 4}") ==
        "'vpp' is called 'chunks' here; 'chunks' is a field of interleaved, not of gpipe");
}

TEST_CASE("a word means a field in its place alone, where a field of another map has the same name") {
  const std::vector<std::string> model{"sequence", "tensor_parallel"}, group{"tensor", "sequence"};
  CHECK_FALSE(config::meant_field("sp", "model", model));
  CHECK(config::meant_field("sp", "plan.group", group) == "sequence");
  CHECK(config::meant_field("seq_len", "model", model) == "sequence");
}

TEST_CASE("a word for a value is no word for a field") {
  const std::vector<std::string> states{"none", "optimizer", "gradients", "weights"}, top{"plan", "weights"};
  CHECK(config::meant_value("ZeRO-3", states) == "weights");
  CHECK(config::meant_value("FULL_SHARD", states) == "weights");
  CHECK_FALSE(config::meant_field("fsdp", "", top));
}

}  // namespace stagecraft::synonyms_test
