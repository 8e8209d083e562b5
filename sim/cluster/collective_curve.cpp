// Measured times of collectives by size: reads and writes their files, interpolates between the sizes for
// CostRules::price(), and fits three constants to one curve for `stagecraft calibrate`.

#include "sim/cluster/collective_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/elementary.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

using config::MapSpec;
using config::Problems;
using config::Value;

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const CollectiveKind kind : kCollectiveKinds) names.emplace_back(name(kind));
  return names;
}

CollectiveKind kind_of(std::string_view word) {
  return *std::find_if(std::begin(kCollectiveKinds), std::end(kCollectiveKinds),
                       [&](CollectiveKind kind) { return word == name(kind); });
}

const MapSpec& curve_fields() {
  static const MapSpec spec{
      .title = "Measured times of one collective on one system.",
      .fields = {config::text("system").doc("Devices, nodes and network."), config::text("source").doc("The report."),
                 config::text("device").fallback("\"\"").doc(
                     "Device type, as `stagecraft list devices` shows it. Default: any."),
                 config::choice("kind", kind_names()).doc("The collective."),
                 config::integer("ranks", 2, 1e7).doc("Members of the group."),
                 config::integer("nodes", 1, 1e7).doc("Nodes that they fill equally."),
                 config::list("points", config::list("point", config::real("number", 0, 1e18)).positional())
                     .positional()
                     .doc("Sizes and times: [bytes of the whole array, microseconds], sizes rising.")}};
  return spec;
}

CollectiveCurve read_curve(const Value& from, Problems& problems) {
  CollectiveCurve curve;
  curve.system = from.at("system").text;
  curve.source = from.at("source").text;
  curve.device = from.at("device").text;
  curve.kind = kind_of(from.at("kind").text);
  curve.ranks = config::as_int(from.at("ranks"));
  curve.nodes = config::as_int(from.at("nodes"));
  for (const Value& point : from.at("points").items) {
    const bool is_pair = point.items.size() == 2;
    const double bytes = is_pair ? config::as_real(point.items[0]) : 0;
    const double time = is_pair ? config::as_real(point.items[1]) : 0;
    const double last = curve.points.empty() ? 0 : curve.points.back().bytes.value;
    if (bytes > last && time > 0)
      curve.points.push_back({Bytes{bytes}, Seconds{time / 1e6}});
    else
      problems.add(point.where, "points", "a point has more bytes than the point before it, and a time above 0",
                   "write [bytes, microseconds]", "range");
  }
  return curve;
}

/// Solves a symmetric system of up to three unknowns, of which those that are `fixed` are 0. Nothing if singular.
using Row3 = std::array<double, 3>;
std::optional<Row3> solve(std::array<Row3, 3> a, Row3 b, unsigned fixed) {
  for (int i = 0; i < 3; ++i) {
    if (!(fixed & (1u << i))) continue;
    for (int k = 0; k < 3; ++k) a[i][k] = a[k][i] = 0;
    a[i][i] = 1, b[i] = 0;
  }
  for (int i = 0; i < 3; ++i) {
    for (int r = i + 1; r < 3; ++r)
      if (std::abs(a[r][i]) > std::abs(a[i][i])) std::swap(a[r], a[i]), std::swap(b[r], b[i]);
    if (a[i][i] == 0) return std::nullopt;
    for (int r = i + 1; r < 3; ++r) {
      const double factor = a[r][i] / a[i][i];
      for (int c = i; c < 3; ++c) a[r][c] -= factor * a[i][c];
      b[r] -= factor * b[i];
    }
  }
  Row3 x{};
  for (int i = 2; i >= 0; --i) {
    x[i] = b[i];
    for (int c = i + 1; c < 3; ++c) x[i] -= a[i][c] * x[c];
    x[i] /= a[i][i];
  }
  return x;
}

using Points = std::vector<CollectiveCurve::Point>;

/// Distance, and slope, of point i + 1 from point i, in logarithms.
double log_distance(const Points& p, std::size_t i) { return logarithm(p[i + 1].bytes / p[i].bytes); }
double log_slope(const Points& p, std::size_t i) { return logarithm(p[i + 1].time / p[i].time) / log_distance(p, i); }

/// The slope at a point that keeps a cubic monotone: the weighted harmonic mean of both sides (Fritsch and Butland,
/// 1984); 0 where they have different signs, and that of the one side at an end.
double slope_at(const Points& p, std::size_t i) {
  if (i == 0) return log_slope(p, 0);
  if (i + 1 == p.size()) return log_slope(p, i - 1);
  const double before = log_slope(p, i - 1), after = log_slope(p, i);
  if (before * after <= 0) return 0;
  const double left = log_distance(p, i - 1), right = log_distance(p, i);
  const double w1 = 2 * right + left, w2 = right + 2 * left;
  return (w1 + w2) / (w1 / before + w2 / after);
}

/// The cubic between points i and i + 1.
Seconds interpolate(const Points& p, std::size_t i, Bytes bytes) {
  const double h = log_distance(p, i), s = logarithm(bytes / p[i].bytes) / h, r = 1 - s;
  const double log_time = (1 + 2 * s) * r * r * logarithm(p[i].time.value) + s * r * r * h * slope_at(p, i) +
                          s * s * (3 - 2 * s) * logarithm(p[i + 1].time.value) - s * s * r * h * slope_at(p, i + 1);
  return Seconds{exponential(log_time)};
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return out + "\"";
}

double squared_error(const CollectiveCurve& curve, const Row3& x) {
  double sum = 0;
  for (const CollectiveCurve::Point& p : curve.points) {
    const double s = p.bytes.value;
    sum += std::pow((x[0] + x[1] * s + x[2] * std::sqrt(s)) / p.time.value - 1, 2);
  }
  return sum;
}

}  // namespace

std::optional<Seconds> CollectiveCurve::time_of(Bytes bytes) const {
  if (points.empty() || bytes < points.front().bytes) return std::nullopt;
  const Point& last = points.back();
  if (bytes >= last.bytes) return (bytes / last.bytes) * last.time;
  const auto above =
      std::upper_bound(points.begin(), points.end(), bytes, [](Bytes size, const Point& p) { return size < p.bytes; });
  return interpolate(points, above - points.begin() - 1, bytes);
}

const CollectiveCurve* find_curve(std::span<const CollectiveCurve> curves, CollectiveKind kind,
                                  const GroupShape& group) {
  if (group.local() * group.nodes() != group.ranks) return nullptr;
  for (const CollectiveCurve& curve : curves)
    if (curve.kind == kind && curve.ranks == group.ranks && curve.nodes == group.nodes()) return &curve;
  return nullptr;
}

std::optional<Seconds> curve_time(std::span<const CollectiveCurve> curves, CollectiveKind kind, const GroupShape& group,
                                  Bytes bytes) {
  if (group.ranks <= 1 || bytes.value <= 0) return std::nullopt;
  const CollectiveCurve* curve = find_curve(curves, kind, group);
  return curve ? curve->time_of(bytes) : std::nullopt;
}

Seconds CurveFit::time_of(Bytes bytes) const { return alpha + bytes / rate + Seconds{root * std::sqrt(bytes.value)}; }

CurveFit fit(const CollectiveCurve& curve) {
  if (curve.points.size() < 3)
    throw InputError(fmt::format("the curve of {} has {}", curve.system, pluralize(std::ssize(curve.points), "point")),
                     "three constants need three sizes at least");
  std::array<Row3, 3> a{};
  Row3 b{};
  for (const CollectiveCurve::Point& p : curve.points) {
    const double t = p.time.value, s = p.bytes.value;
    const Row3 terms = {1 / t, s / t, std::sqrt(s) / t};
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < 3; ++k) a[i][k] += terms[i] * terms[k];
      b[i] += terms[i];
    }
  }
  std::optional<Row3> best;
  for (const unsigned fixed : {0u, 1u, 4u, 5u}) {  // The rate is always there.
    const std::optional<Row3> x = solve(a, b, fixed);
    const bool valid = x && (*x)[0] >= 0 && (*x)[1] > 0 && (*x)[2] >= 0;
    if (valid && (!best || squared_error(curve, *x) < squared_error(curve, *best))) best = x;
  }
  STAGECRAFT_CHECK(best);  // With times above zero, the rate alone is always a solution.
  return {Seconds{(*best)[0]}, Bandwidth{1 / (*best)[1]}, (*best)[2]};
}

const MapSpec& collective_curve_fields() {
  static const MapSpec spec{.title = "Measured times of collectives.",
                            .fields = {config::choice("schema", {"collectives/1"}).doc("Kind and version of the file."),
                                       config::text("title").doc("Title for people."),
                                       config::text("source").doc("Where the times come from."),
                                       config::list("curves", config::map("curve", curve_fields()))
                                           .positional()
                                           .doc("One for each system, collective and group.")}};
  return spec;
}

std::vector<CollectiveCurve> read_collective_curves(const Value& checked) {
  std::vector<CollectiveCurve> curves;
  Problems problems;
  for (const Value& curve : checked.at("curves").items) curves.push_back(read_curve(curve, problems));
  problems.throw_if_any();
  return curves;
}

std::vector<CollectiveCurve> load_collective_curves(const std::string& file) {
  Problems problems;
  Value root = config::parse_yaml_file(file, problems);
  problems.throw_if_any();
  root = config::check(root, collective_curve_fields(), "", problems);
  problems.throw_if_any();
  return read_collective_curves(root);
}

std::string to_yaml(std::span<const CollectiveCurve> curves, const std::string& title, const std::string& source) {
  std::string text =
      fmt::format("schema: collectives/1\ntitle: {}\nsource: {}\ncurves:\n", quoted(title), quoted(source));
  for (const CollectiveCurve& c : curves) {
    text += fmt::format("  - system: {}\n", quoted(c.system));
    if (!c.device.empty()) text += fmt::format("    device: {}\n", c.device);
    text += fmt::format("    source: {}\n    kind: {}\n    ranks: {}\n    nodes: {}\n    points: [\n", quoted(c.source),
                        name(c.kind), c.ranks, c.nodes);
    for (const CollectiveCurve::Point& p : c.points)
      text += fmt::format("      [{:.0f}, {:.9g}]{}\n", p.bytes.value, p.time.value * 1e6,
                          &p == &c.points.back() ? "]" : ",");
  }
  return text;
}

}  // namespace stagecraft
