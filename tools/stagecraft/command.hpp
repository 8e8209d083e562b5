#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/catalog.hpp"
#include "sim/core/json.hpp"
#include "sim/core/output.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// One argument of a command. `flags` is "FILE" for a positional one, "-p,--ranks" for an option.
struct Argument {
  enum class Kind { Text, Number, Count, Flag, List };
  std::string flags;
  Kind kind = Kind::Text;
  std::string doc;
  std::string fallback = {};
  bool required = false;
  std::string only = {};  ///< The kind that it is for, where there are several: a heading of its own in `--help`.
};

/// What the user wrote, by the last of an argument's flags without dashes: "ranks", "FILE".
class Arguments {
 public:
  std::map<std::string, std::vector<std::string>> values;

  bool has(const std::string& name) const;
  bool flag(const std::string& name) const { return has(name); }
  std::string text(const std::string& name) const;  ///< Empty when not given and without a fallback.
  double number(const std::string& name) const;     ///< Finite and not negative; InputError otherwise.
  int count(const std::string& name, int low, int high) const;
  std::vector<std::string> list(const std::string& name) const;
};

/// One command: one file in tools/stagecraft/commands/.
struct Command {
  std::string_view name, summary, group;  ///< `group` is its heading in `--help`.
  std::string_view example;               ///< A line that can be pasted.
  std::vector<Argument> arguments;
  int (*run)(const Arguments&);  ///< Exit code. Throws what diagnostic.hpp has.
  /// Whether processes that a launcher started together share the work; else the first does it alone.
  bool (*shared)(const Arguments&) = nullptr;
  bool joins = false;  ///< It joins them itself, when it is ready to.
  /// A first word after which, and after one more, all words belong to a program that the command runs.
  std::string_view runs_program = {};
};

namespace commands {
Catalog<Command> catalog();
}

/// Prints to stdout; every command writes results through it. A closed pipe ends the program quietly, a full disk with
/// BackendError, from flush() at the latest. Only the first of several processes started together prints.
/// What is not printable() is escaped.
void print(std::string_view text);
/// print() that leaves these terminal sequences in the text as they are.
void print_with(std::string_view text, const std::vector<std::string_view>& sequences);
void flush();

/// Prints to stderr what is not a result; what is not printable() is escaped.
void print_error_text(std::string_view text);
template <class... T>
void print_error(fmt::format_string<T...> format, T&&... values) {
  print_error_text(fmt::format(format, std::forward<T>(values)...));
}

/// Makes a folder for results before anything runs, so that no run ends without a place for them; else InputError.
void make_folder(const std::string& folder);
/// Makes the folder that --out names, and checks that these files may be written there.
void make_folder(const Arguments&, const std::vector<std::string>& files);

/// --hosts and --rank of commands whose work several processes share: main() joins them. A command with --processes has
/// them started, too.
std::vector<Argument> host_arguments();

/// --quiet of commands that may take long: main() shows no progress then.
Argument quiet_argument();
/// --force of commands that write files.
Argument force_argument();
/// Which files the command may replace.
Overwrite overwrite_of(const Arguments&);
/// check_output() for the file that `option` names.
void check_output_of(const Arguments&, const std::string& option);
/// write_output() to the file that `option` names.
void write_output_of(const Arguments&, const std::string& option, std::string_view text, CommentStyle);

/// One of the words text, json, csv, grid...; InputError otherwise.
void check_format(const std::string& format, const std::vector<std::string>& allowed);

/// Prints what looks like a slip to stderr, the first few of it.
void warn(const std::vector<Diagnostic>& warnings);

/// One object for each problem, for editors and scripts.
Json problems_list(const std::vector<Diagnostic>&);
/// problems_list() as text.
std::string diagnostics_json(const std::vector<Diagnostic>&);

/// What --time says: more than zero seconds; InputError otherwise.
Seconds time_limit(const Arguments&);

/// --replay of commands that rank on a backend. `when`: words before what it does.
Argument replay_argument(const std::string& usual, const std::string& when = {});

/// The rows that --replay asks for, or `usual`: a number or all. Rows that were ranked on another backend than ideal
/// are not played again; InputError where that is asked for.
int replay_rows(const Arguments&, const std::string& backend, const std::string& usual);

/// Opens stdin, stdout and stderr where they are closed, so that no other file gets their number: nothing can be
/// read from stdin, nothing can be written to stdout, and what goes to stderr is lost.
void open_standard_streams();

/// Writes to stderr. What cannot be written, because stderr is closed or its disk is full, is lost: the command goes
/// on.
void write_error(std::string_view text) noexcept;

}  // namespace stagecraft
