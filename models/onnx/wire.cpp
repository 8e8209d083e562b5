#include "models/onnx/wire.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::onnx {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

bool Wire::next() {
  if (rest_.empty()) return false;
  const std::uint64_t key = varint();
  field_ = key >> 3;
  kind_ = static_cast<Kind>(key & 7);
  if (field_ == 0) fail("a field has the number 0");
  switch (kind_) {
    case Kind::Varint:
      number_ = varint();
      return true;
    case Kind::Fixed64:
      bytes_ = take(8);
      return true;
    case Kind::Fixed32:
      bytes_ = take(4);
      return true;
    case Kind::Bytes:
      bytes_ = take(varint());
      return true;
  }
  fail(fmt::format("a field is of the kind {}, which no ONNX file has", key & 7));
}

std::int64_t Wire::integer() const {
  if (kind_ != Kind::Varint) fail(fmt::format("field {} is no whole number", field_));
  return static_cast<std::int64_t>(number_);
}

float Wire::real() const {
  if (kind_ != Kind::Fixed32) fail(fmt::format("field {} is no number of 32 bits", field_));
  return float_of(bytes_);
}

std::string_view Wire::bytes() const {
  if (kind_ != Kind::Bytes) fail(fmt::format("field {} is neither text nor a message", field_));
  return bytes_;
}

void Wire::fail(const std::string& message) const {
  throw InputError(fmt::format("{}: byte {}: {}", *origin_->file, rest_.data() - origin_->start, message),
                   "the file is cut off or damaged, or it is no ONNX file");
}

std::uint64_t Wire::varint() {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) fail("the file ends inside a number");
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return number;
  }
  fail("a number is longer than ten bytes");
}

std::string_view Wire::take(std::uint64_t size) {
  if (size > rest_.size()) fail(fmt::format("{} bytes should follow, but {} are left", size, rest_.size()));
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

float Wire::float_of(std::string_view four) {
  float number = 0;
  std::memcpy(&number, four.data(), sizeof number);
  return number;
}

double Wire::double_of(std::string_view eight) {
  double number = 0;
  std::memcpy(&number, eight.data(), sizeof number);
  return number;
}

}  // namespace stagecraft::onnx
