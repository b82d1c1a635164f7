// Builds convolutional networks operator by operator, computing every shape on the way: the tables
// of networks then read like the papers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/workload/workload.hpp"

namespace rehearse {

/// What a convolution or a pool slides over its input; the padding is of each side.
struct Window {
  std::int64_t height = 1, width = 1, stride = 1, pad_height = 0, pad_width = 0;
};
/// The same in both directions.
constexpr Window square(std::int64_t size, std::int64_t stride = 1, std::int64_t pad = 0) {
  return {size, size, stride, pad, pad};
}

class ImageNetwork {
 public:
  explicit ImageNetwork(ImageShape images) : shape_{images} {}

  /// The next operators are a module of their own.
  void begin(std::string name);

  // Each works on the current tensor and makes the next current one.
  void convolution(const Window& window, std::int64_t channels, bool bias);
  void batch_norm();
  void relu();
  void max_pool(const Window& window);
  void average_pool(const Window& window);
  void dropout();
  void fully_connected(std::int64_t outputs);
  void loss();
  /// A convolution without bias, batch norm, ReLU: what later networks are made of.
  void convolve(const Window& window, std::int64_t channels);

  // Branches.
  std::uint32_t here() const { return at_; }
  void go_to(std::uint32_t tensor) { at_ = tensor; }
  void add(std::uint32_t other);
  void concatenate(std::vector<std::uint32_t> tensors);

  Workload finish(std::string name);

 private:
  ImageModule& module() { return std::get<ImageModule>(layers_.back().shape); }
  const ImageShape& current() { return module().tensor(at_); }
  void put(ImageOp op);
  void close();

  ImageShape shape_;  // of what the next module takes
  std::vector<Layer> layers_;
  std::uint32_t at_ = 0;
};

}  // namespace rehearse
