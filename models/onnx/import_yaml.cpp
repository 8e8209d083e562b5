#include "models/listed_yaml.hpp"
#include "models/onnx/import.hpp"
#include "models/onnx/readable.hpp"

namespace stagecraft::onnx {

std::string to_yaml(const Imported& imported) {
  std::vector<std::string> comments{
      "Amounts are for one sample; a multiplication with an addition is two operations. Weights are floats with a",
      "dimension and more than one number; running statistics of norms are none. Dropout counts nothing."};
  for (const std::string& assumption : imported.assumptions) comments.push_back("Taken: " + readable(assumption) + ".");
  for (const std::string& warning : imported.warnings) comments.push_back("Warning: " + readable(warning) + ".");
  return listed_model_yaml(imported.model, readable(imported.model.name) + ", from ONNX", comments, imported.notes);
}

}  // namespace stagecraft::onnx
