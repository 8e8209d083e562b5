// Which branches of a shell script are taken, and what variables are worth where that is not known.

#include "sim/interchange/imports/shell_branches.hpp"

#include <algorithm>
#include <utility>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kDeepestBranch = 100;
constexpr std::size_t kMostValues = 16;  // A note needs no more of a variable.

/// "$1" or "${2}".
bool is_argument(const std::string& text) {
  const std::size_t digit = text.find_first_not_of("${");
  return digit != 0 && digit != std::string::npos && text[digit] >= '0' && text[digit] <= '9';
}

}  // namespace

void ShellBranches::open(Open branch) {
  if (open_.size() == kDeepestBranch)
    throw InputError("the branches of the script are nested too deep to be followed",
                     "give the arguments themselves in place of the script");
  open_.push_back(std::move(branch));
}

void ShellBranches::open_if(std::size_t command, std::size_t joins) { open({.command = command, .joins = joins}); }

void ShellBranches::open_elif(std::size_t command, std::size_t joins) {
  open_.back().is_skipped = open_.back().is_decided;
  open_.back().command = command;
  open_.back().joins = joins;
}

void ShellBranches::open_case(std::string word) { open({.is_case = true, .word = std::move(word)}); }

void ShellBranches::take_if(std::optional<bool> holds) {
  Open& b = open_.back();
  b.is_skipped = b.is_decided || holds == false;
  if (b.is_skipped) return;
  b.id = holds == true && !b.is_unsure ? 0 : ++branches_;
  b.is_decided = holds == true;
  b.is_unsure = b.is_unsure || !holds;
  ++b.taken;
}

void ShellBranches::fall_through() {
  Open& b = open_.back();
  if (!b.is_skipped) b.falls = b.is_unsure = true, b.is_decided = false;
}

bool ShellBranches::takes_next() { return std::exchange(open_.back().falls, false); }

void ShellBranches::set_surely(Change& change) {
  change.sure += change.sure_branch != change.branch;
  change.sure_branch = change.branch;
}

void ShellBranches::close() {
  const Open closed = std::move(open_.back());
  open_.pop_back();
  if (!closed.is_decided || closed.id == 0 || is_skipping()) return;
  for (const auto& [name, change] : closed.changes) {
    if (change.sure < closed.taken) continue;
    Change* const outer = outer_change(name);
    if (outer) set_surely(*outer);
    std::vector<std::string>& replaced = replaced_[name];
    const auto first = replaced.begin() + (outer ? outer->before_branch : 0);
    const auto end = replaced.begin() + change.before;
    if (first < end) replaced.erase(first, end);
  }
}

ShellBranches::Change* ShellBranches::outer_change(const std::string& name) {
  const auto b = std::find_if(open_.rbegin(), open_.rend(), [](const Open& one) { return one.id > 0; });
  if (b == open_.rend()) return nullptr;
  const auto change = b->changes.find(name);
  return change == b->changes.end() ? nullptr : &change->second;
}

void ShellBranches::note_change(const std::string& name, std::size_t length) {
  for (Open& b : open_) {
    if (b.id == 0) continue;
    Change& change = b.changes.try_emplace(name, Change{.before = length}).first->second;
    if (change.branch != b.taken) change.before_branch = length, change.branch = b.taken;
  }
  if (Change* const inner = outer_change(name)) set_surely(*inner);
}

bool ShellBranches::is_skipping() const {
  return std::any_of(open_.begin(), open_.end(), [](const Open& b) { return b.is_skipped; });
}

bool ShellBranches::is_unsure() const {
  return std::any_of(open_.begin(), open_.end(), [](const Open& b) { return b.id > 0; });
}

bool ShellBranches::replaces(const std::string& name, const std::optional<std::string>& value,
                             const std::string& given) {
  std::vector<int> path;
  for (const Open& b : open_)
    if (b.id > 0) path.push_back(b.id);
  std::vector<int>& before = set_in_[name];
  const bool is_sure = path.size() <= before.size() && std::equal(path.begin(), path.end(), before.begin());
  if (!is_sure && value && !value->empty() && is_argument(given)) return false;
  std::vector<std::string>& replaced = replaced_[name];
  const Change* const change = outer_change(name);
  if (is_sure) replaced.resize(std::min(change ? change->before_branch : 0, replaced.size()));
  if (!is_sure && value && replaced.size() < kMostValues) replaced.push_back(*value);
  note_change(name, replaced.size());
  before = std::move(path);
  return true;
}

std::vector<std::string> ShellBranches::values_of(const std::string& name, const std::string& value) const {
  const auto entry = replaced_.find(name);
  if (entry == replaced_.end()) return {};
  std::vector<std::string> values;
  for (const std::string& one : entry->second)
    if (one != value && std::find(values.begin(), values.end(), one) == values.end()) values.push_back(one);
  if (!values.empty()) values.push_back(value);
  return values;
}

}  // namespace stagecraft
