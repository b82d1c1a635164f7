// What a rank is fed with in a step, and where it leaves its loss.
#pragma once

#include "strategies/binding/bind.hpp"
#include "strategies/binding/site.hpp"

namespace rehearse {

/// Tokens of a sample; 1 where samples are vectors.
std::int64_t sample_length(const BindingModel& model);

struct FeedPlace {
  Rank rank{};
  std::size_t tensor_place = 0;
  std::uint32_t microbatch = 0;  // among those of all steps of the program
  std::uint32_t step = 0;
  std::int64_t first_sample = 0;  // of the global batch
};

/// The inputs of one micro-batch at the first layer, or its targets and its loss at the last.
void add_feed(BindingModel& model, const FeedPlace& at, bool first, BoundStep& bound);

}  // namespace rehearse
