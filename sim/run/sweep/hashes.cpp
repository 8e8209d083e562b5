// Which problems of points are problems of the file.

#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "sim/run/sweep/result.hpp"

namespace stagecraft {
namespace {

/// A value of the file, or a problem, by its text and place.
using Key = std::tuple<std::string, int, int, std::string>;

Key key_of(const config::Member& m) { return {m.key, m.value.where.line, m.value.where.column, one_line(m.value)}; }
Key key_of(const Diagnostic& d) { return {d.where.file, d.where.line, d.where.column, d.path + ": " + d.message}; }

/// In how many points each value stands, and each problem with it.
class Census {
 public:
  void count(const Point& point, const std::vector<Diagnostic>& problems) {
    ++points_;
    std::set<Key> seen;
    for (const Diagnostic& d : problems) {
      if (!seen.insert(key_of(d)).second) continue;
      auto& one = found_.try_emplace(key_of(d), Found{d, 0, {}}).first->second;
      ++one.points;
      for (const config::Member& m : point.settings) ++one.with[key_of(m)];
    }
    for (const config::Member& m : point.settings) ++values_[key_of(m)];
  }

  std::vector<Diagnostic> of_the_file() const {
    std::vector<Diagnostic> list;
    for (const auto& [key, found] : found_) {
      bool always = found.points == points_;
      for (const auto& [value, count] : found.with) always = always || count == values_.at(value);
      if (always) list.push_back(found.problem);
    }
    return list;
  }

 private:
  struct Found {
    Diagnostic problem;
    int points = 0;
    std::map<Key, int> with;
  };
  int points_ = 0;
  std::map<Key, int> values_;
  std::map<Key, Found> found_;
};

}  // namespace

std::vector<std::string> hashes_of(const Sweep& sweep, const std::vector<Point>& points) {
  std::vector<std::string> hashes;
  Census census;
  for (const Point& point : points) {
    ResolvedPoint resolved = resolve_point(sweep, point);
    census.count(point, resolved.ill_formed ? resolved.problems : std::vector<Diagnostic>{});
    hashes.push_back(std::move(resolved.hash));
  }
  if (auto wrong = census.of_the_file(); !wrong.empty()) throw InputError(std::move(wrong));
  return hashes;
}

}  // namespace stagecraft
