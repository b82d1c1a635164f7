// AlexNet, VGG-16 and ResNet-50 as torchvision has them (the one-column AlexNet of 2014, ResNet
// v1.5 with the stride in the 3×3), on images of 224 × 224 and 1,000 classes.
#include <fmt/format.h>

#include "sim/workload/cnn_builder.hpp"
#include "sim/workload/model_presets.hpp"

namespace rehearse {

namespace {

constexpr ImageShape images{3, 224, 224};
constexpr std::int64_t classes = 1000;

void convolve_with_bias(ImageNetwork& net, std::string name, const Window& window,
                        std::int64_t channels) {
  net.begin(std::move(name));
  net.convolution(window, channels, true);
  net.relu();
}

// Two hidden layers with dropout, then the classes: the end of AlexNet and of VGG, which differ in
// where the dropout stands.
void hidden_layer(ImageNetwork& net, std::string name, bool dropout_first) {
  net.begin(std::move(name));
  if (dropout_first) net.dropout();
  net.fully_connected(4096);
  net.relu();
  if (!dropout_first) net.dropout();
}

void classify(ImageNetwork& net) {
  net.begin("classes");
  net.fully_connected(classes);
  net.loss();
}

// in ─ 1×1 ─ 3×3 ─ 1×1 (four times as wide) ─ add ─ relu; the first of a stage widens its input
// too.
void bottleneck(ImageNetwork& net, std::string name, std::int64_t width, std::int64_t stride,
                bool first) {
  net.begin(std::move(name));
  const std::uint32_t input = net.here();
  net.convolve(square(1), width);
  net.convolve(square(3, stride, 1), width);
  net.convolution(square(1), 4 * width, false);
  net.batch_norm();
  const std::uint32_t main = net.here();
  std::uint32_t shortcut = input;
  if (first) {
    net.go_to(input);
    net.convolution(square(1, stride), 4 * width, false);
    net.batch_norm();
    shortcut = net.here();
  }
  net.go_to(main);
  net.add(shortcut);
  net.relu();
}

}  // namespace

Workload alexnet() {
  ImageNetwork net{images};
  convolve_with_bias(net, "conv 1", square(11, 4, 2), 64);
  net.max_pool(square(3, 2));
  convolve_with_bias(net, "conv 2", square(5, 1, 2), 192);
  net.max_pool(square(3, 2));
  convolve_with_bias(net, "conv 3", square(3, 1, 1), 384);
  convolve_with_bias(net, "conv 4", square(3, 1, 1), 256);
  convolve_with_bias(net, "conv 5", square(3, 1, 1), 256);
  net.max_pool(square(3, 2));
  hidden_layer(net, "fc 6", true);
  hidden_layer(net, "fc 7", true);
  classify(net);
  return net.finish("alexnet");
}

Workload vgg16() {
  struct Stage {
    std::int64_t channels;
    int convolutions;
  };
  ImageNetwork net{images};
  int stage = 1;
  for (const auto& [channels, convolutions] :
       {Stage{64, 2}, Stage{128, 2}, Stage{256, 3}, Stage{512, 3}, Stage{512, 3}}) {
    for (int i = 1; i <= convolutions; ++i)
      convolve_with_bias(net, fmt::format("conv {}.{}", stage, i), square(3, 1, 1), channels);
    net.max_pool(square(2, 2));
    ++stage;
  }
  hidden_layer(net, "fc 6", false);
  hidden_layer(net, "fc 7", false);
  classify(net);
  return net.finish("vgg-16");
}

Workload resnet50() {
  ImageNetwork net{images};
  net.begin("stem");
  net.convolve(square(7, 2, 3), 64);
  net.max_pool(square(3, 2, 1));
  constexpr int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage)
    for (int i = 0; i < blocks[stage]; ++i)
      bottleneck(net, fmt::format("block {}.{}", stage + 1, i), std::int64_t{64} << stage,
                 stage > 0 && i == 0 ? 2 : 1, i == 0);
  net.begin("classes");
  net.average_pool(square(7));
  net.fully_connected(classes);
  net.loss();
  return net.finish("resnet-50");
}

}  // namespace rehearse
