// Calls of the kernels at the two ends of a model on a GPU, as kernels/host/end_calls.cpp makes
// them on the host.
#include <cuda_runtime_api.h>

#include "kernels/cuda/cuda_call_operands.hpp"
#include "kernels/math/cuda_kernels.hpp"
#include "kernels/math/cuda_try.hpp"

namespace rehearse {

namespace {

VocabularyPart vocabulary(const DeviceOperands& x) { return {x.rows(), x.whole(2), x.whole(3)}; }

std::span<const float> classes_in_rows(const DeviceOperands& x) {
  const std::span<float> logits = x.take<float>(x.rows().size());
  gather_classes(x.stream(), x[0], x.rows(), x.whole(2), logits);
  return logits;
}

void start_class_loss(const DeviceOperands& x) {
  LossSum* const total = x.take<LossSum>(1).data();
  cross_entropy(x.stream(), classes_in_rows(x), x.as<Token>(1), x.rows(), x.take<float>(x.whole(0)),
                total);
  CUDA_TRY(cudaMemcpyAsync(x.as<double>(2).data(), &total->sum, sizeof(double),
                           cudaMemcpyDeviceToDevice, x.stream()));
}

}  // namespace

void start_end_call(const DeviceOperands& x) {
  const auto first_word = static_cast<std::int64_t>(x.whole(2));
  switch (x.call().kernel) {
    case Kernel::embedding:
      return embedding(x.stream(), x[0], x.rows(), x.as<Token>(1), x[2], {first_word, 0.0F});
    case Kernel::embedding_backward:
      return embedding_backward(x.stream(), x[0], x.as<Token>(1), x[2], x.rows(), first_word);
    case Kernel::add_positions:
      return add_positions(x.stream(), x[0], x.rows(), x.whole(2), x[1]);
    case Kernel::positions_backward:
      return positions_backward(x.stream(), x[0], x.rows(), x.whole(2), x[1]);
    case Kernel::rotate:
      return rotate(x.stream(), x[0], {x.rows(), x.whole(2), x.whole(3), x.number(0), x.flag(4)},
                    x[1]);
    case Kernel::class_loss:
      return start_class_loss(x);
    case Kernel::class_loss_backward:
      return class_gradient(x.stream(), classes_in_rows(x), x.as<Token>(1), x.rows(), x.number(0),
                            x.as<StepState>(2).data(), x.whole(3), x[3]);
    case Kernel::vocabulary_max:
      return vocabulary_max(x.stream(), x[0], vocabulary(x), x[1]);
    case Kernel::vocabulary_sums:
      return vocabulary_sums(x.stream(), x[0], x.as<Token>(1), x[2], vocabulary(x), x[3], x[4]);
    case Kernel::vocabulary_softmax:
      return vocabulary_softmax(x.stream(), x[0], x[1], x[2], x[3], vocabulary(x), x[4],
                                x.as<double>(5).data());
    case Kernel::vocabulary_gradient:
      return vocabulary_gradient(x.stream(), x[0], x.as<Token>(1), x.number(0),
                                 x.as<StepState>(2).data(), vocabulary(x), x[3]);
    default:
      ASSERT(false);
  }
}

}  // namespace rehearse
