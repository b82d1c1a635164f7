// Calls of the kernels of deep gradient compression. Magnitudes are compared as
// whole numbers: the bits of fp32 without their sign grow with the magnitude,
// which is what a radix sort needs.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernels/host/call_groups.hpp"
#include "kernels/math/deep_gradient_compression.hpp"
#include "kernels/math/philox.hpp"
#include "kernels/math/sparse.hpp"
#include "kernels/math/step_state.hpp"
#include "kernels/math/top_k.hpp"

namespace rehearse {

namespace {

// One number at random of each of as many equal parts as there are keys
// (top_k.hpp).
void sample(CallOperands& x) {
  const std::span<const float> values = x[0];
  const std::span<std::uint32_t> keys = x.as<std::uint32_t>(2);
  const auto step = static_cast<std::uint64_t>(x.as<StepState>(1)[0].taken);
  const RandomWords words{x.whole(0), x.whole(1) + step};
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t begin = values.size() * i / keys.size(),
                      end = values.size() * (i + 1) / keys.size();
    const float value = values[begin + words.word(i) % (end - begin)];
    keys[i] = std::bit_cast<std::uint32_t>(std::abs(value));
  }
}

void sort_by_byte(CallOperands& x) {
  const std::span<const std::uint32_t> from = x.as<std::uint32_t>(0);
  const std::span<std::uint32_t> to = x.as<std::uint32_t>(1);
  const auto digit = [&](std::uint32_t key) { return key >> (8 * x.whole(0)) & 0xff; };
  std::array<std::size_t, 257> begin{};
  for (const std::uint32_t key : from) ++begin[digit(key) + 1];
  for (std::size_t d = 1; d < begin.size(); ++d) begin[d] += begin[d - 1];
  for (const std::uint32_t key : from) to[begin[digit(key)]++] = key;
}

// A packet is indices, then values; places that the threshold leaves empty add
// nothing to number 0.
void select(CallOperands& x) {
  const std::span<float> velocity = x[0], accumulated = x[1];
  const std::span<const std::uint32_t> sorted = x.as<std::uint32_t>(2);
  const std::size_t sent = x.as<std::uint32_t>(3).size() / 2;
  const std::span<std::uint32_t> indices = x.as<std::uint32_t>(3).first(sent);
  const std::span<float> values = x.as<float>(3).last(sent);
  const double share = static_cast<double>(sent) / static_cast<double>(accumulated.size());
  const auto wanted =
      static_cast<std::size_t>(std::clamp(std::ceil(share * static_cast<double>(sorted.size())),
                                          1.0, static_cast<double>(sorted.size())));
  const auto threshold = std::bit_cast<float>(sorted[sorted.size() - wanted]);
  const std::vector<std::uint32_t> chosen = select_above(accumulated, threshold, sent);
  std::ranges::fill(indices, 0u);
  std::ranges::fill(values, 0.0F);
  std::ranges::copy(chosen, indices.begin());
  sparse_gather(accumulated, chosen, values.first(chosen.size()));
  sparse_clear(chosen, accumulated);
  if (x.flag(0)) sparse_clear(chosen, velocity);
}

void add_packets(CallOperands& x) {
  const std::size_t ranks = x.whole(0), words = x.as<std::uint32_t>(0).size() / ranks;
  for (std::size_t r = 0; r < ranks; ++r)
    sparse_scatter_add(x.as<float>(0).subspan(r * words + words / 2, words / 2),
                       x.as<std::uint32_t>(0).subspan(r * words, words / 2), x[1]);
}

}  // namespace

void run_compression(Kernel kernel, CallOperands& x) {
  switch (kernel) {
    case Kernel::dgc_clip:
      clip_locally(x[0], x.number(0), x.whole(0));
      return;
    case Kernel::dgc_accumulate:
      return correct_momentum(x[0], x.real(0), {x[1], x[2]});
    case Kernel::dgc_sample:
      return sample(x);
    case Kernel::dgc_sort:
      return sort_by_byte(x);
    case Kernel::dgc_select:
      return select(x);
    case Kernel::dgc_add:
      return add_packets(x);
    default:
      ASSERT(false);
  }
}

}  // namespace rehearse
