#include "sim/plan/graph/stock.hpp"

#include <algorithm>
#include <numeric>

#include "sim/core/numbers.hpp"

namespace stagecraft::graph {
namespace {

/// Device seconds of the whole model on each type alone, the first as one.
std::vector<double> slownesses(const Problem& p, std::size_t types) {
  std::vector<double> slow(types, 0);
  for (const Sums& layer : p.amounts)
    for (std::size_t t = 0; t < types && types > 1; ++t) {
      double least = kInfinity;
      for (int c = 0; c < p.choices(); ++c)
        if (p.type[c] == static_cast<int>(t)) least = std::min(least, layer.seconds[c] * p.replicas[c]);
      slow[t] += least;
    }
  const double first = slow.front();
  for (double& s : slow) s = first > 0 && s > 0 ? s / first : 1;
  return slow;
}

}  // namespace

Stock::Stock(const Problem& p) {
  const std::vector<int> types = p.of_type.empty() ? std::vector<int>{p.devices} : p.of_type;
  const std::vector<double> slow = slownesses(p, types.size());
  std::vector<int> counts(types.size(), 0);
  for (bool more = true; more;) {
    counts_.push_back(counts);
    double worth = 0;
    for (std::size_t t = 0; t < types.size(); ++t) worth += counts[t] / slow[t];
    worth_.push_back(worth);
    std::size_t t = 0;
    while (t < types.size() && counts[t] == types[t]) counts[t++] = 0;
    more = t < types.size();
    if (more) ++counts[t];
  }
  for (int c = 0; c < p.choices(); ++c)
    for (int s = 1; s <= all(); ++s) {
      const std::vector<int>& own = of_type(s);
      if (std::accumulate(own.begin(), own.end(), 0) != p.replicas[c]) continue;
      const auto kinds = std::count_if(own.begin(), own.end(), [](int n) { return n > 0; });
      const int type = p.type.empty() ? 0 : p.type[c];
      if (type == kAnyType ? kinds > 1 : kinds == 1 && own[type] > 0) takes_.push_back({c, s});
    }
}

bool Stock::within(int part, int whole) const {
  if (part > whole) return false;
  const std::vector<int>&a = of_type(part), &b = of_type(whole);
  for (std::size_t t = 0; t < a.size(); ++t)
    if (a[t] > b[t]) return false;
  return true;
}

double Stock::least_work(const Problem& p, const Sums& layer) const {
  double least = kInfinity;
  for (const Take& take : takes_) least = std::min(least, layer.seconds[take.choice] * worth(take.stock));
  if (takes_.empty())
    for (int c = 0; c < p.choices(); ++c) least = std::min(least, layer.seconds[c] * p.replicas[c]);
  return least;
}

}  // namespace stagecraft::graph
