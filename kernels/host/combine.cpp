// fp32 in plain loops that the compiler makes wide; narrow formats by way of fp32.
#include "kernels/host/combine.hpp"

#include <cstring>

#include "kernels/math/number_formats.hpp"

namespace rehearse {

namespace {

// A NaN on either side stays one.
float larger(float a, float b) { return a < b || b != b ? b : a; }

float joined(Combine how, float a, float b) { return how == Combine::sum ? a + b : larger(a, b); }

// Slices begin at whole bytes of a buffer, and nobody promises more: each number is copied out and
// back, which costs nothing once compiled.
void combine_fp32(Combine how, const std::byte* source, std::byte* target, std::size_t count) {
  const auto each = [&](auto join) {
    for (std::size_t i = 0; i < count; ++i) {
      float a, b;
      std::memcpy(&a, target + 4 * i, 4);
      std::memcpy(&b, source + 4 * i, 4);
      a = join(a, b);
      std::memcpy(target + 4 * i, &a, 4);
    }
  };
  if (how == Combine::sum)
    each([](float a, float b) { return a + b; });
  else
    each(larger);
}

template <class Number, class Narrow>
void combine_narrow(Combine how, const std::byte* source, std::byte* target, std::size_t count,
                    Narrow narrow) {
  for (std::size_t i = 0; i < count; ++i) {
    Number a, b;
    std::memcpy(&a, target + sizeof(Number) * i, sizeof(Number));
    std::memcpy(&b, source + sizeof(Number) * i, sizeof(Number));
    a = narrow(joined(how, to_float(a), to_float(b)));
    std::memcpy(target + sizeof(Number) * i, &a, sizeof(Number));
  }
}

void add_codes(Combine how, std::span<const std::byte> source, std::span<std::byte> target) {
  ASSERT(how == Combine::sum);
  for (std::size_t i = 0; i < source.size(); ++i)
    target[i] = static_cast<std::byte>(std::to_integer<unsigned>(target[i]) +
                                       std::to_integer<unsigned>(source[i]));
}

}  // namespace

void combine(Combine how, Precision numbers, std::span<const std::byte> source,
             std::span<std::byte> target) {
  ASSERT(source.size() == target.size());
  if (source.empty()) return;
  if (how == Combine::overwrite) {
    std::memcpy(target.data(), source.data(), source.size());
    return;
  }
  const auto width = static_cast<std::size_t>(bytes_of(numbers).count());
  const std::size_t count = source.size() / width;
  if (numbers == Precision::fp16)
    combine_narrow<Fp16>(how, source.data(), target.data(), count, to_fp16);
  else if (numbers == Precision::bf16)
    combine_narrow<Bf16>(how, source.data(), target.data(), count, to_bf16);
  else if (numbers == Precision::int8)
    add_codes(how, source, target);
  else if (numbers == Precision::fp8)
    combine_narrow<E4m3>(how, source.data(), target.data(), count,
                         [](float x) { return to_e4m3(x); });
  else
    combine_fp32(how, source.data(), target.data(), count);
  const std::size_t done = count * width;
  std::memcpy(target.data() + done, source.data() + done, source.size() - done);
}

}  // namespace rehearse
