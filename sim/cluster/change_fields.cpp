// The fields `changes` and `jitter` of a cluster, and how they are read.

#include "sim/cluster/change_fields.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include "sim/core/random.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using config::Dimension;
using config::Value;

constexpr double kShortest = 1e-6;  // Seconds; a run of an hour has billions of them.

const config::MapSpec& one_change() {
  static const config::MapSpec spec{
      "Devices or links that are less than rated for a while.",
      {config::list("devices", config::text("device"))
           .optional()
           .doc("Names of devices. The name of a host means all its devices; * stands for any letters."),
       config::list("links", config::text("link")).optional().doc("Names of links; * stands for any letters."),
       config::quantity("share", Dimension::Share)
           .optional()
           .doc("Share of all devices that is drawn at random, by `seed`."),
       config::integer("seed", 0, 9e15).optional().doc("Seed of the draw of `share`. Default: 1."),
       config::quantity("from", Dimension::Time).optional().doc("Start of the change. Default: 0."),
       config::quantity("until", Dimension::Time).optional().doc("End of the change. Default: the end of the run."),
       config::quantity("every", Dimension::Time)
           .optional()
           .doc("Time between the starts of two repetitions, the first at `from`."),
       config::quantity("for", Dimension::Time).optional().doc("Duration of each repetition."),
       config::quantity("speed", Dimension::Share)
           .optional()
           .doc("Speed of the devices. It also applies to ops that are running; 0 % pauses them."),
       config::quantity("bandwidth", Dimension::Share)
           .optional()
           .doc("Bandwidth of the links. It also applies to messages under way."),
       config::quantity("latency", Dimension::Share)
           .optional()
           .doc("Latency of the links, for messages that start during the change."),
       config::boolean("down").optional().doc("Whether the devices or links are down. Devices start nothing, and an op "
                                              "that was interrupted starts again afterwards; messages wait.")}};
  return spec;
}

const config::MapSpec& jitter_fields() {
  static const config::MapSpec spec{
      "Ops that take longer than computed, each by its own random factor.",
      {config::quantity("most", Dimension::Share)
           .doc("Largest increase of the time of an op: 10 % draws each factor uniformly from 1 to 1.1."),
       config::integer("seed", 0, 9e15).fallback("1").doc("Seed of the factors.")}};
  return spec;
}

class ChangeReader {
 public:
  ChangeReader(const Value& map, std::string path, const Cluster& cluster, config::Problems& problems)
      : map_(map), path_(std::move(path)), cluster_(cluster), problems_(problems) {}

  Change read() {
    const Value *devices = map_.find("devices"), *share = map_.find("share");
    if (devices) name_devices(*devices);
    if (share) draw(*share);
    if (const Value* links = map_.find("links")) name_links(*links);
    if (share && devices) wrong(*share, "share", "`devices` says already which", "write one of the two");
    if (!map_.has("devices") && !share && !map_.has("links"))
      wrong(map_, {}, "it does not say what changes", "add devices: [NAME], links: [NAME], or share: 5 %");
    if (map_.has("seed") && !share)
      wrong(map_.at("seed"), "seed", "there is nothing to draw", "it goes with share: 5 %");
    times();
    effects();
    return std::move(change_);
  }

 private:
  void wrong(const Value& at, const std::string& key, const std::string& message, const std::string& help) {
    problems_.add(at.where, key.empty() ? path_ : path_ + "." + key, message, help, "change");
  }

  template <class Id>
  static void keep(std::vector<Id>& ids, Id id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }

  void name_devices(const Value& list) {
    if (list.items.empty()) wrong(list, "devices", "it names no device", "add one, or leave the change out");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const std::string& pattern = list.items[i].text;
      const std::size_t before = change_.devices.size();
      for (const DeviceId d : cluster_.devices.ids())
        if (matches(pattern, cluster_.devices[d].name) || pattern == cluster_.devices[d].host) keep(change_.devices, d);
      if (change_.devices.size() > before || named_before(list, i)) continue;
      std::vector<std::string> known_names;
      for (const Device& d : cluster_.devices) known_names.push_back(d.name), known_names.push_back(d.host);
      unknown(list.items[i], fmt::format("devices[{}]", i), "device or host", known_names);
    }
  }

  void name_links(const Value& list) {
    if (list.items.empty()) wrong(list, "links", "it names no link", "add one, or leave the change out");
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const std::size_t before = change_.links.size();
      for (const LinkId l : cluster_.links.ids())
        if (matches(list.items[i].text, cluster_.links[l].name)) keep(change_.links, l);
      if (change_.links.size() > before || named_before(list, i)) continue;
      std::vector<std::string> known_names;
      for (const Link& l : cluster_.links) known_names.push_back(l.name);
      unknown(list.items[i], fmt::format("links[{}]", i), "link", known_names);
    }
  }

  static bool named_before(const Value& list, std::size_t index) {
    return std::any_of(list.items.begin(), list.items.begin() + static_cast<std::ptrdiff_t>(index),
                       [&](const Value& v) { return v.text == list.items[index].text; });
  }

  void unknown(const Value& name, const std::string& key, const std::string& kind,
               std::vector<std::string> known_names) {
    std::sort(known_names.begin(), known_names.end());
    known_names.erase(std::unique(known_names.begin(), known_names.end()), known_names.end());
    std::string help = suggest(name.text, known_names);
    if (help.empty() && !known_names.empty())
      help = fmt::format("they are called as '{}' and '{}'", known_names.front(), known_names.back());
    wrong(name, key, fmt::format("no {} is called '{}'", kind, name.text), help);
  }

  /// The nearest whole number of devices, one at least.
  void draw(const Value& share) {
    const double part = config::as_share(share);
    if (!(part > 0 && part <= 1))
      return wrong(share, "share", share.text + " is not a part of the devices", "more than 0 %, up to 100 %");
    const auto ids = cluster_.devices.ids();
    std::vector<DeviceId> shuffled(ids.begin(), ids.end());
    const Value* seed = map_.find("seed");
    Rng rng(seed ? static_cast<std::uint64_t>(config::as_real(*seed)) : 1, "share");
    const auto count = std::max<std::size_t>(1, std::llround(part * static_cast<double>(shuffled.size())));
    for (std::size_t i = 0; i < count; ++i)
      std::swap(shuffled[i], shuffled[rng.integer(static_cast<int>(i), static_cast<int>(shuffled.size()) - 1)]);
    shuffled.resize(count);
    std::sort(shuffled.begin(), shuffled.end());
    for (const DeviceId d : shuffled) keep(change_.devices, d);
  }

  void times() {
    const auto take = [&](const char* key, Seconds& to) {
      if (const Value* value = map_.find(key)) to = config::as_seconds(*value);
    };
    take("from", change_.from), take("until", change_.until);
    take("every", change_.every), take("for", change_.lasts);
    if (change_.until <= change_.from)
      wrong(map_.at("until"), "until",
            fmt::format("it is over at {}, before it begins at {}", to_text(change_.until), to_text(change_.from)),
            "`until` is a moment of the run, as `from` is");
    const Value *every = map_.find("every"), *lasts = map_.find("for");
    if ((every == nullptr) != (lasts == nullptr))
      return wrong(every ? *every : *lasts, every ? "every" : "for", "`every` and `for` go together",
                   every ? "add for: how long each time" : "add every: 1 s, or write until: for once");
    if (every && (change_.lasts.value <= 0 || change_.lasts >= change_.every))
      wrong(*lasts, "for", fmt::format("{} of every {} is not a part of the time", lasts->text, every->text),
            "more than 0, less than `every`");
    if (every && change_.every.value < kShortest)
      wrong(*every, "every", fmt::format("{} is too short to be followed", every->text), "1 us or more");
  }

  void effects() {
    const Value* down = map_.find("down");
    change_.down = down && config::as_bool(*down);
    const bool devices = map_.has("devices") || map_.has("share"), links = map_.has("links");
    const Value *speed = map_.find("speed"), *bandwidth = map_.find("bandwidth"), *latency = map_.find("latency");
    for (const Value* effect : {speed, bandwidth, latency})
      if (effect && change_.down) return wrong(*down, "down", "what is down has no speed", "leave one of them out");
    if (!change_.down && !speed && !bandwidth && !latency)
      return wrong(map_, {}, "it does not say what becomes of them",
                   links ? "add bandwidth: 50 %, latency: 200 %, or down: true" : "add speed: 50 %, or down: true");
    if (!change_.down && devices && links)
      return wrong(map_, {}, "devices and links are slow in different ways",
                   "write two changes; only down: true is for both");
    if (speed && !devices) wrong(*speed, "speed", "links have none", "write bandwidth: for links");
    for (const Value* effect : {bandwidth, latency})
      if (effect && !links)
        wrong(*effect, effect == latency ? "latency" : "bandwidth", "devices have none",
              "write speed: for devices, or name links");
    if (speed) take_rate(*speed, "speed");
    if (bandwidth) take_rate(*bandwidth, "bandwidth");
    if (!latency) return;
    change_.latency = config::as_share(*latency);
    if (!(change_.latency >= 1))
      wrong(*latency, "latency", latency->text + " would be better than rated", "200 % doubles it");
  }

  /// Rated figures stay the bound that nothing beats.
  void take_rate(const Value& value, const char* key) {
    change_.rate = config::as_share(value);
    if (change_.rate > 1)
      wrong(value, key, value.text + " is more than rated", "up to 100 %; rate the device type or link higher instead");
  }

  const Value& map_;
  std::string path_;
  const Cluster& cluster_;
  config::Problems& problems_;
  Change change_;
};

}  // namespace

std::vector<config::Field> change_fields() {
  return {
      config::list("changes", config::map("change", one_change()))
          .optional()
          .beside_base()
          .doc("Stragglers, failures and slow links during a run. Planners do not know of them."),
      config::map("jitter", jitter_fields()).optional().beside_base().doc("Random variation of the time of each op.")};
}

void read_changes(const Value& map, Cluster& cluster) {
  config::Problems problems;
  if (const Value* list = map.find("changes"))
    for (std::size_t i = 0; i < list->items.size(); ++i)
      cluster.changes.push_back(ChangeReader(list->items[i], fmt::format("changes[{}]", i), cluster, problems).read());
  if (const Value* jitter = map.find("jitter")) {
    cluster.jitter.max_fraction = config::as_share(jitter->at("most"));
    cluster.jitter.seed = static_cast<std::uint64_t>(config::as_real(jitter->at("seed")));
  }
  problems.throw_if_any();
}

}  // namespace stagecraft
