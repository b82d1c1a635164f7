// Convolutional networks as tables: a layer is a module of operators with one way in and one way
// out (a residual or inception block), so that pipelines may cut between any two.
//
//   in ─┬─ conv ─ bn ─ relu ─ conv ─ bn ─┬─ add ─ relu ─▶      tensor 0 is what comes in,
//       └──────── conv ─ bn ─────────────┘                     operator i makes tensor i + 1
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

struct ImageShape {
  std::int64_t channels = 0, height = 0, width = 0;
  std::int64_t size() const { return channels * height * width; }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

enum class ImageOpKind : std::uint8_t {
  convolution,
  batch_norm,
  relu,
  max_pool,
  average_pool,
  add,
  concatenate,
  dropout,
  fully_connected,
  loss  // softmax and cross-entropy
};

struct ImageOp {
  ImageOpKind kind{};
  std::vector<std::uint32_t> inputs;  // tensors
  ImageShape output;
  std::int64_t kernel_height = 1, kernel_width = 1, stride = 1;
  bool bias = false;
  friend bool operator==(const ImageOp&, const ImageOp&) = default;
};

struct ImageModule {
  ImageShape input;
  std::vector<ImageOp> ops;
  std::uint32_t output = 0;   // the tensor that goes on; others (an auxiliary loss) end here
  bool takes_images = false;  // the first: nobody needs the gradient of its input
  friend bool operator==(const ImageModule&, const ImageModule&) = default;

  const ImageShape& tensor(std::uint32_t id) const { return id == 0 ? input : ops[id - 1].output; }
};

std::int64_t parameters_of(const ImageModule&, const ImageOp&);
std::int64_t parameters_of(const ImageModule&);
/// Of how many tensors they are.
std::int64_t tensors_of(const ImageModule&);

}  // namespace rehearse
