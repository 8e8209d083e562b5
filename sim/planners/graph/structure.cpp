// Numbers the parts of a series-parallel graph by kind, with the costs of their stages, so that equal parts are solved
// once; GraphPipe's algorithm reads it.

#include "sim/planners/graph/structure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>

namespace stagecraft::graph {
namespace {

/// Layers with the same costs have the same number.
std::vector<int> layer_kinds(const GraphProblem& p) {
  std::map<std::vector<double>, int> kind_numbers;
  std::vector<int> kinds;
  for (int layer = 0; layer < p.size(); ++layer) {
    const Sums& sums = p.amounts[layer];
    std::vector<double> key{sums.update, sums.weights, sums.gradients, sums.optimizer, p.output[layer]};
    for (int c = 0; c < p.choices(); ++c) {
      key.push_back(sums.seconds[c]);
      key.push_back(sums.stash[c]);
    }
    kinds.push_back(kind_numbers.emplace(key, static_cast<int>(kind_numbers.size())).first->second);
  }
  return kinds;
}

class Finder {
 public:
  explicit Finder(const GraphProblem& p) : p_(p), mixes_(p), layer_kinds_(layer_kinds(p)) {}

  PartNode node(const Tree& tree) {
    PartNode node;
    if (tree.kind == Tree::Kind::Layer) node.layers = {tree.layer};
    for (const Tree& part : tree.parts) node.parts.push_back(this->node(part));
    if (tree.kind == Tree::Kind::Parallel)
      std::stable_sort(node.parts.begin(), node.parts.end(),
                       [](const PartNode& a, const PartNode& b) { return a.kind < b.kind; });
    for (const PartNode& part : node.parts)
      node.layers.insert(node.layers.end(), part.layers.begin(), part.layers.end());
    node.kind = number_of(tree.kind, node);
    return node;
  }

  std::vector<PartKind> kinds;

 private:
  int number_of(Tree::Kind kind, const PartNode& node) {
    const std::string key = key_of(kind, node);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    PartKind part_kind = kind_of(kind, node);
    if (kind == Tree::Kind::Series) part_kind.joins = joins_of(node);
    const int number = static_cast<int>(kinds.size());
    known_.emplace(key, number);
    kinds.push_back(std::move(part_kind));
    return number;
  }

  std::vector<Join> joins_of(const PartNode& series) {
    std::vector<Join> joins;
    for (std::size_t i = 0; i + 1 < series.parts.size(); ++i) {
      if (kinds[series.parts[i].kind].kind != Tree::Kind::Parallel) continue;
      int last = -1;
      for (const PartNode& branch : series.parts[i].parts) {
        if (branch.kind == last) continue;
        last = branch.kind;
        joins.push_back(join_of(series, i, branch.kind));
      }
    }
    return joins;
  }

  Join join_of(const PartNode& series, std::size_t part, int branch) {
    Join join{static_cast<int>(part), branch, -1, {}};
    Fork fork = apart(series.parts[part], join);
    join.others = number_of(Tree::Kind::Parallel, fork.others);
    const std::size_t others = fork.others.parts.size(), cuts = std::max<std::size_t>(fork.branch.parts.size(), 1);
    for (std::size_t last = part + 2; last <= series.parts.size(); ++last) {
      auto& by_whole = join.stages.emplace_back();
      for (std::size_t whole = 0; whole <= others; ++whole) {
        auto& by_cut = by_whole.emplace_back();
        for (std::size_t cut = 1; cut <= cuts; ++cut) {
          std::vector<int> layers = layers_of(series, part + 1, last);
          for (const auto& more :
               {layers_of(fork.others, others - whole, others), layers_of(fork.branch, cuts - cut, cuts)})
            layers.insert(layers.end(), more.begin(), more.end());
          by_cut.push_back(sums_of(p_, layers));
        }
      }
    }
    return join;
  }

  std::string key_of(Tree::Kind kind, const PartNode& node) const {
    std::string key = fmt::format("{}:", static_cast<int>(kind));
    for (const PartNode& part : node.parts) key += fmt::format("{},", part.kind);
    std::map<int, std::size_t> inside, outside;
    for (const int layer : node.layers) inside.emplace(layer, inside.size());
    for (const int layer : node.layers) {
      key += fmt::format(";{}", layer_kinds_[layer]);
      for (const int input : p_.layers.previous[layer]) {
        if (const auto it = inside.find(input); it != inside.end()) {
          key += fmt::format("i{}", it->second);
        } else {
          const std::size_t number = outside.emplace(input, outside.size()).first->second;
          key += fmt::format("o{}={}", number, p_.output[input]);
        }
      }
    }
    return key;
  }

  PartKind kind_of(Tree::Kind kind, const PartNode& node) const {
    PartKind result;
    result.kind = kind;
    result.work = {0};
    for (const PartNode& part : node.parts) result.parts.push_back(part.kind);
    const std::size_t count = std::max<std::size_t>(node.parts.size(), 1);
    result.range.resize(count);
    for (std::size_t first = 0; first < count; ++first) {
      std::vector<int> layers;
      for (std::size_t last = first; last < count; ++last) {
        const std::vector<int> more = layers_of(node, last, last + 1);
        layers.insert(layers.end(), more.begin(), more.end());
        result.range[first].push_back(sums_of(p_, layers));
      }
      double work = 0;
      for (const int layer : layers_of(node, first, first + 1)) work += mixes_.least_work(p_, p_.amounts[layer]);
      result.work.push_back(result.work.back() + work);
    }
    return result;
  }

  const GraphProblem& p_;
  const ReplicaMixes mixes_;
  std::vector<int> layer_kinds_;
  std::map<std::string, int> known_;
};

}  // namespace

Fork apart(const PartNode& side_by_side, const Join& join) {
  Fork fork;
  fork.others.kind = join.others;
  bool has_branch = false;
  for (const PartNode& part : side_by_side.parts) {
    if (!has_branch && part.kind == join.branch) {
      fork.branch = part, has_branch = true;
      continue;
    }
    fork.others.layers.insert(fork.others.layers.end(), part.layers.begin(), part.layers.end());
    fork.others.parts.push_back(part);
  }
  return fork;
}

std::vector<int> layers_of(const PartNode& node, std::size_t first, std::size_t last) {
  if (node.parts.empty()) return first < last ? node.layers : std::vector<int>{};
  std::vector<int> layers;
  for (std::size_t i = first; i < last; ++i)
    layers.insert(layers.end(), node.parts[i].layers.begin(), node.parts[i].layers.end());
  return layers;
}

Structure structure_of(const GraphProblem& p, const Tree& tree) {
  Finder finder(p);
  Structure structure;
  structure.root = finder.node(tree);
  structure.kinds = std::move(finder.kinds);
  return structure;
}

}  // namespace stagecraft::graph
