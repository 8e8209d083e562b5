#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stagecraft::real {

/// Where rows go in an expert group, as one of its devices sees it. The members are ranks of experts, and in each of
/// them the expert-tensor ranks; every rank of experts has the next part of all experts. A copy is a row for one of its
/// experts: copy `row * active + n` goes to the n-th expert of the row.
struct ExpertRouting {
  struct Copy {
    int member = 0;         ///< A rank of the group.
    std::int64_t copy = 0;  ///< Its number among the copies that the member sends.
  };
  struct Destination {
    int expert_rank = 0;
    std::int64_t row = 0;  ///< Among the rows that this rank has.
  };
  std::vector<Copy> rows;                    ///< What arrives here: by expert, then by member, then by copy.
  std::vector<std::int64_t> expert_rows;     ///< The first row of each expert that is here, then the number of rows.
  std::vector<Destination> destinations;     ///< Where each copy of this device goes.
  std::vector<std::int64_t> sent, received;  ///< [member] Rows that it sends to experts, and rows of its experts.
};

/// The place of a device in its expert group.
struct ExpertPlace {
  int expert_ranks = 1, expert_tensor_ranks = 1;
  int expert = 0, expert_tensor = 0;

  int member() const { return expert * expert_tensor_ranks + expert_tensor; }
};

/// `choices`: the experts of the copies of each member.
ExpertRouting route_rows(int experts, std::span<const std::span<const std::int32_t>> choices, const ExpertPlace&);

}  // namespace stagecraft::real
