// The field `data.lengths` of a scenario: how long the sequences are.

#include "sim/experiment/sequence_lengths.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

using config::Value;

config::Field length_field(const char* name) { return config::integer(name, 1, kMaxSequence); }
config::Field seed_field() {
  return config::integer("seed", 0, 1e15).fallback("1").doc("Seed of the lengths; each iteration adds its number.");
}

const config::MapSpec equal_fields{.title = "Equal lengths.",
                                   .fields = {length_field("length").doc("Tokens of each sequence.")}};
const config::MapSpec uniform_fields{.title = "Uniform lengths.",
                                     .fields = {length_field("low").doc("Fewest tokens of a sequence."),
                                                length_field("high").doc("Most tokens of a sequence."), seed_field()}};
const config::MapSpec lognormal_fields{
    .title = "Lognormal lengths.",
    .fields = {length_field("low").doc("Shorter sequences get this length."),
               length_field("high").doc("Longer sequences get this length."),
               config::real("mean", 1, kMaxSequence).doc("Mean length before the limits."),
               config::real("sigma", 0, 10).doc("Standard deviation of the logarithm."), seed_field()}};
const config::MapSpec bucket_fields{
    .title = "Sequences whose lengths are uniform in a range.",
    .fields = {length_field("low").doc("Fewest tokens."), length_field("high").doc("Most tokens."),
               config::real("weight", 0, 1e15).doc("Count or share of such sequences.")}};
const config::MapSpec buckets_fields{
    .title = "Lengths by a histogram.",
    .fields = {config::list("buckets", config::map("bucket", bucket_fields)).positional().doc("The ranges."),
               seed_field()}};
const config::MapSpec listed_fields{
    .title = "Given lengths.",
    .fields = {config::list("lengths", length_field("length"))
                   .doc("Tokens of each sequence; after the last one they begin again.")}};
const config::MapSpec file_fields{.title = "Lengths in a file.",
                                  .fields = {config::text("file").doc("A file with one length on each line.")}};
const config::MapSpec named_fields{.title = "A published distribution.", .fields = {seed_field()}};

/// Published distributions of lengths.
struct NamedLengths {
  const char *name, *summary;
  LengthRule rule;
};
const std::vector<NamedLengths>& named_lengths() {
  using Kind = LengthRule::Kind;
  static const std::vector<NamedLengths> list{
      {"megatron-mock",
       "Megatron-LM's mock data of varying length: lognormal, 1024 to 8192, mean 4096, sigma 1.1",
       {.kind = Kind::Lognormal, .low = 1024, .high = 8192, .mean = 4096, .sigma = 1.1}},
      {"sentences",
       "sentence-transformers' test data: lognormal, 1 to 8192, mean 581, sigma 1.1",
       {.kind = Kind::Lognormal, .low = 1, .high = 8192, .mean = 581, .sigma = 1.1}},
      {"articles",
       "11,167 articles of gemma3-pt by a histogram, up to 32768 tokens, mean 3162",
       {.kind = Kind::Buckets,
        .buckets = {{36, 1024, 2523},
                    {1025, 2048, 1812},
                    {2049, 4096, 3387},
                    {4097, 8192, 2932},
                    {8193, 16384, 503},
                    {16385, 22043, 10}}}},
      {"long-align",
       "LongAlign-10k: 8192 to 65536 tokens, here uniform",
       {.kind = Kind::Uniform, .low = 8192, .high = 65536}},
  };
  return list;
}

std::vector<config::Variant> length_words() {
  std::vector<config::Variant> words{{"equal", "All the same", &equal_fields},
                                     {"uniform", "Each length in a range is as likely", &uniform_fields},
                                     {"lognormal", "A lognormal distribution, cut to a range", &lognormal_fields},
                                     {"buckets", "A histogram", &buckets_fields},
                                     {"list", "Given lengths, in this order", &listed_fields},
                                     {"file", "Lengths in a file, one on each line", &file_fields}};
  for (const NamedLengths& named : named_lengths()) words.push_back({named.name, named.summary, &named_fields});
  return words;
}

/// A range from its fewest to its most tokens.
void check_range(const Value& range) {
  const Value &low = range.at("low"), &high = range.at("high");
  if (config::as_int(low) > config::as_int(high))
    throw InputError({{low.where, "data.lengths.low", fmt::format("{} is above high, {}", low.text, high.text),
                       fmt::format("at most {}", high.text), "lengths"}});
}

/// Lengths are drawn from what `list` has.
void check_any(const Value& list, const char* key, bool has_any) {
  if (!has_any)
    throw InputError({{list.where, fmt::format("data.lengths.{}", key), "there is nothing to draw a length from",
                       key == std::string_view("lengths") ? "[2048, 4096], for example"
                                                          : "[{low: 1024, high: 4096, weight: 1}], for example",
                       "lengths"}});
}

}  // namespace

config::Field sequence_lengths_field() {
  return config::variant("lengths", "kind", length_words)
      .doc("Tokens of the sequences. Each iteration has as many as run.global_batch says, and draws its own.");
}

LengthRule length_rule(const Value& v) {
  LengthRule rule;
  const std::string& kind = v.at("kind").text;
  for (const NamedLengths& named : named_lengths())
    if (kind == named.name) rule = named.rule;
  if (const Value* seed = v.find("seed")) rule.seed = static_cast<std::uint64_t>(config::as_real(*seed));
  if (kind == "equal") rule.high = config::as_int(v.at("length"));
  if (kind == "uniform" || kind == "lognormal") {
    check_range(v);
    rule.low = config::as_int(v.at("low")), rule.high = config::as_int(v.at("high"));
  }
  if (kind == "uniform") rule.kind = LengthRule::Kind::Uniform;
  if (kind == "lognormal") {
    rule.kind = LengthRule::Kind::Lognormal;
    rule.mean = config::as_real(v.at("mean")), rule.sigma = config::as_real(v.at("sigma"));
  }
  if (kind == "buckets") {
    rule.kind = LengthRule::Kind::Buckets;
    double weight = 0;
    for (const Value& b : v.at("buckets").items) {
      check_range(b);
      rule.buckets.push_back(
          {config::as_int(b.at("low")), config::as_int(b.at("high")), config::as_real(b.at("weight"))});
      weight += rule.buckets.back().weight;
    }
    check_any(v.at("buckets"), "buckets", weight > 0);
  }
  if (kind == "list") {
    rule.kind = LengthRule::Kind::Listed;
    for (const Value& n : v.at("lengths").items) rule.listed.push_back(config::as_int(n));
    check_any(v.at("lengths"), "lengths", !rule.listed.empty());
  }
  return rule;
}

}  // namespace stagecraft
