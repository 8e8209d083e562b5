#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft {

/// The `if` and `case` around what is being read of a script, and the values that variables may have, were other
/// branches taken.
class ShellBranches {
 public:
  /// Begins an `if` or `elif` whose condition has the commands from this one on; `joins`: the place of what follows it.
  /// InputError where branches are nested too deep.
  void open_if(std::size_t command, std::size_t joins);
  void open_elif(std::size_t command, std::size_t joins);
  /// Begins a `case` that compares this word.
  void open_case(std::string word);
  /// Begins a branch of the innermost; a condition that is not known may hold.
  void take_if(std::optional<bool> holds);
  /// The branch ends in ;& or ;;&, so the next one may be taken too.
  void fall_through();
  /// Whether the branch before does, for once.
  bool takes_next();
  /// Ends an `if` or `case`. Where one of its branches is surely taken and each sets a variable, the value from before
  /// does not count any more.
  void close();

  bool in_if() const { return !open_.empty() && !open_.back().is_case; }
  bool in_case() const { return !open_.empty() && open_.back().is_case; }
  const std::string& word() const { return open_.back().word; }
  std::size_t command() const { return open_.back().command; }
  std::size_t joins() const { return open_.back().joins; }

  /// Whether what is read now is surely not run, and whether it may not be.
  bool is_skipping() const;
  bool is_unsure() const;

  /// Remembers the value of a variable that may count in place of the one that is `given` now. An argument of the
  /// script, which is not known, replaces none: false.
  bool replaces(const std::string& name, const std::optional<std::string>& value, const std::string& given);
  bool has_set(const std::string& name) const { return set_in_.contains(name); }
  /// The values that a variable may have, this one last; empty where it has no other.
  std::vector<std::string> values_of(const std::string& name, const std::string& value) const;

 private:
  /// How the branches of one `if` or `case` set a variable. What may count in its place is a list to which each of them
  /// adds.
  struct Change {
    std::size_t before = 0;         ///< Length of that list with the value from before the first branch,
    std::size_t before_branch = 0;  ///< and with the value from before the branch that sets it last.
    int branch = 0;                 ///< The branch that sets it last,
    int sure_branch = 0, sure = 0;  ///< the one that surely does, and the number of those.
  };
  /// What is being read of one `if` or `case`.
  struct Open {
    bool is_case = false;
    std::string word = {};
    std::size_t command = 0, joins = 0;
    int id = 0;               ///< Number of the branch; 0 where it is surely taken.
    bool is_unsure = false;   ///< Whether a branch before may be taken.
    bool is_decided = false;  ///< Whether no branch after this one is taken.
    bool is_skipped = false;  ///< Whether this branch is not taken.
    bool falls = false;
    int taken = 0;  ///< Branches that may be taken.
    std::map<std::string, Change> changes = {};
  };

  void open(Open);
  /// The branch that sets it last surely does.
  static void set_surely(Change&);
  /// The change of a variable in the innermost branch that is not surely taken.
  Change* outer_change(const std::string& name);
  /// Notes that the branches that are being read set a variable, before which `length` values may count.
  void note_change(const std::string& name, std::size_t length);

  std::vector<Open> open_;                                    ///< From the outermost.
  int branches_ = 0;                                          ///< All that were not surely taken.
  std::map<std::string, std::vector<int>> set_in_;            ///< The branches in which a variable was set last.
  std::map<std::string, std::vector<std::string>> replaced_;  ///< Values that may count.
};

}  // namespace stagecraft
