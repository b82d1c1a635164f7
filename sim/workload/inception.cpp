// Inception-v3 as torchvision has it (Szegedy et al. 2015), with the auxiliary classifier that is
// trained beside it, on images of 299 × 299 and 1,000 classes.
#include <fmt/format.h>

#include <span>

#include "sim/workload/cnn_builder.hpp"
#include "sim/workload/model_presets.hpp"

namespace rehearse {

namespace {

struct Step {
  Window window;
  std::int64_t channels;
};

constexpr Window row7{1, 7, 1, 0, 3}, column7{7, 1, 1, 3, 0};
constexpr Window row3{1, 3, 1, 0, 1}, column3{3, 1, 1, 1, 0};

// From the module's input through convolutions; where it ends.
std::uint32_t branch(ImageNetwork& net, std::initializer_list<Step> steps) {
  net.go_to(0);
  for (const Step& step : steps) net.convolve(step.window, step.channels);
  return net.here();
}

std::uint32_t pooled(ImageNetwork& net, std::int64_t channels) {
  net.go_to(0);
  net.average_pool(square(3, 1, 1));
  net.convolve(square(1), channels);
  return net.here();
}

std::uint32_t halved(ImageNetwork& net) {
  net.go_to(0);
  net.max_pool(square(3, 2));
  return net.here();
}

void module_a(ImageNetwork& net, std::string name, std::int64_t pool_channels) {
  net.begin(std::move(name));
  const std::uint32_t one = branch(net, {{square(1), 64}});
  const std::uint32_t five = branch(net, {{square(1), 48}, {square(5, 1, 2), 64}});
  const std::uint32_t three =
      branch(net, {{square(1), 64}, {square(3, 1, 1), 96}, {square(3, 1, 1), 96}});
  const std::uint32_t pool = pooled(net, pool_channels);
  net.concatenate({one, five, three, pool});
}

void module_b(ImageNetwork& net, std::string name) {
  net.begin(std::move(name));
  const std::uint32_t three = branch(net, {{square(3, 2), 384}});
  const std::uint32_t twice =
      branch(net, {{square(1), 64}, {square(3, 1, 1), 96}, {square(3, 2), 96}});
  const std::uint32_t pool = halved(net);
  net.concatenate({three, twice, pool});
}

void module_c(ImageNetwork& net, std::string name, std::int64_t width) {
  net.begin(std::move(name));
  const std::uint32_t one = branch(net, {{square(1), 192}});
  const std::uint32_t seven = branch(net, {{square(1), width}, {row7, width}, {column7, 192}});
  const std::uint32_t twice = branch(
      net, {{square(1), width}, {column7, width}, {row7, width}, {column7, width}, {row7, 192}});
  const std::uint32_t pool = pooled(net, 192);
  net.concatenate({one, seven, twice, pool});
}

void module_d(ImageNetwork& net, std::string name) {
  net.begin(std::move(name));
  const std::uint32_t three = branch(net, {{square(1), 192}, {square(3, 2), 320}});
  const std::uint32_t seven =
      branch(net, {{square(1), 192}, {row7, 192}, {column7, 192}, {square(3, 2), 192}});
  const std::uint32_t pool = halved(net);
  net.concatenate({three, seven, pool});
}

// Ends in a row and a column side by side.
std::uint32_t forked(ImageNetwork& net, std::initializer_list<Step> steps) {
  const std::uint32_t stem = branch(net, steps);
  net.convolve(row3, 384);
  const std::uint32_t row = net.here();
  net.go_to(stem);
  net.convolve(column3, 384);
  net.concatenate({row, net.here()});
  return net.here();
}

void module_e(ImageNetwork& net, std::string name) {
  net.begin(std::move(name));
  const std::uint32_t one = branch(net, {{square(1), 320}});
  const std::uint32_t three = forked(net, {{square(1), 384}});
  const std::uint32_t twice = forked(net, {{square(1), 448}, {square(3, 1, 1), 384}});
  const std::uint32_t pool = pooled(net, 192);
  net.concatenate({one, three, twice, pool});
}

// A second loss in the middle of the network; the module's output is what came in.
void auxiliary(ImageNetwork& net) {
  net.begin("auxiliary classes");
  net.average_pool(square(5, 3));
  net.convolve(square(1), 128);
  net.convolve(square(5), 768);
  net.fully_connected(1000);
  net.loss();
  net.go_to(0);
}

}  // namespace

Workload inception_v3() {
  ImageNetwork net{{3, 299, 299}};
  net.begin("conv 1");
  net.convolve(square(3, 2), 32);
  net.convolve(square(3), 32);
  net.convolve(square(3, 1, 1), 64);
  net.max_pool(square(3, 2));
  net.begin("conv 2");
  net.convolve(square(1), 80);
  net.convolve(square(3), 192);
  net.max_pool(square(3, 2));
  module_a(net, "mixed 5b", 32);
  module_a(net, "mixed 5c", 64);
  module_a(net, "mixed 5d", 64);
  module_b(net, "mixed 6a");
  module_c(net, "mixed 6b", 128);
  module_c(net, "mixed 6c", 160);
  module_c(net, "mixed 6d", 160);
  module_c(net, "mixed 6e", 192);
  auxiliary(net);
  module_d(net, "mixed 7a");
  module_e(net, "mixed 7b");
  module_e(net, "mixed 7c");
  net.begin("classes");
  net.average_pool(square(8));
  net.dropout();
  net.fully_connected(1000);
  net.loss();
  return net.finish("inception-v3");
}

}  // namespace rehearse
