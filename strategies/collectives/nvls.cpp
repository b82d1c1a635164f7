// NVLS: all ranks hang on one switch that adds what they send and copies what it sends; the picture
// and the formula are at the building block's, in_switch.cpp.
#include "strategies/collectives/algorithms.hpp"
#include "strategies/collectives/in_switch.hpp"

namespace rehearse {

namespace {

CollectivePlan plan_nvls(const CollectiveShape& shape, Routing&) {
  CollectivePlan plan;
  SwitchGroup group{.ranks = shape.group};
  for (std::size_t p = 0; p < shape.group.size(); ++p)
    group.owns.push_back(static_cast<std::uint32_t>(p));
  const SwitchPart part = shape.kind == CollectiveKind::reduce_scatter ? SwitchPart::reduce_scatter
                          : shape.kind == CollectiveKind::all_gather   ? SwitchPart::all_gather
                                                                       : SwitchPart::all_reduce;
  // One rank has nothing to add and nobody to copy to.
  if (shape.group.size() > 1) declare_switch(plan.pattern, group, part, {}, Connection{});
  plan.paced = true;
  plan.pipeline = {2, shape.group.size(), chunks_in_switch * shape.group.size(), true};
  plan.emit = [group = std::move(group)](Emission& out, const CollectiveBuffers& buffers,
                                         std::size_t pieces, std::size_t) {
    emit_switch(out, {&group, 1}, {&buffers.data, 1}, pieces);
  };
  return plan;
}

Refusal nvls_refusal(const CollectiveShape& shape, const Topology& topology) {
  if (const auto refusal = refuse_all_but(
          {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather},
          shape.kind))
    return refusal;
  if (shape.group.size() > 1 && !share_reducing_switch(topology, {&shape.group, 1}))
    return "its ranks share no switch that reduces";
  return std::nullopt;
}

}  // namespace

Algorithm by_nvls() {
  return {"nvls", "the node's switch adds and copies", nvls_refusal, plan_nvls, true};
}

}  // namespace rehearse
