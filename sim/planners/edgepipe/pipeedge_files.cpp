// For `stagecraft import pipeedge`: reads the three files of PipeEdge's scheduler as a problem for the planner
// edgepipe, and writes the schedule that PipeEdge's runtime reads.

#include "sim/planners/edgepipe/pipeedge_files.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sim/config/units.hpp"
#include "sim/config/value.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::pipeedge {
namespace {

using config::Member;
using config::Problems;
using config::Value;

const std::map<std::string, double> kBytes = {
    {"torch.float64", 8}, {"torch.float32", 4}, {"torch.float16", 2}, {"torch.bfloat16", 2}, {"torch.int8", 1}};

constexpr double kMost = 1e30;  // Sums and products of it are finite.

/// Names go into other files, so they are printable, as names in scenarios are.
void make_printable(Value& value) {
  value.text = printable(value.text);
  for (Value& item : value.items) make_printable(item);
  for (Member& member : value.members) {
    member.key = printable(member.key);
    make_printable(member.value);
  }
}

Value parse(const std::string& file) {
  Problems problems;
  Value root = config::parse_yaml_file(file, problems);
  problems.throw_if_any();
  make_printable(root);
  if (root.is_map()) return root;
  throw InputError({{root.where, {}, "a map was expected here", "name: {...} for each entry", "wrong-type"}});
}

std::vector<std::string> keys_of(const Value& map) {
  std::vector<std::string> keys;
  for (const Member& m : map.members) keys.push_back(m.key);
  return keys;
}

class Reader {
 public:
  Reader(const Request& request) : request_(request) {
    result_.model = request.model;
    result_.batch = request.batch;
    const auto it = kBytes.find(request.dtype);
    if (it != kBytes.end()) {
      width_ = it->second;
      return;
    }
    std::vector<std::string> names;
    for (const auto& [name, bytes] : kBytes) names.push_back(name);
    throw InputError(fmt::format("the width of '{}' is not known", request.dtype), suggest(request.dtype, names));
  }

  void read_model(const Value& root) {
    const Value* model = root.find(request_.model);
    if (!model || !model->is_map())
      throw InputError({{root.where,
                         {},
                         fmt::format("there is no model '{}'", request_.model),
                         suggest(request_.model, keys_of(root)),
                         "unknown-model"}});
    const auto layers = number(*model, request_.model, "layers", 1);
    const auto input = number(*model, request_.model, "parameters_in");
    const auto outputs = numbers(*model, request_.model, "parameters_out");
    const auto memory = numbers(*model, request_.model, "mem_MB");
    problems_.throw_if_any();
    layers_ = memory->size();
    if (*layers != static_cast<double>(layers_))
      wrong(*model->find("mem_MB"), request_.model + ".mem_MB",
            fmt::format("{}, but `layers` is {}", pluralize(layers_, "number"), *layers), "one for each layer");
    else if (outputs->empty() || outputs->size() > layers_)
      wrong(*model->find("parameters_out"), request_.model + ".parameters_out",
            fmt::format("{} for {}", pluralize(outputs->size(), "number"), pluralize(layers_, "layer")),
            "one for each layer, or fewer, which are repeated");
    problems_.throw_if_any();
    if (outputs->size() < layers_)
      warn(model->find("parameters_out")->where,
           fmt::format("{} {} repeated for {}", pluralize(outputs->size(), "number"),
                       outputs->size() == 1 ? "is" : "are", pluralize(layers_, "layer")));
    result_.input = *input * width_;
    for (std::size_t l = 0; l < layers_; ++l) {
      result_.outputs.push_back((*outputs)[l % outputs->size()] * width_);
      result_.weights.push_back((*memory)[l] * mega());
    }
  }

  void read_hosts(const Value& root, const Value& types) {
    std::set<std::string> names;
    for (const Member& member : root.members) {
      const auto hosts = host_names(member, names);
      if (hosts.empty()) continue;
      if (const Value* type = types.find(member.key))
        read_type(member, *type, hosts);
      else
        leave_out(member.where, member.key, hosts,
                  with_help(fmt::format("{} does not have it", types.where.file), suggest(member.key, keys_of(types))));
    }
    problems_.throw_if_any();
    if (result_.types.empty()) throw InputError({no_host(root)});
    if (!request_.data_host.empty()) set_data_host(names);
  }

  SchedulerInput take() { return std::move(result_); }

 private:
  double mega() const { return request_.binary ? 1048576 : 1e6; }

  void wrong(const Value& value, const std::string& path, const std::string& message, const std::string& help) {
    problems_.add(value.where, path, message, help, "pipeedge");
  }
  void warn(const Where& where, const std::string& message) {
    result_.warnings.push_back(fmt::format("{}:{}: warning: {}", where.file, where.line, message));
  }
  static std::string with_help(const std::string& message, const std::string& help) {
    return help.empty() ? message : message + "; " + help;
  }
  void leave_out(const Where& where, const std::string& type, const std::vector<std::string>& hosts,
                 const std::string& why) {
    const std::string who = hosts.size() == 1 ? fmt::format("host '{}' of type '{}' is", hosts.front(), type)
                                              : fmt::format("{} hosts of type '{}' are", hosts.size(), type);
    left_out_.push_back(fmt::format("{} left out: {}", who, why));
    warn(where, left_out_.back());
  }

  const Value* member(const Value& map, const std::string& path, const char* key) {
    const Value* value = map.find(key);
    if (!value) problems_.add(map.where, path, fmt::format("the field '{}' is missing", key), {}, "missing-field");
    return value;
  }

  std::optional<double> read_number(const Value& value, const std::string& path, double min_value) {
    std::string why;
    const auto number = value.is_scalar() ? config::parse_number(value.text, why) : std::nullopt;
    if (!number)
      wrong(value, path,
            value.is_scalar() ? fmt::format("'{}' is not a number", value.text) : "a number was expected here", why);
    else if (*number < min_value)
      wrong(value, path, fmt::format("{} is less than {}", value.text, min_value),
            fmt::format("{} or more", min_value));
    else if (*number > kMost)
      wrong(value, path, fmt::format("{} is more than {}", value.text, kMost), {});
    return number;
  }

  std::optional<double> number(const Value& map, const std::string& path, const char* key, double min_value = 0) {
    const Value* value = member(map, path, key);
    return value ? read_number(*value, path + "." + key, min_value) : std::nullopt;
  }

  /// Empty when anything is wrong with them, which is then among the problems.
  std::optional<std::vector<double>> numbers(const Value& map, const std::string& path, const char* key) {
    const Value* value = member(map, path, key);
    if (!value) return std::nullopt;
    const std::string place = path + "." + key;
    if (!value->is_list()) return wrong(*value, place, "a list was expected here", "[1, 2, ...]"), std::nullopt;
    std::vector<double> list;
    for (std::size_t i = 0; i < value->items.size(); ++i)
      if (const auto one = read_number(value->items[i], fmt::format("{}[{}]", place, i), 0)) list.push_back(*one);
    return list;
  }

  /// Names are used once here; a host that is there twice is two devices to PipeEdge.
  std::vector<std::string> host_names(const Member& list, std::set<std::string>& used) {
    std::vector<std::string> hosts;
    if (list.value.kind == Value::Kind::Null) return hosts;
    if (!list.value.is_list())
      return wrong(list.value, list.key, "a list of hosts was expected here", "[host, ...]"), hosts;
    for (const Value& item : list.value.items) {
      std::string name = item.text;
      if (!item.is_scalar()) {
        wrong(item, list.key, "the name of a host was expected here", {});
        continue;
      }
      for (int again = 2; !used.insert(name).second; ++again) name = fmt::format("{}-{}", item.text, again);
      if (name != item.text)
        warn(item.where, fmt::format("host '{}' is there twice: the second is called '{}'", item.text, name));
      hosts.push_back(name);
    }
    return hosts;
  }

  void read_type(const Member& entry, const Value& type, const std::vector<std::string>& hosts) {
    if (!type.is_map())
      return wrong(type, entry.key, "a map was expected here", "{bw_Mbps: ..., mem_MB: ..., model_profiles: ...}");
    const auto bandwidth = number(type, entry.key, "bw_Mbps"), memory = number(type, entry.key, "mem_MB");
    const Value* const profile = profile_of(entry.key, type);
    if (memory == 0.0) missing_ = "it has no memory";
    if (!profile || memory == 0.0) return leave_out(type.where, entry.key, hosts, missing_);
    const std::string path = fmt::format("{}.model_profiles.{}", entry.key, request_.model);
    const auto seconds = numbers(*profile, path, "time_s");
    if (seconds && seconds->size() != layers_)
      wrong(*profile->find("time_s"), path + ".time_s",
            fmt::format("{} for {}", pluralize(seconds->size(), "time"), pluralize(layers_, "layer")),
            "one for each layer");
    if (!seconds || !bandwidth || !memory) return;
    result_.types.push_back({entry.key, *bandwidth * mega() / 8, *memory * mega(), *seconds, hosts});
  }

  /// The last one for the batch and dtype; where there is none, `missing_` says why.
  const Value* profile_of(const std::string& name, const Value& type) {
    const Value* const models = type.find("model_profiles");
    const Value* const profiles = models && models->is_map() ? models->find(request_.model) : nullptr;
    missing_ = fmt::format("it has no times of '{}'", request_.model);
    const Value* match = nullptr;
    std::string there;
    for (std::size_t i = 0; profiles && i < profiles->items.size(); ++i) {
      const Value& profile = profiles->items[i];
      const std::string path = fmt::format("{}.model_profiles.{}[{}]", name, request_.model, i);
      const Value *batch = member(profile, path, "batch_size"), *dtype = member(profile, path, "dtype");
      if (!batch || !dtype) continue;
      there += fmt::format("{}batch {} of {}", there.empty() ? "" : ", ", batch->text, dtype->text);
      if (dtype->text != request_.dtype || read_number(*batch, path, 1) != request_.batch) continue;
      if (match)
        warn(profile.where, fmt::format("'{}' has times of batch {} of {} twice: the last ones count", name,
                                        request_.batch, request_.dtype));
      match = &profile;
    }
    if (!there.empty())
      missing_ = fmt::format("it has times of {}, not of batch {} of {}", there, request_.batch, request_.dtype);
    return match;
  }

  /// Makes it a separate type, unless it is one of those that run nothing.
  void set_data_host(const std::set<std::string>& names) {
    if (names.count(request_.data_host) == 0)
      throw InputError(fmt::format("there is no host '{}'", request_.data_host),
                       suggest(request_.data_host, std::vector<std::string>(names.begin(), names.end())));
    for (std::size_t t = 0; t < result_.types.size(); ++t) {
      auto& hosts = result_.types[t].hosts;
      if (std::erase(hosts, request_.data_host) == 0) continue;
      HostType type = result_.types[t];
      type.hosts = {request_.data_host};
      type.has_data = true;
      if (hosts.empty()) result_.types.erase(result_.types.begin() + static_cast<std::ptrdiff_t>(t));
      result_.types.push_back(std::move(type));
      return;
    }
  }

  Diagnostic no_host(const Value& devices) const {
    const std::string help = left_out_.empty() ? "a type with its hosts: type: [host, ...]" : join(left_out_, "; ");
    return {devices.where, {}, fmt::format("there is no host with times of '{}'", request_.model), help, "no-host"};
  }

  const Request& request_;
  SchedulerInput result_;
  Problems problems_;
  double width_ = 0;
  std::size_t layers_ = 0;
  std::string missing_;                ///< Why a type has no times.
  std::vector<std::string> left_out_;  ///< Which hosts, and why.
};

}  // namespace

SchedulerInput read(const Files& files, const Request& request) {
  Reader reader(request);
  reader.read_model(parse(files.models));
  const Value types = parse(files.types);
  reader.read_hosts(parse(files.devices), types);
  return reader.take();
}

edgepipe::ChainProblem problem_of(const SchedulerInput& profiles, double buffers_in, double buffers_out) {
  edgepipe::ChainProblem p;
  p.layers = profiles.layers();
  p.message.push_back(profiles.input * profiles.batch);
  for (const double bytes : profiles.outputs) p.message.push_back(bytes * profiles.batch);
  p.weights = edgepipe::Runs::sums(profiles.weights);
  p.buffers_in = buffers_in;
  p.buffers_out = buffers_out;
  for (const HostType& type : profiles.types)
    p.machines.push_back({.count = static_cast<int>(type.hosts.size()),
                          .compute = edgepipe::Runs::sums(type.seconds),
                          .memory = type.memory,
                          .bandwidth = type.bandwidth,
                          .first_only = type.has_data});
  return p;
}

std::string to_schedule(const edgepipe::Chain& chain, const SchedulerInput& profiles) {
  Value stages;
  stages.kind = Value::Kind::List;
  std::vector<std::size_t> used(profiles.types.size(), 0);
  for (const edgepipe::ChainStage& part : chain) {
    const std::size_t type = part.machines;
    Value layers, stage;
    layers.kind = Value::Kind::List;
    for (const int layer : {part.from + 1, part.to}) layers.items.push_back(Value::scalar(std::to_string(layer), {}));
    stage.kind = Value::Kind::Map;
    stage.members.push_back({profiles.types[type].hosts[used[type]++], {}, std::move(layers)});
    stages.items.push_back(std::move(stage));
  }
  return config::to_yaml(stages, false);
}

}  // namespace stagecraft::pipeedge
