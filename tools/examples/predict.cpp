// How long does one training step of a scenario take, and where does the time go?
//   predict scenarios/zero-bubble.toml
#include <fmt/format.h>

#include "sim/engine/explain.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "strategies/predict/predictor.hpp"
#include "strategies/predict/ready_scenario.hpp"

using namespace rehearse;

int main(int argc, char** argv) try {
  if (argc != 2) throw InputError("usage: predict SCENARIO");
  const LoadedScenario loaded = ready_scenario(argv[1]);

  const ShapedRoofline cost;
  StepPredictor predictor(loaded.topology, cost);
  const Prediction step = predictor.quick(loaded.scenario, loaded.workload);

  fmt::print("{} on {} GPUs: {} a step, {:.1f} % MFU, {}\n", loaded.scenario.title, step.world,
             readable(step.step), 100 * step.mfu(), step.fits ? "fits" : "does not fit");
  const auto print = [&](std::string_view part, Time time) {
    const double share = time.seconds().count() / step.step.seconds().count();
    if (time > Time{})
      fmt::print("  {:<16} {:>10} {:>5.1f} %\n", part, readable(time), 100 * share);
  };
  print("compute", step.mean.compute);
  for (std::size_t d = 0; d < dimension_count; ++d)
    print(fmt::format("exposed {}", to_string(Dimension(d))), step.mean.exposed[d]);
  print("bubble", step.mean.bubble);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
