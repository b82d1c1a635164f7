// Column sums on a GPU: a tile of 32 columns a block, 8 of its threads side by side down a column.
//
//   threads  x: column of the tile    a row of the tile is 128 bytes, one transaction
//            y: rows y, y + 8, …      sums in fp64 (memory is slower), then 8 to 1 in shared memory
#include "kernels/math/cuda_columns.cuh"
#include "kernels/math/cuda_kernels.hpp"
#include "sim/base/assert.hpp"

namespace rehearse {

namespace {

__global__ void __launch_bounds__(block_size)
    column_sums_kernel(const float* x, RowShape shape, float* sums) {
  const ColumnTile tile{shape};
  double sum = 0;
  for (std::size_t r = threadIdx.y; tile.is_inside && r < shape.rows; r += column_threads)
    sum += static_cast<double>(x[r * shape.width + tile.column]);
  tile.add(sum, sums);
}

}  // namespace

void add_column_sums(DeviceStream stream, std::span<const float> x, RowShape shape,
                     std::span<float> sums) {
  ASSERT(x.size() == shape.size() && sums.size() == shape.width);
  if (shape.size() == 0) return;
  launch(stream, column_launch(shape), column_sums_kernel, x.data(), shape, sums.data());
}

}  // namespace rehearse
