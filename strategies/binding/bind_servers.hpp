// Gives the ops of a run with parameter servers their kernels, so that workers really train and
// servers really apply what comes, in the order in which it comes.
//
//   worker   gradients ─push─▶ inbox of the worker ─[optimizer]─▶ parameters     asynchronous
//                              inbox ─[add]─▶ sums ─[optimizer]─▶ parameters     synchronous
//            parameters ◀─pull─ outbox ◀─[copy]─ parameters
//
// An asynchronous worker's gradient is the mean over its own samples, a synchronous one's its share
// of the mean over all. Every part of a bucket has a StepState of its own on its server: Adam
// counts the updates of each.
#pragma once

#include "strategies/binding/bind.hpp"
#include "strategies/servers/parameter_server.hpp"

namespace rehearse {

struct BoundServers {
  ServerPlan plan;
  ServerProgram lowered;  // with notes; its Program as it is simulated
  BoundStep bound;        // the same ops with numbers: all steps of all workers
};

/// Of a scenario with servers that has been checked. Throws InputError for what cannot be run.
BoundServers bound_servers_of(const Scenario& scenario, const Workload& workload,
                              const Topology& topology, const CostModel& cost,
                              const TrainingNumbers& numbers);

/// The updates in the order in which the servers applied them in a run of the program:
/// ServerProgram
/// ::updates by the begin of their op.
std::vector<ServerProgram::Update> applied_order(const ServerProgram& lowered,
                                                 const Timeline& timeline);

/// The program of servers as the step that tools print: every op with its phase.
StepProgram step_of_servers(const Program& program, const ServerProgram& lowered);

}  // namespace rehearse
