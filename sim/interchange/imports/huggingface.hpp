#pragma once

#include <string>
#include <vector>

namespace stagecraft {

struct HuggingFaceModel {
  std::string yaml;                ///< A model file.
  std::vector<std::string> notes;  ///< Which facts of the configuration were taken, and which were not.
};

/// Reads a config.json of Hugging Face's transformers. `sequence`: tokens of a sample; 0: the most that the model
/// takes, but at most 4,096. InputError where its model cannot be built.
HuggingFaceModel read_huggingface(const std::string& text, const std::string& file, int sequence = 0,
                                  bool details = true);

}  // namespace stagecraft
