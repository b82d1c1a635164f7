// Scenarios whose [imperfection], [compression] or mixed precision cannot be meant.
#pragma once

#include "tests/bad_input/scenario_case.hpp"

namespace rehearse::bad_input {

inline const std::vector<Case> scenario_methods{
    on_ring("slow_rank_that_is_not_there",
            "[imperfection]\nslow_ranks = [3, 8]\nslow_rank_factor = 2\n",
            "s.toml:6:14: error: slow_ranks names rank 8, but ranks are 0 to 7"),
    on_ring("slow_rank_twice", "[imperfection]\nslow_ranks = [3, 3]\nslow_rank_factor = 2\n",
            "s.toml:6:14: error: slow_ranks names rank 3 twice"),
    on_ring("slow_ranks_as_fast_as_others", "[imperfection]\nslow_ranks = [3]\n",
            "s.toml:6:14: error: slow_ranks without slow_rank_factor changes nothing"),
    on_ring("nobody_is_slow", "[imperfection]\nslow_rank_factor = 2\n",
            "s.toml:6:20: error: slow_rank_factor without slow_ranks changes nothing"),
    on_ring("a_factor_below_one", "[imperfection]\nslow_ranks = [1]\nslow_rank_factor = 0.5\n",
            "s.toml:7:20: error: 'slow_rank_factor' must be from 1 to 1000, not 0.5"),
    on_ring("slow_cables_of_nobody", "[imperfection]\nslow_cable_factor = 4\n",
            "s.toml:6:21: error: slow_cable_factor and slow_cable_latency need slow_cables: of "
            "which ranks"),
    on_ring("slow_cables_that_are_not_slow", "[imperfection]\nslow_cables = [0]\n",
            "s.toml:6:15: error: slow_cables without slow_cable_factor or slow_cable_latency "
            "changes nothing"),
    on_ring("pause_without_length", "[imperfection]\npause_every = \"1ms\"\n",
            "s.toml:6:15: error: pause_every without pause_length changes nothing"),
    on_ring("pause_of_a_bare_number", "[imperfection]\npause_every = 1\npause_length = \"1us\"\n",
            "s.toml:6:15: error: pause_every: missing unit: 1; write e.g. \"2us\""),
    on_ring("nobody_pauses", "[imperfection]\npause_ranks = [1]\n",
            "s.toml:6:15: error: nobody pauses: pause_every and pause_length say when and for how "
            "long"),
    on_ring("many_seeds_of_nothing", "[imperfection]\nseeds = 10\n",
            "s.toml:6:9: error: 10 seeds would give one answer 10 times: nothing is drawn; "
            "kernel_jitter, rank_jitter, network_jitter and pauses are"),
    on_ring("unknown_distribution", "[imperfection]\ndistribution = \"normal\"\n",
            "s.toml:6:16: error: unknown distribution 'normal'; one of lognormal, gamma"),
    on_ring("dgc_with_zero_3",
            "[parallelism]\nzero_stage = 3\n[training]\noptimizer = \"momentum\"\n"
            "[compression]\nmethod = \"dgc\"\n",
            "s.toml:10:10: error: compression with zero_stage 3: ZeRO gives each rank the sum of "
            "its own part of the gradients, and compressed ones are not summed part by part"),
    on_ring("compression_of_one_replica",
            "[parallelism]\ntp = 4\npp = 2\n[compression]\nmethod = \"int8\"\n",
            "s.toml:9:10: error: compression with dp 1: no gradients travel, there is nothing to "
            "compress"),
    on_ring("dgc_with_adam", "[compression]\nmethod = \"dgc\"\n",
            "s.toml:6:10: error: dgc is for optimizer sgd or momentum: it corrects that momentum "
            "for what is sent late, and there is no such correction for others"),
    on_ring("masked_without_velocities",
            "[training]\noptimizer = \"momentum\"\n[compression]\nmethod = \"dgc\"\n"
            "momentum_correction = false\n",
            "s.toml:9:23: error: factor_masking forgets velocities that only momentum_correction "
            "keeps: switch off both"),
    on_ring("sparsity_of_one", "[compression]\nmethod = \"dgc\"\nsparsity = 1\n",
            "s.toml:7:12: error: 'sparsity' must be from 0 to below 1, not 1"),
    on_ring("warm_up_of_no_epochs",
            "[training]\noptimizer = \"sgd\"\n[compression]\nmethod = \"dgc\"\nwarmup_epochs = 4\n",
            "s.toml:9:17: error: warmup_epochs needs epochs in [training]: how many there are in "
            "all"),
    on_ring("warm_up_longer_than_all",
            "[training]\noptimizer = \"sgd\"\nepochs = 3\nsamples_per_epoch = 1000\n"
            "[compression]\nmethod = \"dgc\"\nwarmup_epochs = 4\n",
            "s.toml:11:17: error: warmup_epochs 4 are more than all 3 epochs"),
    on_ring("halved_halves", "[compression]\nmethod = \"fp16\"\n",
            "s.toml:6:10: error: gradients of bf16 have 16 bits already: fp16 is for gradients in "
            "fp32"),
    on_ring("scaled_loss_of_bf16", "[training]\nloss_scaling = \"dynamic\"\n",
            "s.toml:6:16: error: loss_scaling is for fp16, whose smallest number is 6e-8; bf16 has "
            "the range of fp32"),
    on_ring("autocast_of_fp32", "[training]\ndtype = \"fp32\"\nautocast = true\n",
            "s.toml:7:12: error: autocast is for fp16 and bf16; in fp32 there is nothing to cast"),
};

}  // namespace rehearse::bad_input
