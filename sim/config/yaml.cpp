// Reads YAML into a tree with places, and says in plain words what is wrong with its syntax. It builds the tree from
// yaml-cpp's events, because its node interface takes duplicate keys, hides aliases and loses the places of empty
// values.

#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "sim/config/source.hpp"
#include "sim/config/tree_builder.hpp"
#include "sim/core/file.hpp"

namespace stagecraft::config {
namespace {

constexpr const char* kReuse = "use base and override";
constexpr std::size_t kMostKnownFiles = 64, kLargestKnownFile = 1 << 16;  // Limits of the cache.

bool is_utf8(std::string_view text) {
  for (std::size_t odd = 0; (odd = first_odd_byte(text)) != std::string_view::npos; text.remove_prefix(odd + 1))
    if (static_cast<unsigned char>(text[odd]) >= 0x80) return false;
  return true;
}

class YamlEvents : public YAML::EventHandler {
 public:
  YamlEvents(const SourceText& source, TreeBuilder& tree) : source_(source), tree_(tree) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    const std::size_t offset = offset_of(mark);
    const bool marked = source_.from(offset).starts_with("---");
    tree_.stop(source_.where(offset), "a second document starts here; a file holds one",
               marked ? "write it to a file of its own" : "is this line indented like the lines above?");
  }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    refuse(mark, fmt::format("anchors such as '&{}' are not allowed", name));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    const std::string_view rest = source_.from(offset_of(mark));
    refuse(mark, fmt::format("aliases such as '{}' are not allowed", rest.substr(0, rest.find_first_of(" ,]}\r\n"))));
    tree_.put(unreadable(source_.where(offset_of(mark))));
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    Value value;
    value.where = place_of_null(offset_of(mark));
    tree_.put(std::move(value));
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string& text) override {
    const std::size_t offset = start_node(mark);
    const char first = source_.at(offset);
    if ((first == '"' || first == '\'') && !source_.quote_is_closed(offset)) {
      tree_.stop(source_.where(offset), "this quote is never closed", fmt::format("end the text with {}", first));
    }
    if (!is_utf8(text))  // yaml-cpp makes one byte of each.
      tree_.stop(source_.where(offset), "the escapes \\_ and \\N are not read here", "write \\u00a0 or \\u0085");
    Value value = Value::scalar(text, source_.where(offset));
    value.quoted = first == '"' || first == '\'' || first == '|' || first == '>';
    tree_.put(std::move(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, Value::Kind::List);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    open(mark, Value::Kind::Map);
  }
  void OnSequenceEnd() override { tree_.close(); }
  void OnMapEnd() override { tree_.close(); }

 private:
  static Value unreadable(Where where) {
    Value value;
    value.where = std::move(where);
    value.unreadable = true;
    return value;
  }

  std::size_t offset_of(const YAML::Mark& mark) const { return source_.offset(mark.line, mark.column); }

  void refuse(const YAML::Mark& mark, std::string message) {
    tree_.refuse(source_.where(offset_of(mark)), std::move(message), kReuse);
  }

  std::size_t start_node(const YAML::Mark& mark) {
    const std::size_t offset = offset_of(mark);
    if (const std::size_t tab = source_.tab_before(offset); tab != std::string_view::npos) {
      tree_.stop(source_.where(tab), "a tab cannot indent a line", "indent with spaces");
    }
    if (source_.at(offset) == '!') {
      const std::string_view rest = source_.from(offset);
      refuse(mark, fmt::format("tags such as '{}' are not allowed", rest.substr(0, rest.find_first_of(" ,]}\r\n"))));
    }
    return offset;
  }

  void open(const YAML::Mark& mark, Value::Kind kind) { tree_.open(kind, source_.where(start_node(mark))); }

  // yaml-cpp puts "key:" without a value on the next line; people look for it at the key or the dash.
  Where place_of_null(std::size_t offset) const {
    const char first = source_.at(offset);
    const bool written = first == '~' || source_.from(offset).starts_with("null") ||
                         source_.from(offset).starts_with("Null") || source_.from(offset).starts_with("NULL");
    const Where here = source_.where(offset);
    if (tree_.at_top()) return here;
    if (const Where* key = tree_.open_key()) return written && here.line == key->line ? here : *key;
    if (written || offset == 0 || tree_.in_map()) return here;
    std::size_t dash = offset - 1;
    while (dash > 0 && std::string_view("-[,").find(source_.at(dash)) == std::string_view::npos) --dash;
    return source_.where(dash);
  }

  const SourceText& source_;
  TreeBuilder& tree_;
  int documents_ = 0;
};

struct Wording {
  std::string_view yaml_cpp, ours, help;
};

constexpr Wording kWordings[] = {
    {"illegal map value", "a ':' is not expected here",
     "check how this line and the one above are indented, or put a text that holds ': ' in quotes"},
    {"end of map not found", "this does not fit into the map around it", "keys of one map start in the same column"},
    {"end of sequence not found", "this does not fit into the list around it",
     "the dashes of one list are in one column"},
    {"illegal block entry", "a '-' of a list is not expected here", "write each item of a list on a line of its own"},
    {"illegal flow end", "this bracket closes nothing", ""},
    {"illegal map key", "a key is not expected here", ""},
    {"unknown token", "a value cannot start with this character", "put the text in quotes"},
    {"unknown escape character", "this is no escape in double quotes",
     "write \\\\ for a backslash, or use single quotes"},
    {"illegal tab", "a tab cannot indent a line", "indent with spaces"},
    {"the referenced anchor", "aliases are not allowed", kReuse},
    {"alias not found after *", "a '*' cannot stand alone here", "put it in quotes: '*'"},
};

void report_syntax(const YAML::Exception& error, const SourceText& source, TreeBuilder& tree) {
  const std::string_view message = error.msg;
  const std::size_t past = message.starts_with("alias not found") ? 1 : 0;  // The mark is after the star.
  const std::size_t offset = source.offset(error.mark.line, error.mark.column) - past;
  if (message == "end of map flow not found" || message == "end of sequence flow not found") {
    const bool map = message == "end of map flow not found";
    tree.stop(tree.innermost(), fmt::format("this '{}' is not closed by '{}'", map ? '{' : '[', map ? '}' : ']'),
              fmt::format("the text goes wrong at line {}", source.where(offset).line));
  }
  if (const std::size_t tab = source.tab_before(source.first_word(offset)); tab != std::string_view::npos) {
    tree.stop(source.where(tab), "a tab cannot indent a line", "indent with spaces");
  }
  for (const Wording& wording : kWordings) {
    if (message.starts_with(wording.yaml_cpp)) {
      tree.stop(source.where(offset), std::string(wording.ours), std::string(wording.help));
    }
  }
  tree.stop(source.where(offset), fmt::format("this is not YAML: {}", message), {});
}

}  // namespace

Value parse_yaml(std::string_view text, const std::string& file, Problems& problems) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (!is_text(text, file, problems)) return unreadable_text(file);
  const SourceText source(text, file);
  TreeBuilder tree(problems);
  YamlEvents events(source, tree);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    try {
      while (parser.HandleNextDocument(events)) continue;
    } catch (const YAML::Exception& error) {
      report_syntax(error, source, tree);
    }
  } catch (const InputError&) {
    return unreadable_text(file);
  }
  if (!tree.empty()) return tree.take();
  const bool is_option = file.starts_with('<');
  problems.add({file, 1, 1}, {}, is_option ? "a value is missing" : "the file is empty",
               is_option ? "" : "its first line says its kind, such as schema: scenario/2", "empty");
  return unreadable_text(file);
}

Value parse_yaml_file(const std::string& file, Problems& problems) {
  // The runs of a search or a sweep name the same files, and copying a tree is quicker than parsing its text.
  static std::mutex mutex;
  // The cache has the text of each file, and the tree of this text.
  static std::map<std::string, std::pair<std::string, Value>> read_trees;
  try {
    const std::string text = read_file(file);
    {
      const std::lock_guard lock(mutex);
      if (const auto it = read_trees.find(file); it != read_trees.end() && it->second.first == text)
        return it->second.second;
    }
    const std::size_t problems_before = problems.list().size();
    Value tree = parse_yaml(text, file, problems);
    if (problems.list().size() > problems_before || text.size() > kLargestKnownFile) return tree;
    const std::lock_guard lock(mutex);
    if (read_trees.size() >= kMostKnownFiles) read_trees.clear();
    read_trees[file] = {text, tree};
    return tree;
  } catch (const InputError& error) {
    for (const Diagnostic& problem : error.problems())
      problems.add({file, 0, 0}, {}, problem.message, problem.help, "unreadable-file");
    return unreadable_text(file);
  }
}

}  // namespace stagecraft::config
