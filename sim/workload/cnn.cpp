// Shapes and parameters of convolutional networks.
#include "sim/workload/cnn.hpp"

#include <utility>

#include "sim/base/assert.hpp"
#include "sim/workload/cnn_builder.hpp"

namespace rehearse {

std::int64_t parameters_of(const ImageModule& module, const ImageOp& op) {
  const ImageShape& input = module.tensor(op.inputs.front());
  const std::int64_t outputs = op.output.channels;
  switch (op.kind) {
    case ImageOpKind::convolution:
      return outputs * (input.channels * op.kernel_height * op.kernel_width + (op.bias ? 1 : 0));
    case ImageOpKind::fully_connected:
      return outputs * (input.size() + (op.bias ? 1 : 0));
    case ImageOpKind::batch_norm:
      return 2 * outputs;
    default:
      return 0;
  }
}

std::int64_t parameters_of(const ImageModule& module) {
  std::int64_t sum = 0;
  for (const ImageOp& op : module.ops) sum += parameters_of(module, op);
  return sum;
}

std::int64_t tensors_of(const ImageModule& module) {
  std::int64_t sum = 0;
  for (const ImageOp& op : module.ops) {
    if (op.kind == ImageOpKind::batch_norm) sum += 2;
    if (op.kind == ImageOpKind::convolution || op.kind == ImageOpKind::fully_connected)
      sum += op.bias ? 2 : 1;
  }
  return sum;
}

namespace {

ImageShape slid(const ImageShape& input, const Window& w, std::int64_t channels) {
  return {channels, (input.height + 2 * w.pad_height - w.height) / w.stride + 1,
          (input.width + 2 * w.pad_width - w.width) / w.stride + 1};
}

}  // namespace

void ImageNetwork::close() {
  if (layers_.empty()) return;
  module().output = at_;
  shape_ = current();
  layers_.back().parameters = parameters_of(module());
}

void ImageNetwork::begin(std::string name) {
  close();
  ImageModule next{.input = shape_, .takes_images = layers_.empty()};
  layers_.push_back({std::move(name), LayerKind::images, 0, 0, std::move(next)});
  at_ = 0;
}

void ImageNetwork::put(ImageOp op) {
  ASSERT(op.output.height > 0 && op.output.width > 0);
  module().ops.push_back(std::move(op));
  at_ = static_cast<std::uint32_t>(module().ops.size());
}

void ImageNetwork::convolution(const Window& w, std::int64_t channels, bool bias) {
  put({ImageOpKind::convolution,
       {at_},
       slid(current(), w, channels),
       w.height,
       w.width,
       w.stride,
       bias});
}

void ImageNetwork::batch_norm() { put({ImageOpKind::batch_norm, {at_}, current()}); }
void ImageNetwork::relu() { put({ImageOpKind::relu, {at_}, current()}); }
void ImageNetwork::dropout() { put({ImageOpKind::dropout, {at_}, current()}); }
void ImageNetwork::loss() { put({ImageOpKind::loss, {at_}, current()}); }

void ImageNetwork::max_pool(const Window& w) {
  put({ImageOpKind::max_pool,
       {at_},
       slid(current(), w, current().channels),
       w.height,
       w.width,
       w.stride});
}

void ImageNetwork::average_pool(const Window& w) {
  put({ImageOpKind::average_pool,
       {at_},
       slid(current(), w, current().channels),
       w.height,
       w.width,
       w.stride});
}

void ImageNetwork::fully_connected(std::int64_t outputs) {
  put({.kind = ImageOpKind::fully_connected,
       .inputs = {at_},
       .output = {outputs, 1, 1},
       .bias = true});
}

void ImageNetwork::convolve(const Window& window, std::int64_t channels) {
  convolution(window, channels, false);
  batch_norm();
  relu();
}

void ImageNetwork::add(std::uint32_t other) {
  ASSERT(module().tensor(other) == current());
  put({ImageOpKind::add, {at_, other}, current()});
}

void ImageNetwork::concatenate(std::vector<std::uint32_t> tensors) {
  ImageShape whole = module().tensor(tensors.front());
  whole.channels = 0;
  for (const std::uint32_t tensor : tensors) {
    const ImageShape& part = module().tensor(tensor);
    ASSERT(part.height == whole.height && part.width == whole.width);
    whole.channels += part.channels;
  }
  put({ImageOpKind::concatenate, std::move(tensors), whole});
}

Workload ImageNetwork::finish(std::string name) {
  close();
  return image_workload(std::move(name), std::move(layers_));
}

}  // namespace rehearse
