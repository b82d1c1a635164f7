// A lowered training step as a value: the Program, and what every op of it is for.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/program.hpp"
#include "strategies/layers/phase.hpp"
#include "strategies/placement/dimension.hpp"
#include "strategies/schedules/schedule.hpp"

namespace rehearse {

struct OpTag {
  Phase phase{};
  bool communicates = false;
  Dimension dimension{};  // of what communicates
  std::uint32_t stage = 0, microbatch = 0;
  Bytes bytes;  // of what communicates: the size that was asked for
  friend bool operator==(const OpTag&, const OpTag&) = default;
};

enum class MemoryKind : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  input,  // the activations, in the order of ActivationKind
  attention,
  mlp,
  norm,
  loss,
  buffers  // communication, gathered parameters, what travels between stages
};
inline constexpr std::size_t memory_kinds = 9;
using MemoryUse = std::array<Bytes, memory_kinds>;

/// Bytes that come (or go, below zero) on a role's device when an op begins or ends.
struct MemoryChange {
  OpId op{};
  bool at_end = false;
  MemoryKind kind{};
  Bytes bytes;
  friend bool operator==(const MemoryChange&, const MemoryChange&) = default;
};

/// Ranks that do the same at the same time, and the one of them that is simulated.
struct Role {
  std::string name;  // "stage 3"
  Rank rank{};       // as it stands in the Program
  std::uint32_t ranks = 1;
  std::uint32_t pipeline_rank = 0;
  MemoryUse at_rest{};                // before the first op: parameters, gradients, state, buffers
  std::vector<MemoryChange> changes;  // in the order of its streams
};

/// An op that stands for a stretch of kernels and of the collectives among them.
struct MergedOp {
  OpId op{};
  std::array<Time, dimension_count> exchanged{};  // the part of its time that is communication
  std::array<Time, dimension_count> hidden{};     // communication beside its kernels
  std::vector<Time> kernels;  // each alone, where imperfections will change them
  friend bool operator==(const MergedOp&, const MergedOp&) = default;
};

/// The ops of one action of the schedule, on all representatives of its pipeline rank.
struct ActionOps {
  Action action;
  OpId begin{}, end{};  // [begin, end)
};

/// What the strategy does with an op that is not a layer's own.
enum class Purpose : std::uint8_t {
  layer,
  hand_over,
  broadcast,          // of parameters, before the first step
  reduce,             // gradients over replicas, or their reduction to shards
  average_copies,     // of the shards
  gather,             // of parameters that ZeRO cuts
  partial_gradients,  // of weights that are whole on tensor ranks which see a part of the tokens
  tied_gradients,     // of the first and the last stage
  norm,               // of all gradients
  overflow,           // of scaled gradients
  optimizer,
  compress,            // a bucket, on its way out or back
  agree,               // on the largest gradient of a bucket
  average_parameters,  // local SGD
};

/// Of what an op is a part, for those who give it buffers and run it (binding/bind.hpp). With its
/// label, stage and micro-batch this says which work of the step it is.
struct OpNote {
  Purpose purpose{};
  std::uint32_t stage = 0;  // whose parameters it is about; an op at rest is tagged with the first
  std::uint32_t layer = 0;  // of the stage, in forward order
  std::uint32_t step = 0;   // where several are simulated in a row (local SGD)
  Bytes begin;  // of a bucket: where it begins in its stage's gradients, last layer first
  friend bool operator==(const OpNote&, const OpNote&) = default;
};

/// The ops of one call that communicates: one after the other, one for each folded group of a
/// pipeline rank, or of all of them.
struct Communication {
  OpId first{};
  std::uint32_t traffic = 0;  // below the number of the plan's uses a collective, else a hand-over
  std::uint32_t pipeline_rank = 0;
  Bytes size;
  bool is_joint = false;    // of all pipeline ranks
  bool is_at_rest = false;  // no layers of its rank follow in the step
  friend bool operator==(const Communication&, const Communication&) = default;
};

struct StepProgram {
  Program program;
  std::vector<std::vector<ActionOps>> actions;  // by pipeline rank, in its order
  std::vector<MergedOp> merged;                 // by OpId
  std::vector<Communication> communications;    // in the order of the ops
  LargeVector<OpTag> tags;                      // by OpId
  std::vector<OpNote> notes;                    // by OpId, when they were asked for
  std::vector<Role> roles;
  std::vector<Bytes> link_bytes;  // by LinkId, of all ranks; only when it was asked for
  /// Exchanges of different streams or ranks may meet on a link, or pipelined ones run beside
  /// kernels: then as one flow each they are only near the truth.
  bool needs_transfers = false;
};

enum class Grain : std::uint8_t { kernels, blocks };
/// What becomes of a step, one after the other: its ops as they were lowered, with whole
/// collectives; kernels of imperfect ranks, which is all that expand_collectives(), NCCL and other
/// executors need, of every rank; collectives and messages as one flow each.
enum class Pass : std::uint8_t { lower, perturb, flows };

struct LowerOptions {
  Grain grain = Grain::kernels;
  bool fold = true;
  bool notes = false;
  bool count_links = false;  // fill StepProgram::link_bytes; with whole kernels only
  Pass last = Pass::flows;
};

std::string_view to_string(MemoryKind);

}  // namespace rehearse
