// Optimizers: what they keep for each parameter, and the kernels of one update.
//
//   SGD       w -= lr g                               nothing kept
//   momentum  m = b m + g;  w -= lr m                 one number
//   Adam      m, v, bias corrected                    two (Kingma and Ba 2015)
//   LARS      momentum, rate × |w| / |g| per layer    one, and a pass for the norms (You et al.
//   2017) LAMB      Adam, rate × |w| / |update|             two, and a pass for the norms (You et
//   al. 2020)
//
// In 16 bits a master copy in fp32 is kept too (Micikevicius et al. 2018): Adam's K is 12 bytes.
#pragma once

#include <vector>

#include "sim/scenario/scenario.hpp"
#include "strategies/layers/layer_pieces.hpp"

namespace rehearse {

/// How parameters and gradients are kept between the steps.
struct StateFormat {
  Bytes parameter, gradient;  // of one parameter
  Bytes state;                // the optimizer's, with the master copy: the K of the ZeRO paper
};
StateFormat state_format(const Training& training);

/// The kernels that update `parameters` of them, in order.
std::vector<Piece> optimizer_pieces(const Training& training, std::int64_t parameters);

}  // namespace rehearse
