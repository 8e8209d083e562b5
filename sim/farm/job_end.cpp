// The ends of jobs as bytes and back, for messages from other processes of a JobFarm to the first.

#include <nlohmann/json.hpp>

#include "sim/farm/job_farm.hpp"

namespace stagecraft {
namespace {

using NlohmannJson = nlohmann::json;

}  // namespace

// Messages between processes are CBOR.
std::string to_bytes(const std::vector<JobEnd>& ends) {
  NlohmannJson joined = NlohmannJson::array();
  for (const JobEnd& end : ends) {
    const NlohmannJson::binary_t text(std::vector<std::uint8_t>(end.text.begin(), end.text.end()));
    joined.push_back({end.job, static_cast<int>(end.how), text, end.seconds, end.rank});
  }
  std::string bytes;
  NlohmannJson::to_cbor(joined, bytes);
  return bytes;
}

std::vector<JobEnd> job_ends_from_bytes(const std::string& bytes) {
  std::vector<JobEnd> ends;
  for (const NlohmannJson& one : NlohmannJson::from_cbor(bytes)) {
    const auto& text = one[2].get_binary();
    ends.push_back({.job = one[0],
                    .how = static_cast<JobEnd::How>(one[1].get<int>()),
                    .text = std::string(text.begin(), text.end()),
                    .seconds = one[3],
                    .rank = one[4]});
  }
  return ends;
}

}  // namespace stagecraft
