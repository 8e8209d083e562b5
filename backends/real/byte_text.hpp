#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

/// Writes values one after another into a string, as they lie in memory.
class ByteWriter {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    put(values.size());
    text_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Takes out what a ByteWriter put in, in the same order.
class ByteReader {
 public:
  explicit ByteReader(std::string_view text) : rest_(text) {}

  template <class T>
  T get() {
    T value;
    std::memcpy(&value, cut(sizeof value), sizeof value);
    return value;
  }
  template <class T>
  std::vector<T> get_list() {
    const auto count = get<std::size_t>();
    STAGECRAFT_CHECK(count <= rest_.size() / sizeof(T));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), cut(count * sizeof(T)), count * sizeof(T));
    return values;
  }
  std::string_view rest() const { return rest_; }

 private:
  const char* cut(std::size_t length) {
    STAGECRAFT_CHECK(length <= rest_.size());
    const char* const at = rest_.data();
    rest_.remove_prefix(length);
    return at;
  }

  std::string_view rest_;
};

}  // namespace stagecraft::real
