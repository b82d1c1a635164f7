// A share of the data and a way for it.
#include "strategies/collectives/channels.hpp"

namespace rehearse {

std::vector<Slice> shares_of(Slice data, std::size_t channels) {
  std::vector<Slice> shares;
  for (std::size_t c = 0; c < channels; ++c) shares.push_back(Cut(data, channels)[c]);
  return shares;
}

Connection connection_like(std::size_t channel, std::size_t ranks_of_node) {
  Connection like;
  like.channel = static_cast<std::uint16_t>(channel / ranks_of_node);
  return like;
}

}  // namespace rehearse
