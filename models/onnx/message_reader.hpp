#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <protozero/pbf_reader.hpp>

namespace stagecraft::onnx {

/// The file that is read: an error names it and the byte at which reading failed. It outlives its readers.
struct Origin {
  const std::string* file;
  const char* start;
};

/// One message of a protobuf file, field by field, as views into the file. protozero decodes it; this class checks the
/// kind of each value, which protozero only asserts, and turns every failure into an InputError.
class MessageReader {
 public:
  MessageReader(std::string_view message, const Origin& origin)
      : reader_(message.data(), message.size()), origin_(&origin) {}

  bool next();  ///< Goes to the next field; false after the last one.
  std::uint32_t field() const { return value_.tag(); }

  std::int64_t integer() const;
  float float_value() const;
  std::string_view bytes() const;  ///< A string, a message, or packed numbers.
  MessageReader message() const { return {bytes(), *origin_}; }

  /// Calls `take` for each number of a repeated field, packed or not.
  template <class Take>
  void integers(Take take) const {
    if (has(Kind::varint)) return take(integer());
    packed<&protozero::pbf_reader::get_packed_int64>(take);
  }
  template <class Take>
  void floats(Take take) const {
    if (has(Kind::fixed32)) return take(float_value());
    packed<&protozero::pbf_reader::get_packed_float>(take);
  }
  template <class Take>
  void doubles(Take take) const {
    if (has(Kind::fixed64)) return take(protozero::pbf_reader(value_).get_double());
    packed<&protozero::pbf_reader::get_packed_double>(take);
  }

  /// Throws InputError with the file and the byte after the current field.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  using Kind = protozero::pbf_wire_type;

  bool has(Kind kind) const { return value_.has_wire_type(kind); }

  template <auto get, class Take>
  void packed(Take take) const {
    bytes();  // Checks the kind.
    protozero::pbf_reader value = value_;
    try {
      for (const auto number : (value.*get)()) take(number);
    } catch (const protozero::exception&) {
      fail_packed();
    }
  }
  // These two explain the exception of protozero that is being handled.
  [[noreturn]] void fail_next() const;
  [[noreturn]] void fail_packed() const;
  [[noreturn]] void fail_at(const char* where, const std::string& message) const;

  protozero::pbf_reader reader_;  ///< After the current field.
  protozero::pbf_reader value_;   ///< At its value; copies of this read it.
  const Origin* origin_;
};

}  // namespace stagecraft::onnx
