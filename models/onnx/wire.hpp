#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft::onnx {

/// Where a file begins, so that a problem can be told with its byte. Outlives what is read from it.
struct Origin {
  const std::string* file;
  const char* start;
};

/// One message of protobuf's wire format (protobuf.dev, "Encoding"), field by field; nothing is copied. Whatever the
/// bytes are, every read stays inside them or throws InputError.
class Wire {
 public:
  Wire(std::string_view message, const Origin& origin) : rest_(message), origin_(&origin) {}

  bool next();  ///< To the next field; false behind the last.
  std::uint64_t field() const { return field_; }

  std::int64_t integer() const;
  float real() const;              ///< Of 32 bits.
  std::string_view bytes() const;  ///< A text, a message, or packed numbers.
  Wire message() const { return {bytes(), *origin_}; }

  /// Each number of a repeated field, packed or one by one.
  template <class Take>
  void integers(Take take) const {
    if (kind_ == Kind::Varint) return take(integer());
    for (Wire numbers = message(); !numbers.rest_.empty();) take(static_cast<std::int64_t>(numbers.varint()));
  }
  template <class Take>
  void reals(Take take) const {
    if (kind_ == Kind::Fixed32) return take(real());
    for (Wire numbers = message(); !numbers.rest_.empty();) take(float_of(numbers.take(4)));
  }
  template <class Take>
  void doubles(Take take) const {
    if (kind_ == Kind::Fixed64) return take(double_of(bytes_));
    for (Wire numbers = message(); !numbers.rest_.empty();) take(double_of(numbers.take(8)));
  }

  [[noreturn]] void fail(const std::string& message) const;

 private:
  enum class Kind : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

  std::uint64_t varint();
  std::string_view take(std::uint64_t size);
  static float float_of(std::string_view four);
  static double double_of(std::string_view eight);

  std::string_view rest_, bytes_;
  const Origin* origin_;
  Kind kind_ = Kind::Varint;
  std::uint64_t field_ = 0, number_ = 0;
};

}  // namespace stagecraft::onnx
