// One line for each pass: what a reader can ask for.
#include "tools/inspect/program_passes.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/engine/shaped_roofline.hpp"
#include "strategies/predict/predictor.hpp"
#include "strategies/predict/ready_scenario.hpp"

namespace rehearse {

namespace {

struct NamedPass {
  const char* name;
  std::optional<Pass> pass;  // none: every rank's own ops, and collectives in their transfers
};
constexpr std::array passes{NamedPass{"lower", Pass::lower}, NamedPass{"perturb", Pass::perturb},
                            NamedPass{"flows", Pass::flows}, NamedPass{"expand", std::nullopt}};

const NamedPass& find_pass(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedPass& pass : passes) {
    if (pass.name == name) return pass;
    names.emplace_back(pass.name);
  }
  throw InputError(fmt::format("unknown pass '{}'{}; the passes are {}", name,
                               did_you_mean(name, names), pass_names()));
}

}  // namespace

std::string pass_names() {
  std::string names;
  for (const NamedPass& pass : passes)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", pass.name);
  return names;
}

Program program_after(const std::string& name, const std::string& scenario,
                      std::span<const std::string> sets) {
  const NamedPass& pass = find_pass(name);
  const LoadedScenario loaded = ready_scenario(scenario, sets);
  if (loaded.scenario.parameter_server.servers > 0)
    throw InputError({scenario},
                     "a run with parameter servers is lowered in one pass: there is "
                     "nothing to show between");
  const ShapedRoofline cost;
  StepPredictor predictor(loaded.topology, cost);
  if (pass.pass) return predictor.lowered_to(*pass.pass, loaded.scenario, loaded.workload).program;
  constexpr std::size_t most = 2'000'000;
  std::optional<WholeStep> whole = predictor.every_transfer(loaded.scenario, loaded.workload, most);
  if (!whole)
    throw InputError({scenario},
                     fmt::format("its step has more than {} ops with every transfer: take fewer "
                                 "ranks, layers or micro-batches",
                                 most));
  return std::move(whole->expanded.program);
}

}  // namespace rehearse
