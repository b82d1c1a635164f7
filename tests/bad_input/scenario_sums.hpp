// Scenarios whose numbers do not come out even: sizes against the machine, the model, the batch.
#pragma once

#include "tests/bad_input/scenario_case.hpp"

namespace rehearse::bad_input {

inline const std::vector<Case> scenario_sums{
    {"world_not_divided",
     "s.toml",
     {{"s.toml",
       "[model]\npreset = \"llama-3-8b\"\n[cluster]\nname = \"dgx-h100\"\nnodes = "
       "3\n[parallelism]\ntp = 8\npp = 2\n"}},
     "s.toml:7:6: error: tp 8 × pp 2 × cp 1 = 16 does not divide world 24"},
    on_ring("more_ranks_than_the_world", "[parallelism]\npp = 12\n",
            "s.toml:6:6: error: tp 1 × pp 12 × cp 1 = 12 does not divide world 8"),
    on_ring("wrong_dp", "[parallelism]\ntp = 4\ndp = 3\n",
            "s.toml:7:6: error: dp 3 given, but world 8 / (tp 4 × pp 1 × cp 1) = 2"),
    on_ring("batch_no_multiple", "[training]\nmbs = 3\ngbs = 100\n",
            "s.toml:7:7: error: gbs 100 is no multiple of mbs 3 × dp 8 = 24"),
    on_ring("weak_batch_no_multiple", "[training]\nmbs = 3\ngbs = 8\nscaling = \"weak\"\n",
            "s.toml:7:7: error: gbs 8 of each data-parallel rank (scaling is weak) is no multiple "
            "of mbs 3"),
    on_ring("vpp_without_interleaving", "[parallelism]\npp = 2\nvpp = 2\n",
            "s.toml:7:7: error: vpp 2 needs an interleaved schedule (Interleaved1F1B, LoopedBFS, "
            "InterleavedZeroBubble), not 1F1B"),
    on_ring("three_arms_of_a_v", "[parallelism]\npp = 2\nvpp = 3\nschedule = \"ZBVZeroBubble\"\n",
            "s.toml:7:7: error: ZBVZeroBubble has 2 stages on each rank, not vpp 3"),
    on_ring("layers_over_stages", "[parallelism]\npp = 8\n",
            "s.toml:6:6: error: 12 layers do not divide over pp 8 × vpp 1 = 8 stages; say how many "
            "each gets: layers_per_stage"),
    on_ring("layers_over_virtual_stages",
            "[parallelism]\npp = 2\nvpp = 4\nschedule = \"Interleaved1F1B\"\n",
            "s.toml:6:6: error: 12 layers do not divide over pp 2 × vpp 4 = 8 stages; say how many "
            "each gets: layers_per_stage"),
    on_ring("too_few_layers_per_stage", "[parallelism]\npp = 4\nlayers_per_stage = [6, 6]\n",
            "s.toml:7:20: error: layers_per_stage has 2 entries for pp 4 × vpp 1 = 4 stages"),
    on_ring("layers_per_stage_add_up_to_less", "[parallelism]\npp = 2\nlayers_per_stage = [6, 5]\n",
            "s.toml:7:20: error: layers_per_stage adds up to 11, but the model has 12 layers"),
    on_ring("experts_of_a_dense_model", "[parallelism]\nep = 2\n",
            "s.toml:6:6: error: ep 2, but the model has no experts"),
    {"ep_out_of_nothing",
     "s.toml",
     {{"s.toml",
       "[model]\npreset = \"mixtral-8x7b\"\n[cluster]\nname = \"ring-8\"\n[parallelism]\ntp = "
       "8\nep = 2\n"}},
     "s.toml:7:6: error: ep 2 does not divide dp 1 × cp 1 = 1\n"
     "s.toml:7:6: error: ep 2 with tp 8: tensor ranks would all send the same tokens; set "
     "sequence_parallel = true"},
    {"experts_and_zero_3",
     "s.toml",
     {{"s.toml",
       "[model]\npreset = \"mixtral-8x7b\"\n[cluster]\nname = \"ring-8\"\n[parallelism]\nep = "
       "2\nzero_stage = 3\n"}},
     "s.toml:7:14: error: ep 2 with zero_stage 3: experts are gathered by nobody but their own "
     "ranks; use zero_stage 0, 1 or 2"},
    {"experts_and_parts_of_the_replicas",
     "s.toml",
     {{"s.toml",
       "[model]\npreset = \"mixtral-8x7b\"\n[cluster]\nname = \"ring-8\"\n[parallelism]\nep = "
       "2\nzero_stage = 1\nzero_shard_ranks = 4\n"}},
     "s.toml:8:20: error: zero_shard_ranks 4 with ep 2: experts have other replicas than the "
     "rest; leave zero_shard_ranks out"},
    on_ring("imbalance_without_expert_ranks", "[parallelism]\nmoe_load_imbalance = 1.5\n",
            "s.toml:6:22: error: moe_load_imbalance 1.5 is of ranks that experts are dealt to: it "
            "needs ep 2 or more, not 1"),
    on_ring("capacity_of_a_dense_model", "[parallelism]\nmoe_expert_capacity_factor = 1.25\n",
            "s.toml:6:30: error: moe_expert_capacity_factor 1.25, but the model has no experts"),
    on_ring("ring_of_plain_attention",
            "[parallelism]\ncp = 2\ncp_comm_type = \"p2p\"\n[training]\nflash_attention = false\n",
            "s.toml:7:16: error: cp_comm_type p2p joins blocks of flash attention; set "
            "flash_attention = true, or cp_comm_type = all_gather"),
    on_ring("shards_no_divisor", "[parallelism]\nzero_stage = 3\nzero_shard_ranks = 3\n",
            "s.toml:7:20: error: zero_shard_ranks 3 does not divide dp 8 × cp 1 = 8"),
    on_ring("shards_without_zero", "[parallelism]\nzero_shard_ranks = 4\n",
            "s.toml:6:20: error: zero_shard_ranks 4 needs zero_stage 1, 2 or 3, not 0"),
    on_ring("param_gather_without_zero", "[parallelism]\noverlap_param_gather = true\n",
            "s.toml:6:24: error: overlap_param_gather needs use_distributed_optimizer or "
            "zero_stage 1, 2 or 3: without it every rank keeps all parameters"),
    on_ring("order_of_unknown_dimensions", "[parallelism]\norder = \"tp-cp-ep-fsdp-pp\"\n",
            "s.toml:6:9: error: order 'tp-cp-ep-fsdp-pp': unknown dimension 'fsdp'; write e.g. "
            "\"tp-cp-ep-dp-pp\""),
    on_ring("order_that_leaves_one_out", "[parallelism]\npp = 2\norder = \"tp-dp\"\n",
            "s.toml:7:9: error: order 'tp-dp' leaves out pp, which is 2"),
    on_ring("order_with_one_twice", "[parallelism]\norder = \"tp-dp-dp-pp\"\n",
            "s.toml:6:9: error: order 'tp-dp-dp-pp' names dp 2 times"),
    on_ring("sequence_parallel_alone", "[parallelism]\nsequence_parallel = true\n",
            "s.toml:6:21: error: sequence_parallel splits activations over the tensor-parallel "
            "ranks: it needs tp 2 or more, not 1"),
    on_ring("heads_over_tensor_ranks", "[parallelism]\ntp = 8\n",
            "s.toml:6:6: error: 12 attention heads do not divide by tp 8"),
    on_dgx("sequence_over_context_ranks", "[parallelism]\ncp = 3\n",
           "s.toml:7:6: error: seq_length 1024 does not divide by 2 × cp 3 = 6"),
    on_ring(
        "micro_batches_of_an_interleaved_schedule",
        "[parallelism]\npp = 4\nvpp = 3\nschedule = \"Interleaved1F1B\"\n[training]\ngbs = 12\n",
        "s.toml:8:12: error: schedule Interleaved1F1B: 4 ranks do not divide 6 micro-batches"),
    on_ring("unknown_schedule", "[parallelism]\nschedule = \"1B1F\"\n",
            "s.toml:6:12: error: unknown schedule '1B1F'; did you mean '1F1B'?"),
    on_ring("schedule_by_name_and_by_file",
            "[parallelism]\nschedule = \"1F1B\"\nschedule_csv = \"s.csv\"\n",
            "s.toml:7:1: error: 'schedule' and 'schedule_csv' both say the schedule",
            {{"s.csv", "0F0,0B0\n"}}),
    on_ring("schedule_file_of_other_ranks", "[parallelism]\npp = 4\nschedule_csv = \"s.csv\"\n",
            "s.toml:7:16: error: schedule_csv has 2 ranks, but pp is 4\n"
            "s.toml:7:16: error: schedule_csv has 2 stages, but pp 4 × vpp 1 = 4",
            {{"s.csv", "0F0,,0B0\n,1F0,1B0\n"}}),
    on_ring("unknown_algorithm", "[collectives]\nall_reduce = \"rign\"\n",
            "s.toml:6:14: error: unknown algorithm 'rign'; did you mean 'ring'?"),
    {"unknown_protocol",
     "s.toml",
     {{"s.toml",
       "[model]\npreset = \"gpt2\"\n[cluster]\nname = \"dgx-h100\"\n[collectives]\nprotocol = "
       "\"ll64\"\n"}},
     "s.toml:6:12: error: unknown protocol of this machine 'll64'; did you mean 'll'?"},
    on_dgx("several_sums_at_once",
           "[parallelism]\ntp = 5\nschedule = \"1F1Bs\"\norder = \"pp\"\n[collectives]\nbroadcast "
           "= \"rings\"\n",
           "s.toml:7:6: error: tp 5 × pp 1 × cp 1 = 5 does not divide world 24\n"
           "s.toml:7:6: error: 12 attention heads do not divide by tp 5\n"
           "s.toml:7:6: error: 3072 columns of the MLP (intermediate_size) do not divide by tp 5\n"
           "s.toml:8:12: error: unknown schedule '1F1Bs'; did you mean '1F1B'?\n"
           "s.toml:9:9: error: order 'pp' leaves out tp, which is 5\n"
           "s.toml:11:13: error: unknown algorithm 'rings'; did you mean 'ring'?"),
};

}  // namespace rehearse::bad_input
