// Reads JSON text into a tree with places, as yaml.cpp reads YAML, for files that other programs write.

#include <utility>

#include "sim/config/source.hpp"
#include "sim/config/tree_builder.hpp"
#include "sim/core/json_reader.hpp"

namespace stagecraft::config {
namespace {

class JsonEvents : public JsonHandler {
 public:
  JsonEvents(std::string_view text, const SourceText& source, TreeBuilder& tree)
      : text_(text), source_(source), tree_(tree) {}

  void scalar(Json json, std::size_t begin) override {
    Value value;
    if (!json.is_null()) {
      value = Value::scalar(json.is_string() ? json.text() : std::string(word_at(begin)), {});
      value.quoted = json.is_string();
    }
    value.where = source_.where(begin);
    tree_.put(std::move(value));
  }
  void key(std::string name, std::size_t begin) override {
    Value value = Value::scalar(std::move(name), source_.where(begin));
    value.quoted = true;
    tree_.put(std::move(value));
  }
  void open(bool is_object, std::size_t begin) override {
    tree_.open(is_object ? Value::Kind::Map : Value::Kind::List, source_.where(begin));
  }
  void close() override { tree_.close(); }

 private:
  /// A number, true or false as it is written, so that messages repeat its digits.
  std::string_view word_at(std::size_t begin) const {
    const std::size_t end = text_.find_first_of(" \t\r\n,]}", begin);
    return text_.substr(begin, end == std::string_view::npos ? end : end - begin);
  }

  std::string_view text_;
  const SourceText& source_;
  TreeBuilder& tree_;
};

}  // namespace

Value parse_json(std::string_view text, const std::string& file, Problems& problems) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (!is_text(text, file, problems)) return unreadable_text(file);
  const SourceText source(text, file);
  TreeBuilder tree(problems);
  JsonEvents events(text, source, tree);
  try {
    read_json(text, events);
  } catch (const JsonSyntaxError& error) {
    problems.add(source.where(error.offset), tree.path(), error.what(), "give the file as its program writes it",
                 "syntax");
    return unreadable_text(file);
  } catch (const InputError&) {
    return unreadable_text(file);
  }
  return tree.take();
}

}  // namespace stagecraft::config
