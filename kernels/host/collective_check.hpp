// Numbers to run a collective on whose result is known, to count the wrong ones afterwards, as
// nccl-tests does. They are small integers: sums are exact in every format and every order.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "sim/program/program.hpp"

namespace rehearse {

struct CollectiveCheck {
  CollectiveKind kind{};
  std::size_t ranks = 1;  // of the group
  std::uint32_t root = 0;
  std::size_t elements = 0;  // of the whole data
  Precision numbers = Precision::fp32;

  /// How long data and result must be: the blocks of an all-to-all may be longer than the data.
  Bytes room() const;
  /// Writes what the rank at `position` of the group begins with, and clears its result.
  void fill(std::size_t position, std::span<std::byte> data, std::span<std::byte> result) const;
  /// How many numbers of its result are not what they must be.
  std::size_t wrong(std::size_t position, std::span<const std::byte> data,
                    std::span<const std::byte> result) const;

 private:
  float first(std::size_t position, std::size_t element) const;
  float sum(std::size_t element) const;
  Slice part(std::size_t position) const;  // counted in elements
  bool in_part(std::size_t position, std::size_t element) const;
  std::size_t owner(std::size_t element) const;
  /// None where the collective promises nothing.
  std::optional<float> expected_data(std::size_t position, std::size_t element) const;
  std::size_t wrong_result(std::size_t position, std::span<const std::byte> result) const;
};

}  // namespace rehearse
