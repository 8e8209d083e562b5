// Where each row goes in an expert group, computed by every member from the choices of all members.

#include "backends/real/expert_routing.hpp"

namespace stagecraft::real {
namespace {

/// The first row of each expert among the rows of its rank; the counting part of a counting sort.
std::vector<std::int64_t> first_rows(int experts, int each, std::span<const std::span<const std::int32_t>> choices) {
  std::vector<std::int64_t> counts(experts, 0), first(experts, 0);
  for (const auto& chosen : choices)
    for (const std::int32_t expert : chosen) ++counts[expert];
  for (int e = 0; e < experts; ++e)
    if (e % each > 0) first[e] = first[e - 1] + counts[e - 1];
  return first;
}

}  // namespace

ExpertRouting route_rows(int experts, std::span<const std::span<const std::int32_t>> choices,
                         const ExpertPlace& place) {
  const int each = experts / place.expert_ranks, begin = place.expert * each;
  std::vector<std::int64_t> next = first_rows(experts, each, choices);
  ExpertRouting routing;
  routing.expert_rows.assign(next.begin() + begin, next.begin() + begin + each);
  routing.destinations.reserve(choices[place.member()].size());
  // By member, then by copy: what an expert gets is in that order.
  for (int member = 0; member < static_cast<int>(choices.size()); ++member)
    for (const std::int32_t expert : choices[member]) {
      const std::int64_t row = next[expert]++;
      if (member == place.member()) routing.destinations.push_back({expert / each, row});
    }
  for (int member = 0; member < static_cast<int>(choices.size()); ++member) {
    routing.sent.push_back(std::ssize(choices[member]));
    routing.received.push_back(next[(member / place.expert_tensor_ranks + 1) * each - 1]);
  }
  const std::int64_t count = next[begin + each - 1];
  routing.expert_rows.push_back(count);
  routing.rows.resize(count);
  next.assign(routing.expert_rows.begin(), routing.expert_rows.end() - 1);
  for (int member = 0; member < static_cast<int>(choices.size()); ++member)
    for (std::int64_t copy = 0; copy < std::ssize(choices[member]); ++copy)
      if (const int here = choices[member][copy] - begin; here >= 0 && here < each)
        routing.rows[next[here]++] = {member, copy};
  return routing;
}

}  // namespace stagecraft::real
