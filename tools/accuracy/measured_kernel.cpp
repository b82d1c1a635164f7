// GEMMs, attention and sweeps over memory go through the cost model of predictions; copies cross
// the machine's own links.
#include "tools/accuracy/measured_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "sim/program/program.hpp"
#include "topology/routing.hpp"

namespace rehearse {

namespace {

constexpr double micro = 1e-6, giga = 1e9;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// "kv_heads=8" in a row's `op`.
std::int64_t option_of(const std::string& op, std::string_view name, std::int64_t otherwise) {
  const std::size_t at = op.find(name);
  std::int64_t value = 0;
  if (at == std::string::npos) return otherwise;
  const char* begin = op.data() + at + name.size();
  const auto [end, error] = std::from_chars(begin, op.data() + op.size(), value);
  const bool is_good = error == std::errc{} && end != begin && value > 0 && value <= (1 << 20);
  return is_good ? value : otherwise;
}

std::optional<Precision> math_of(const std::string& word) {
  for (std::size_t p = 0; p < precision_words.size(); ++p)
    if (precision_words[p] == word) return static_cast<Precision>(p);
  if (word == "none") return {};
  throw InputError(fmt::format("precision '{}' is not modelled", word));
}

std::int64_t needed(std::optional<std::int64_t> value, std::string_view column) {
  if (!value) throw InputError(fmt::format("'{}' is empty", column));
  return *value;
}

// Sizes of a file may be absurd: traffic is counted in floating point and bounded.
Bytes bounded(double bytes) {
  if (!(bytes < 1e18)) throw InputError(fmt::format("{:g} bytes are more than we count", bytes));
  return Bytes{static_cast<std::int64_t>(bytes)};
}

Compute gemm_of(const KernelMeasured& row) {
  const Gemm gemm{needed(row.m, "m"), needed(row.n, "n"), needed(row.k, "k"),
                  row.batch.value_or(1)};
  const auto m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n),
             k = static_cast<double>(gemm.k), batch = static_cast<double>(gemm.batch);
  Compute work{.gemm = gemm, .math = math_of(row.precision)};
  const auto operand = work.math ? static_cast<double>(bytes_of(*work.math).count()) : 4;
  const double out = contains(row.op, "out=fp32") ? 4 : std::max(operand, 2.0);
  const double times = contains(row.op, "accumulate=1") ? 2 : 1;  // read and written
  work.flops = Flops{2 * m * n * k * batch};
  work.traffic = bounded(batch * ((m * k + k * n) * operand + times * m * n * out));
  return work;
}

// m is the sequence, n the query heads, k the head size. Of the full square that the row counts, a
// causal kernel computes the half below the diagonal (strategies/layers/attention_pieces.cpp).
Compute attention_of(const KernelMeasured& row) {
  const auto s = static_cast<double>(needed(row.m, "m")),
             heads = static_cast<double>(needed(row.n, "n")),
             size = static_cast<double>(needed(row.k, "k")),
             batch = static_cast<double>(row.batch.value_or(1));
  const auto kv_heads =
      static_cast<double>(option_of(row.op, "kv_heads=", static_cast<std::int64_t>(heads)));
  const auto v = static_cast<double>(option_of(row.op, "v_dim=", static_cast<std::int64_t>(size)));
  const bool backward = contains(row.op, "bwd");
  const double pairs = contains(row.op, "causal=1") ? s * (s + 1) / 2 : s * s;
  Compute work{.flops = Flops{(backward ? 5 : 2) * batch * heads * pairs * (size + v)},
               .math = math_of(row.precision)};
  const double element = 2;
  const double once = batch * s * (heads + kv_heads) * (size + v) * element;
  const double sums = 4 * batch * s * heads;  // log of the sum of exponentials, fp32
  // Backward: all again with their gradients, and the one of Q accumulated in fp32.
  work.traffic =
      bounded(backward ? 2 * once + 2 * 4 * batch * s * heads * size + 2 * sums : once + sums);
  return work;
}

Seconds link_time(const std::vector<LinkId>& route, const Topology& machine, double bytes) {
  double slowest = 0, latency = 0;
  for (const LinkId link : route) {
    slowest = std::max(slowest, bytes / nameplate(machine[link]).count());
    latency += machine[link].latency.seconds().count();
  }
  return Seconds{latency + slowest};
}

DeviceId host_of(const Topology& machine) {
  const auto devices = machine.devices();
  for (const DeviceKind kind : {DeviceKind::memory, DeviceKind::cpu})
    for (std::size_t d = 0; d < devices.size(); ++d)
      if (devices[d].kind == kind) return static_cast<DeviceId>(d);
  throw InputError("the machine has no host to copy from");
}

Seconds copy_time(const KernelMeasured& row, const Topology& machine, double bytes) {
  Routing routing{machine};
  const auto ranks = machine.ranks();
  if (contains(row.op, "all")) throw InputError("copies to several GPUs at once are not modelled");
  if (contains(row.op, "h2d") || contains(row.op, "cpu_to"))
    return link_time(routing.route(host_of(machine), ranks[0]), machine, bytes);
  if (contains(row.op, "d2h") || contains(row.op, "to_cpu"))
    return link_time(routing.route(ranks[0], host_of(machine)), machine, bytes);
  if (contains(row.op, "gpu0_to_gpu0"))  // the bytes are read and written
    return ShapedRoofline{}.compute({.traffic = bounded(2 * bytes)}, machine.accelerators.front());
  return link_time(routing.route(ranks[0], ranks[1]), machine, bytes);
}

}  // namespace

KernelTimes predict_kernel(const KernelMeasured& row, const Topology& machine) {
  const double bytes = row.bytes ? static_cast<double>(*row.bytes) : giga;
  const double measured = row.time_us ? *row.time_us * micro : bytes / (*row.gbps * giga);
  const Accelerator& device = machine.accelerators.front();
  const ShapedRoofline cost;
  Seconds predicted{0};
  if (row.kind == "gemm")
    predicted = cost.compute(gemm_of(row), device);
  else if (row.kind == "attention")
    predicted = cost.compute(attention_of(row), device);
  else if (row.kind == "bandwidth")
    predicted = cost.compute({.traffic = bounded(bytes)}, device);
  else if (row.kind == "copy")
    predicted = copy_time(row, machine, bytes);
  else
    predicted = device.launch_overhead.seconds();
  return {predicted, Seconds{measured}};
}

}  // namespace rehearse
