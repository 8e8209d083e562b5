#include "models/onnx/readable.hpp"

namespace stagecraft::onnx {
namespace {

constexpr std::size_t kLongest = 200;

}  // namespace

std::string readable(const std::string& text) {
  std::string clean = text.substr(0, kLongest);
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '_';
  return clean;
}

}  // namespace stagecraft::onnx
