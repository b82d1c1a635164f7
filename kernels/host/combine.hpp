// What a transfer does with the bytes that arrive: lay them down, add them, keep the larger.
#pragma once

#include <cstddef>
#include <span>

#include "sim/program/program.hpp"

namespace rehearse {

/// `target` and `source` are equally long and do not overlap. Numbers of 16 bits and fewer are
/// widened to fp32, combined, and rounded back, one by one; bytes beyond the last whole number are
/// laid down as they are. The same bits however the spans are cut at whole numbers.
void combine(Combine how, Precision numbers, std::span<const std::byte> source,
             std::span<std::byte> target);

/// How a switch makes one of what its sources send; then that meets the target as the transfer
/// says.
inline Combine combine_in_switch(const Transfer& work) {
  return work.combine == Combine::max ? Combine::max : Combine::sum;
}

}  // namespace rehearse
