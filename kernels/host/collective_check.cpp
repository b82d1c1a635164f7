// Which rank must hold which number in the end, collective by collective.
#include "kernels/host/collective_check.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/math/number_formats.hpp"

namespace rehearse {

namespace {

float read(Precision numbers, std::span<const std::byte> from, std::size_t element) {
  const auto get = [&](auto value) {
    std::memcpy(&value, from.data() + element * sizeof(value), sizeof(value));
    return value;
  };
  if (numbers == Precision::fp16) return to_float(get(Fp16{}));
  if (numbers == Precision::bf16) return to_float(get(Bf16{}));
  return get(float{});
}

void write(Precision numbers, std::span<std::byte> into, std::size_t element, float number) {
  const auto put = [&](auto value) {
    std::memcpy(into.data() + element * sizeof(value), &value, sizeof(value));
  };
  if (numbers == Precision::fp16) return put(to_fp16(number));
  if (numbers == Precision::bf16) return put(to_bf16(number));
  put(number);
}

}  // namespace

// bf16 counts to 256, fp16 to 2048: small enough for groups of 64 and 512 ranks.
float CollectiveCheck::first(std::size_t position, std::size_t element) const {
  const std::size_t mixed = (position + 1) * 2'654'435'761U + element * 40'503U + (element >> 7);
  return static_cast<float>((mixed >> 3) % (numbers == Precision::fp32 ? 1021 : 5));
}

float CollectiveCheck::sum(std::size_t element) const {
  float total = 0;
  for (std::size_t p = 0; p < ranks; ++p) total += first(p, element);
  return total;
}

// As algorithms cut it, whatever the format: at multiples of 4 bytes.
Slice CollectiveCheck::part(std::size_t position) const {
  const std::int64_t width = bytes_of(numbers).count();
  const Slice whole{{}, {}, Bytes{static_cast<std::int64_t>(elements) * width}};
  const Slice bytes = Cut(whole, ranks)[position];
  return {{}, Bytes{bytes.offset.count() / width}, Bytes{bytes.size.count() / width}};
}

bool CollectiveCheck::in_part(std::size_t position, std::size_t element) const {
  const Slice own = part(position);
  const auto at = static_cast<std::int64_t>(element);
  return at >= own.offset.count() && at < (own.offset + own.size).count();
}

std::size_t CollectiveCheck::owner(std::size_t element) const {
  std::size_t p = 0;
  while (!in_part(p, element)) ++p;
  return p;
}

Bytes CollectiveCheck::room() const {
  return static_cast<std::int64_t>(elements + 4 * ranks) * bytes_of(numbers);
}

void CollectiveCheck::fill(std::size_t position, std::span<std::byte> data,
                           std::span<std::byte> result) const {
  std::fill(result.begin(), result.end(), std::byte{0});
  const bool holds_all = kind != CollectiveKind::all_gather;
  for (std::size_t i = 0; i < elements; ++i)
    write(numbers, data, i, holds_all || in_part(position, i) ? first(position, i) : 0);
}

std::optional<float> CollectiveCheck::expected_data(std::size_t position, std::size_t i) const {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return sum(i);
    case CollectiveKind::reduce_scatter:
      if (in_part(position, i)) return sum(i);
      break;
    case CollectiveKind::all_gather:
      return first(owner(i), i);
    case CollectiveKind::broadcast:
      return first(root, i);
    case CollectiveKind::reduce:
      if (position == root) return sum(i);
      break;
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv:
      break;
  }
  return std::nullopt;
}

// A rank's result of an all-to-all is a block from each of the others, as long as its own.
std::size_t CollectiveCheck::wrong_result(std::size_t position,
                                          std::span<const std::byte> result) const {
  std::size_t wrong = 0;
  const auto expect = [&](std::size_t at, float number) {
    wrong += read(numbers, result, at) != number;
  };
  if (ranks > 1 && kind == CollectiveKind::send_recv)
    for (std::size_t i = 0; i < elements; ++i) expect(i, first((position + ranks - 1) % ranks, i));
  if (kind != CollectiveKind::all_to_all) return wrong;
  const Slice own = part(position);
  const auto length = static_cast<std::size_t>(own.size.count());
  for (std::size_t p = 0; p < ranks; ++p)
    for (std::size_t i = 0; i < length && p != position; ++i)
      expect(p * length + i, first(p, static_cast<std::size_t>(own.offset.count()) + i));
  return wrong;
}

std::size_t CollectiveCheck::wrong(std::size_t position, std::span<const std::byte> data,
                                   std::span<const std::byte> result) const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < elements; ++i) {
    const std::optional<float> number = expected_data(position, i);
    count += number && read(numbers, data, i) != *number;
  }
  return count + wrong_result(position, result);
}

}  // namespace rehearse
