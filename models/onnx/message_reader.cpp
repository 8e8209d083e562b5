#include "models/onnx/message_reader.hpp"

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::onnx {

bool MessageReader::next() {
  value_ = {};
  try {
    if (!reader_.next()) return false;
    value_ = reader_;
    reader_.skip();
    return true;
  } catch (const protozero::exception&) {
    fail_next();
  }
}

std::int64_t MessageReader::integer() const {
  if (!has(Kind::varint)) fail(fmt::format("field {} is no whole number", field()));
  return protozero::pbf_reader(value_).get_int64();
}

float MessageReader::float_value() const {
  if (!has(Kind::fixed32)) fail(fmt::format("field {} is no number of 32 bits", field()));
  return protozero::pbf_reader(value_).get_float();
}

std::string_view MessageReader::bytes() const {
  if (!has(Kind::length_delimited)) fail(fmt::format("field {} is neither text nor a message", field()));
  const protozero::data_view view = protozero::pbf_reader(value_).get_view();
  return {view.data(), view.size()};
}

void MessageReader::fail(const std::string& message) const { fail_at(reader_.data().data(), message); }

void MessageReader::fail_at(const char* where, const std::string& message) const {
  throw InputError(fmt::format("{}: byte {}: {}", *origin_->file, where - origin_->start, message),
                   "the file is cut off or damaged, or it is no ONNX file");
}

void MessageReader::fail_next() const {
  const char *const at = reader_.data().data(), *const end = at + reader_.length();
  try {
    throw;
  } catch (const protozero::varint_too_long_exception&) {
    fail_at(at + protozero::max_varint_length, "a number is longer than ten bytes");
  } catch (const protozero::invalid_tag_exception&) {
    fail(fmt::format("a field has the number {}", reader_.tag()));
  } catch (const protozero::unknown_pbf_wire_type_exception&) {
    fail(fmt::format("a field is of the kind {}, which no ONNX file has", static_cast<int>(reader_.wire_type())));
  } catch (const protozero::end_of_buffer_exception&) {
    std::uint64_t expected = has(Kind::fixed32) ? 4 : has(Kind::fixed64) ? 8 : 0;
    const char* length = value_.data().data();
    if (has(Kind::length_delimited) && length != at) expected = protozero::decode_varint(&length, end);
    if (expected == 0) fail_at(end, "the file ends inside a number");
    fail(fmt::format("{} bytes should follow, but {} are left", expected, end - at));
  }
}

void MessageReader::fail_packed() const {
  try {
    throw;
  } catch (const protozero::varint_too_long_exception&) {
    fail("a number is longer than ten bytes");
  } catch (const protozero::invalid_length_exception&) {
    fail(fmt::format("field {} has {} bytes, which its numbers do not fill", field(), bytes().size()));
  } catch (const protozero::end_of_buffer_exception&) {
    fail("the file ends inside a number");
  }
}

}  // namespace stagecraft::onnx
