// What processes of a sweep send each other, in CBOR.

#include <nlohmann/json.hpp>

#include "sim/sweep/result.hpp"
#include "sim/sweep/worker_pool.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::json;

}  // namespace

std::string to_bytes(const JobEnd& end) {
  const Json::binary_t text(std::vector<std::uint8_t>(end.text.begin(), end.text.end()));
  std::string bytes;
  Json::to_cbor({end.job, static_cast<int>(end.how), end.seconds, text}, bytes);
  return bytes;
}

JobEnd job_end_from_bytes(const std::string& bytes) {
  const Json json = Json::from_cbor(bytes);
  const auto& text = json[3].get_binary();
  return {json[0], static_cast<JobEnd::How>(json[1].get<int>()), std::string(text.begin(), text.end()), json[2]};
}

std::string to_bytes(const PointResult& r) {
  std::string bytes;
  Json::to_cbor({r.hash, r.scenario, r.status, r.code, r.message, r.seconds, r.machine, r.figures}, bytes);
  return bytes;
}

PointResult result_from_bytes(const std::string& bytes) {
  const Json json = Json::from_cbor(bytes);
  PointResult r;
  r.hash = json[0], r.scenario = json[1], r.status = json[2], r.code = json[3], r.message = json[4];
  r.seconds = json[5], r.machine = json[6];
  for (const Json& f : json[7]) r.figures.push_back(f.get<double>());
  return r;
}

}  // namespace stagecraft
