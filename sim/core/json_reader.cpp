// Reads JSON by the parser of nlohmann, with the offset of each value and limits on depth and size.

#include "sim/core/json_reader.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace stagecraft {
namespace {

/// Values are nested and destroyed by recursion, so a file of brackets must not exhaust the stack.
constexpr std::size_t kMaxDepth = 512;
/// Each takes at most about 50 bytes, and up to 120 while a list of them grows.
constexpr std::size_t kMostValues = std::size_t{1} << 24;

/// An iterator over bytes that leaves the position of the parser in `*position`, because events have none.
class PositionIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  PositionIterator(const char* at, const char** position) : at_(at), position_(position) {}
  reference operator*() const { return *at_; }
  PositionIterator& operator++() {
    *position_ = ++at_;
    return *this;
  }
  PositionIterator operator++(int) {
    const PositionIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const PositionIterator& other) const { return at_ == other.at_; }
  bool operator!=(const PositionIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** position_;
};

/// The interface that nlohmann's parser calls. What it calls has been read up to `position`, or one byte further after
/// a number; that byte is a separator or a bracket.
class Adapter {
 public:
  Adapter(std::string_view text, JsonHandler& handler)
      : text_(text), handler_(handler), position_(text.data()), next_(text.starts_with("\xEF\xBB\xBF") ? 3 : 0) {}

  const char** position() { return &position_; }

  bool null() { return scalar({}); }
  bool boolean(bool value) { return scalar(value); }
  bool number_integer(std::int64_t value) { return scalar(value); }
  bool number_unsigned(std::uint64_t value) { return scalar(value); }
  bool number_float(double value, const std::string&) { return scalar(value); }
  bool string(std::string& value) { return scalar(std::move(value)); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    handler_.key(std::move(name), begin());
    return passed();
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    constexpr int kOutOfRange = 406;
    const char* what = error.id == kOutOfRange   ? "this number is too large"
                       : position > text_.size() ? "the text is cut off"
                                                 : "this is not JSON";
    throw JsonSyntaxError(what, std::min(position == 0 ? 0 : position - 1, text_.size()));
  }

 private:
  std::size_t begin() const { return std::min(text_.find_first_not_of(" \t\r\n,:", next_), text_.size()); }
  bool scalar(Json value) {
    handler_.scalar(std::move(value), begin());
    return passed();
  }
  bool open(bool is_object) {
    const std::size_t here = begin();
    if (depth_++ == kMaxDepth) throw JsonSyntaxError(fmt::format("values are nested deeper than {}", kMaxDepth), here);
    handler_.open(is_object, here);
    return passed();
  }
  bool close() {
    --depth_;
    handler_.close();
    return passed();
  }
  bool passed() {
    next_ = position_ - text_.data();
    return true;
  }

  std::string_view text_;
  JsonHandler& handler_;
  const char* position_;
  std::size_t next_;  ///< The next value begins after the space and the separators that stand here.
  std::size_t depth_ = 0;
};

/// An object with equal keys keeps the place of the first and the value of the last, as in JavaScript. Sorting finds
/// them, because a comparison with every key before would be quadratic.
void merge_equal_keys(JsonObject& members) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return members[a].key < members[b].key; });
  std::vector<bool> replaced(members.size());
  bool any = false;
  for (std::size_t i = 0, first = 0; i < order.size(); ++i) {
    if (members[order[i]].key != members[order[first]].key) first = i;
    if (i == first) continue;
    members[order[first]].value = std::move(members[order[i]].value);
    replaced[order[i]] = any = true;
  }
  if (any) std::erase_if(members, [&](const JsonMember& m) { return replaced[&m - members.data()]; });
}

/// Most objects have a few keys, which are compared faster than they are sorted.
bool has_equal_keys(const JsonObject& members) {
  constexpr std::size_t kFew = 8;
  if (members.size() > kFew) return true;
  for (std::size_t i = 1; i < members.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (members[i].key == members[k].key) return true;
  return false;
}

}  // namespace

std::string with_line(const JsonSyntaxError& error, std::string_view text) {
  const std::string_view before = text.substr(0, error.offset);
  return fmt::format("line {}: {}", 1 + std::count(before.begin(), before.end(), '\n'), error.what());
}

void read_json(std::string_view text, JsonHandler& handler) {
  Adapter adapter(text, handler);
  const PositionIterator begin(text.data(), adapter.position()), end(text.data() + text.size(), adapter.position());
  nlohmann::json::sax_parse(begin, end, &adapter);
}

Json parse_json(std::string_view text) {
  JsonBuilder builder;
  read_json(text, builder);
  return builder.take();
}

void JsonBuilder::count(std::size_t begin) {
  if (++values_ > kMostValues)
    throw JsonSyntaxError(fmt::format("the text has more than {} keys and values", kMostValues), begin);
}

void JsonBuilder::put(Json value) {
  if (open_.empty()) {
    root_ = std::move(value);
    complete_ = true;
  } else if (open_.back().is_object) {
    open_.back().members.back().value = std::move(value);
  } else {
    open_.back().items.push_back(std::move(value));
  }
}

void JsonBuilder::scalar(Json value, std::size_t begin) {
  count(begin);
  put(std::move(value));
}

void JsonBuilder::key(std::string name, std::size_t begin) {
  count(begin);
  open_.back().members.push_back({std::move(name), {}});
}

void JsonBuilder::open(bool is_object, std::size_t begin) {
  count(begin);
  open_.push_back({is_object, {}, {}});
}

void JsonBuilder::close() {
  OpenValue last = std::move(open_.back());
  open_.pop_back();
  if (has_equal_keys(last.members)) merge_equal_keys(last.members);
  put(last.is_object ? Json(std::move(last.members)) : Json(std::move(last.items)));
}

Json JsonBuilder::take() {
  complete_ = false;
  values_ = 0;
  return std::exchange(root_, Json());
}

}  // namespace stagecraft
