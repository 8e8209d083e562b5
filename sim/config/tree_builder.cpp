// Builds a tree of values from the events of the YAML and the JSON parser, with limits on its size.

#include "sim/config/tree_builder.hpp"

#include <fmt/core.h>

#include "sim/config/source.hpp"
#include "sim/config/walk.hpp"

namespace stagecraft::config {
namespace {

constexpr std::size_t kDeepest = 100;
constexpr std::size_t kMostValues = 1'000'000;  // Half a gigabyte of them.

}  // namespace

std::string TreeBuilder::path() const {
  std::string path;
  for (const Frame& frame : frames_) {
    if (frame.value.is_list()) path += fmt::format("[{}]", frame.value.items.size());
    if (frame.has_key) path = under(path, frame.key);
  }
  return path;
}

void TreeBuilder::refuse(const Where& where, std::string message, std::string help) {
  problems_.add(where, path(), std::move(message), std::move(help), "not-supported");
}

void TreeBuilder::stop(const Where& where, std::string message, std::string help) {
  problems_.add(where, path(), std::move(message), std::move(help), "syntax");
  throw InputError("the text cannot be read on");
}

void TreeBuilder::open(Value::Kind kind, Where where) {
  if (frames_.size() >= kDeepest) {
    problems_.add(where, {}, fmt::format("lists and maps are nested deeper than {}", kDeepest), {}, "syntax");
    throw InputError("the text cannot be read on");
  }
  Frame frame;
  frame.value.kind = kind;
  frame.value.where = std::move(where);
  frames_.push_back(std::move(frame));
}

void TreeBuilder::close() {
  Value value = std::move(frames_.back().value);
  frames_.pop_back();
  put(std::move(value));
}

void TreeBuilder::put(Value value) {
  if (++values_ > kMostValues)
    stop(value.where, fmt::format("a file holds at most {} keys and values, and here is one more", kMostValues),
         "describe what repeats with a builder or a generator");
  if (frames_.empty()) {
    root_ = std::move(value);
    return;
  }
  Frame& frame = frames_.back();
  if (frame.value.is_list()) {
    frame.value.items.push_back(std::move(value));
  } else if (!frame.has_key) {
    put_key(frame, value);
  } else {
    if (!frame.drop) frame.value.members.push_back({frame.key, frame.key_where, std::move(value)});
    frame.has_key = false;
  }
}

void TreeBuilder::put_key(Frame& frame, const Value& key) {
  frame.has_key = true;
  frame.key = key.text;
  frame.key_where = key.where;
  frame.drop = true;
  if (key.unreadable) return;
  if (!key.is_scalar()) {
    problems_.add(key.where, path(), "a key has to be one word", {}, "syntax");
  } else if (key.text == "<<" && !key.quoted) {
    problems_.add(key.where, path(), "merging with '<<' is not allowed", "use base and override", "not-supported");
  } else if (const auto first = frame.keys.find(key.text); first != frame.keys.end()) {
    const bool same_line = first->second.line == key.where.line;
    problems_.add(key.where, path(), fmt::format("'{}' is written twice", key.text),
                  same_line ? fmt::format("it is already in column {}", first->second.column)
                            : fmt::format("it is already on line {}", first->second.line),
                  "duplicate-key");
  } else {
    frame.keys.emplace(key.text, key.where);
    frame.drop = false;
  }
}

Value unreadable_text(const std::string& file) {
  Value value;
  value.where = {file, 1, 1};
  value.unreadable = true;
  return value;
}

bool is_text(std::string_view text, const std::string& file, Problems& problems) {
  const std::size_t odd = first_odd_byte(text);
  if (odd == std::string_view::npos) return true;
  problems.add({file, 0, 0}, {}, fmt::format("this is not a text file: byte {} is not UTF-8 text", odd + 1),
               "save it as UTF-8", "not-text");
  return false;
}

}  // namespace stagecraft::config
