// A program has the same few collectives over and over: each group is looked at once.
#include "strategies/collectives/decide.hpp"

#include <map>
#include <memory>
#include <tuple>

#include "sim/engine/cost_model.hpp"
#include "sim/engine/fast_simulator.hpp"
#include "strategies/collectives/choose.hpp"
#include "strategies/collectives/expand.hpp"

namespace rehearse {

namespace {

/// `auto` for any collective of one machine.
class AutomaticChoice {
 public:
  explicit AutomaticChoice(Routing& routing) : routing_{routing} {}

  Candidate operator()(const Collective& work) {
    auto& chooser = choosers_[{work.kind, work.root, work.group}];
    if (!chooser)
      chooser = std::make_unique<CollectiveChooser>(
          CollectiveShape{.kind = work.kind, .group = work.group, .root = work.root}, routing_,
          CollectiveChooser::Wish{});
    return chooser->at(work.data.size, engine_).front();
  }

 private:
  Routing& routing_;
  Roofline cost_;
  FastSimulator engine_{routing_, cost_};
  using Key = std::tuple<CollectiveKind, std::uint32_t, std::vector<Rank>>;
  std::map<Key, std::unique_ptr<CollectiveChooser>> choosers_;
};

}  // namespace

Program decide_collectives(Program program, Routing& routing, const AlgorithmChoice& choice) {
  const bool is_named = choice.algorithm != "auto";
  if (is_named) algorithm(choice.algorithm);  // throws where there is none
  if (program.protocols.empty()) program.protocols = routing.topology().protocols;
  AutomaticChoice automatic(routing);
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto id = static_cast<OpId>(i);
    if (program[id].kind != WorkKind::collective) continue;
    const Collective& work = program.collective(program[id]);
    if (is_named) {
      program.set_algorithm(id, choice.algorithm, choice.protocol);
    } else if (work.algorithm.empty()) {
      const Candidate best = automatic(work);
      program.set_algorithm(id, best.algorithm, best.protocol);
    }
  }
  program.drop_unused_collectives();
  return program;
}

Program expand_collectives(const Program& program, Routing& routing,
                           const AlgorithmChoice& choice) {
  return expand_collectives(decide_collectives(program, routing, choice), routing);
}

}  // namespace rehearse
