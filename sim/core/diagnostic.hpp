#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace stagecraft {

/// Where a value was written. Lines and columns start at 1; line 0 means "no place".
struct Where {
  std::string file;
  int line = 0;
  int column = 0;

  friend bool operator==(const Where&, const Where&) = default;
};

/// One problem with an input, and what would mend it.
struct Diagnostic {
  Where where;
  std::string path;     ///< Dotted path of the field, such as "cluster.links[1].bandwidth"; may be empty.
  std::string message;  ///< What is wrong, in one sentence.
  std::string help;     ///< What to write instead; may be empty.
  std::string code;     ///< A stable word for scripts, such as "unknown-field".
  int more = 0;         ///< Number of similar problems that this one represents.
  /// What belongs after the message and a colon where there is room, such as the parts of an amount. May be empty. A
  /// row of a table shows the message alone.
  std::string detail = {};
};

/// The message with its detail: "stage 0 needs 9 GiB: 5 GiB weights, 4 GiB activations".
std::string full_message(const Diagnostic&);

/// "file:line:column: error: path: message", the line with a caret when the file can be read, and the help. A file
/// such as "<--set a=b>" is its own source line; of a very long line only the part around the caret is shown. No
/// newline at the end.
std::string render(const Diagnostic&);
/// All of them sorted by place, at most twenty, then the count. No newline at the end.
std::string render(std::vector<Diagnostic>);

/// The input is wrong (exit 2). Carries every problem that was found, not only the first.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Diagnostic> problems);
  explicit InputError(std::string message, std::string help = {});
  const std::vector<Diagnostic>& problems() const { return problems_; }

 private:
  std::vector<Diagnostic> problems_;
};

/// The input is right but cannot be done (exit 3): which constraint, by how much, and what would help.
class Infeasible : public std::runtime_error {
 public:
  Infeasible(std::string code, const std::string& message, const std::string& help = {},
             const std::string& detail = {});
  /// `problem` has the place of the constraint; what() does not contain it.
  explicit Infeasible(Diagnostic problem);
  const std::string& code() const { return problem_.code; }
  const Diagnostic& problem() const { return problem_; }

 private:
  Diagnostic problem_;
};

/// The machine or a backend failed (exit 4).
class BackendError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A bug of ours (exit 70).
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace stagecraft

#define STAGECRAFT_STRING2(x) #x
#define STAGECRAFT_STRING(x) STAGECRAFT_STRING2(x)
/// A promise between parts of this program. Never used on what a user wrote.
#define STAGECRAFT_CHECK(condition)                                                                                \
  do {                                                                                                             \
    if (!(condition)) throw ::stagecraft::InternalError(__FILE__ ":" STAGECRAFT_STRING(__LINE__) ": " #condition); \
  } while (false)
