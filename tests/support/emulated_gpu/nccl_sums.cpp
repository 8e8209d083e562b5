#include "tests/support/emulated_gpu/nccl_sums.hpp"

#include <cstring>
#include <optional>

#include "tests/support/emulated_gpu/streams.hpp"

namespace stagecraft::emulated_gpu {
namespace {

constexpr int kNan = 0xff;

template <class T>
void add(const std::string& from, std::string& to) {
  for (std::size_t at = 0; at < to.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to.data() + at, sizeof a);
    std::memcpy(&b, from.data() + at, sizeof b);
    a += b;
    std::memcpy(to.data() + at, &a, sizeof a);
  }
}

std::string tree(const std::vector<std::string>& parts, std::size_t begin, std::size_t end, bool wide) {
  if (end - begin == 1) return parts[begin];
  const std::size_t middle = begin + (end - begin) / 2;
  std::string sum = tree(parts, begin, middle, wide);
  const std::string other = tree(parts, middle, end, wide);
  wide ? add<double>(other, sum) : add<float>(other, sum);
  return sum;
}

}  // namespace

void Sum::start(bool silent) {
  if (!on_device(half_.from, half_.bytes) || !on_device(half_.to, half_.bytes))
    throw Misuse("NCCL adds up memory that is not in use");
  const auto rank = static_cast<std::size_t>(communicator_->rank);
  parts_.resize(static_cast<std::size_t>(communicator_->ranks));
  parts_[rank].assign(static_cast<const char*>(half_.from), half_.bytes);
  std::memset(half_.to, kNan, half_.bytes);  // The result must not be read before the end.
  for (int r = 0; r < communicator_->ranks && !silent; ++r)
    if (r != communicator_->rank) put(*communicator_, file(communicator_->rank, r), parts_[rank].data(), half_.bytes);
}

bool Sum::over() {
  if (over_) return true;
  for (int r = 0; r < communicator_->ranks; ++r) {
    std::string& part = parts_[r];
    if (!part.empty()) continue;
    const std::optional<std::string> come = take(*communicator_, file(r, communicator_->rank));
    if (!come) return false;
    if (come->size() != half_.bytes) throw Misuse("what the ranks of an all-reduce bring differs in size");
    part = *come;
  }
  const std::string sum = tree(parts_, 0, parts_.size(), half_.sum == Summed::Doubles);
  std::memcpy(half_.to, sum.data(), sum.size());
  return over_ = true;
}

}  // namespace stagecraft::emulated_gpu
