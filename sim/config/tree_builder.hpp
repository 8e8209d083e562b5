#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/value.hpp"

namespace stagecraft::config {

/// Builds a tree from the events of a parser. Refuses equal keys, nesting over 100 and more than a million values.
class TreeBuilder {
 public:
  explicit TreeBuilder(Problems& problems) : problems_(problems) {}

  void open(Value::Kind kind, Where where);
  void close();
  void put(Value value);  ///< The next item, key or value, whichever is due.

  Value take() { return std::move(root_); }
  bool empty() const { return root_.kind == Value::Kind::Null && !root_.unreadable; }

  std::string path() const;
  /// Start of the innermost map or list that is still open.
  Where innermost() const { return frames_.empty() ? Where{} : frames_.back().value.where; }
  bool in_map() const { return !frames_.empty() && frames_.back().value.is_map(); }
  /// The place of the key whose value is due, or null.
  const Where* open_key() const {
    return frames_.empty() || !frames_.back().has_key ? nullptr : &frames_.back().key_where;
  }
  bool at_top() const { return frames_.empty(); }

  void refuse(const Where& where, std::string message, std::string help);
  /// Reports a problem after which the text cannot be read on, and throws InputError.
  [[noreturn]] void stop(const Where& where, std::string message, std::string help);

 private:
  struct Frame {
    Value value;
    bool has_key = false;
    bool drop = false;  ///< The value of a key that was refused.
    std::string key;
    Where key_where;
    std::map<std::string, Where> keys;  ///< So that a map of many keys is read in reasonable time.
  };
  void put_key(Frame& frame, const Value& key);

  Problems& problems_;
  std::vector<Frame> frames_;
  Value root_;
  std::size_t values_ = 0;
};

/// What stands for a text that cannot be read.
Value unreadable_text(const std::string& file);
/// Whether the bytes are text; if not, a problem is added.
bool is_text(std::string_view text, const std::string& file, Problems&);

}  // namespace stagecraft::config
