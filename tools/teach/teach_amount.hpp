// A number with its dimension, for lessons: what a formula computes with, and how people write it.
// Models use sim/base/units.hpp; a lesson's formula is read from a file, so its dimensions are
// checked when it is evaluated.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

/// Powers of second, byte and FLOP.
struct Dimensions {
  int seconds = 0, bytes = 0, flops = 0;
  friend bool operator==(const Dimensions&, const Dimensions&) = default;
};

struct Amount {
  double value = 0;
  Dimensions dimensions;
};

// Those of different dimensions are not added: throws InputError.
Amount operator+(Amount a, Amount b);
Amount operator-(Amount a, Amount b);
Amount operator*(Amount a, Amount b);
Amount operator/(Amount a, Amount b);

/// "ms", "GiB", "%", "times", "micro-batches": how large one is. Throws InputError.
Amount unit(std::string_view name);

/// Three digits that count, in a unit in which that is easy to read: "35.8 ms", "1.25 GiB".
std::string to_text(Amount amount);
/// In this unit: "29.6 %". Throws InputError where the dimensions differ.
std::string to_text(Amount amount, std::string_view unit_name);

/// What a learner types: "35", "35 ms", "0.035s"; a bare number is in `unit_name`. Throws
/// InputError with one line.
Amount parse_guess(std::string_view text, std::string_view unit_name);

}  // namespace rehearse
