// The parameters of a layer as tensors: their shapes on one device, how tensor
// ranks cut them, and the values they begin with, which are the same however
// the model is laid out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/layers/tensor_parallel.hpp"

namespace rehearse {

enum class TensorCut : std::uint8_t { whole, rows, columns };

/// Row-major. A bias is one row.
struct ParameterTensor {
  std::string name;  // "attention.query"; unique in its layer
  std::int64_t rows = 1, columns = 1;
  TensorCut cut = TensorCut::whole;
  double mean = 0,
         spread = 0;             // it begins with numbers drawn evenly from mean ± spread
  std::int64_t padded_rows = 0;  // of all ranks together: the vocabulary's padding; zeros
  std::int64_t rows_here = 0, columns_here = 0;  // on one rank
  std::int64_t size() const { return rows_here * columns_here; }
};

/// Of one layer on one tensor rank, in the order in which they lie in memory.
/// Their sizes add up to LayerPieces::parameters. `has_table`: a tied head that
/// holds the embedding's table again.
std::vector<ParameterTensor> tensors_of(const Workload& workload, std::size_t layer,
                                        const Sharding& how, bool has_table);

/// Where the parts of a tensor lie in the whole: element i of the part of
/// tensor rank `place` is element whole_index(…) of the whole, or none (-1)
/// where it is padding.
std::int64_t whole_index(const ParameterTensor& tensor, std::size_t place, std::int64_t i);

/// The values of a rank's part. Drawn by counter from the seed, the stream and
/// the place in the whole tensor.
void initialize(const ParameterTensor& tensor, std::uint64_t seed, std::uint64_t stream,
                std::size_t place, std::span<float> values);

}  // namespace rehearse
