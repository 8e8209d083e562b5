// GNMT: an encoder and a decoder of LSTM layers, with attention from the first decoder layer to the encoder's output,
// which every further decoder layer reads. The first encoder layer reads both ways; sums around a layer start with the
// third. Amounts for T tokens, inputs i and width h:
// clang-format off
//   LSTM        parameters 4h(i + h) + 8h     flops T(8h(i + h) + 30h)    kept T(i + 6h): input, four gates, cell, outcome
//   attention   parameters 2h^2 + 2h + 1      flops 4Th^2 + 5T^2 h        kept 3Th + T^2 (Bahdanau et al., ICLR 2015)
// clang-format on

#include <fmt/core.h>

#include "models/graph_writer.hpp"

namespace stagecraft::model_builders {
namespace {

const config::MapSpec kLstmFields{
    "An encoder and a decoder of LSTM layers with attention between them.",
    {config::integer("layers", 2, 1e4).doc("LSTM layers of the encoder, and of the decoder."),
     config::integer("hidden", 1, 1e6).doc("Width of the model."),
     config::integer("vocabulary", 1, 1e8).doc("Size of the vocabulary, which both languages share."),
     config::integer("sequence", 1, 1e7).doc("Tokens of one sentence, in each language."), precision_field()}};

class LstmGraphWriter {
 public:
  explicit LstmGraphWriter(const config::Value& map)
      : layers_(config::as_int(map.at("layers"))),
        h_(config::as_real(map.at("hidden"))),
        words_(config::as_real(map.at("vocabulary"))),
        tokens_(config::as_real(map.at("sequence"))),
        writer_("gnmt", map) {}

  ModelGraph build() {
    const LayerId from = writer_.add("src", "input", {}, source(tokens_)),
                  to = writer_.add("tgt", "input", {}, source(tokens_));
    const LayerId read = encoder(embedding("src_embed", from, words_ * h_));
    const LayerId written = decoder(embedding("tgt_embed", to, 0), read);
    const LayerId scores = writer_.add("classifier", "dense", {written}, dense(tokens_, h_, words_));
    writer_.add("loss", "softmax_xent", {scores}, cross_entropy(tokens_, words_));
    return writer_.finish();
  }

 private:
  LayerId embedding(const char* name, LayerId from, double parameters) {
    const double numbers = tokens_ * h_;
    return writer_.add(name, "embedding", {from}, {parameters, 0, 0, numbers, numbers, tokens_, "emb"});
  }

  LayerAmounts amounts(double inputs) const {
    return weighted(4 * h_ * (inputs + h_) + 8 * h_, tokens_ * (8 * h_ * (inputs + h_) + 30 * h_), tokens_ * h_,
                    tokens_ * (inputs + 6 * h_));
  }

  /// Adds the residual connection around a layer.
  LayerId residual(const std::string& name, LayerId layer, LayerId past) {
    const double numbers = tokens_ * h_;
    return writer_.add(name + ".res", "add", {layer, past}, {.forward = numbers, .output = numbers});
  }

  LayerId encoder(LayerId last) {
    LayerAmounts both = amounts(h_);
    both = weighted(2 * both.parameters, 2 * both.forward, 2 * both.output, 2 * both.stash - tokens_ * h_);
    last = writer_.add("enc0_bi", "bilstm", {last}, both);
    last = writer_.add("enc1", "lstm", {last}, amounts(2 * h_));
    for (int l = 2; l < layers_; ++l) {
      const std::string name = fmt::format("enc{}", l);
      last = residual(name, writer_.add(name, "lstm", {last}, amounts(h_)), last);
    }
    return last;
  }

  LayerId decoder(LayerId last, LayerId read) {
    last = writer_.add("dec0", "lstm", {last}, amounts(h_));
    const double t = tokens_;
    const LayerId context =
        writer_.add("attention", "bahdanau", {last, read},
                    weighted(2 * h_ * h_ + 2 * h_ + 1, 4 * t * h_ * h_ + 5 * t * t * h_, t * h_, 3 * t * h_ + t * t));
    for (int l = 1; l < layers_; ++l) {
      const std::string name = fmt::format("dec{}", l);
      const LayerId layer = writer_.add(name, "lstm", {last, context}, amounts(2 * h_));
      last = l < 2 ? layer : residual(name, layer, last);
    }
    return last;
  }

  int layers_;
  double h_, words_, tokens_;
  GraphWriter writer_;
};

ModelGraph build_lstm(const config::Value& map) { return LstmGraphWriter(map).build(); }

}  // namespace

extern const ModelBuilder lstm{
    .name = "lstm",
    .summary = "An encoder and a decoder of LSTM layers with attention: GNMT.",
    .source = "Wu et al., Google's Neural Machine Translation System, 2016",
    .fields = &kLstmFields,
    .build = build_lstm,
};

}  // namespace stagecraft::model_builders
