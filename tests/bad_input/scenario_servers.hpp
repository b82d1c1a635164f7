// Scenarios whose parameter servers or local steps make no sense: each says why not.
#pragma once

#include "tests/bad_input/scenario_case.hpp"

namespace rehearse::bad_input {

inline const std::vector<Case> scenario_servers{
    on_dgx("servers_with_zero", "[parallelism]\nzero_stage = 1\n[parameter_server]\nservers = 1\n",
           "s.toml:7:14: error: ZeRO cuts the optimizer's state over the workers, but with servers "
           "the state is theirs; set zero_stage to 0"),
    on_dgx("servers_with_a_pipeline", "[parallelism]\npp = 2\n[parameter_server]\nservers = 1\n",
           "s.toml:7:6: error: a worker of a parameter server is one device with the whole model, "
           "but pp is 2; set pp to 1, or leave [parameter_server] out"),
    on_dgx("servers_with_tensor_parallelism",
           "[parallelism]\ntp = 4\n[parameter_server]\nservers = 1\n",
           "s.toml:7:6: error: a worker of a parameter server is one device with the whole model, "
           "but tp is 4; set tp to 1, or leave [parameter_server] out"),
    on_dgx("servers_with_overlapping_all_reduce",
           "[parallelism]\noverlap_grad_reduce = true\n[parameter_server]\nservers = 1\n",
           "s.toml:7:23: error: overlap_grad_reduce is about all-reduces, of which a parameter "
           "server has none; server_protocol = \"pipelined\" sends gradients beside the backward "
           "pass"),
    on_dgx("servers_with_local_steps",
           "[parameter_server]\nservers = 1\n[local_sgd]\ninterval = 4\n",
           "s.toml:9:12: error: [local_sgd] averages the parameters of replicas, "
           "[parameter_server] keeps them on servers; leave one of them out"),
    on_dgx("bounded_by_nothing", "[parameter_server]\nservers = 1\nserver_mode = \"bounded\"\n",
           "s.toml:8:15: error: server_mode bounded needs staleness: how many steps a worker may "
           "be ahead of the slowest"),
    on_dgx("a_bound_that_binds_nobody", "[parameter_server]\nservers = 1\nstaleness = 3\n",
           "s.toml:8:13: error: staleness bounds server_mode bounded; synchronous has none and "
           "asynchronous no bound"),
    on_dgx("staleness_zero",
           "[parameter_server]\nservers = 1\nserver_mode = \"bounded\"\nstaleness = 0\n",
           "s.toml:9:13: error: 'staleness' must be at least 1, not 0"),
    on_dgx("servers_on_every_node", "[parameter_server]\nservers = 3\n",
           "s.toml:7:11: error: 3 servers on nodes of their own leave no worker: the cluster has 3 "
           "nodes; add nodes, or set server_placement to colocated"),
    on_dgx("more_servers_than_devices",
           "[parameter_server]\nservers = 25\nserver_placement = \"colocated\"\n",
           "s.toml:7:11: error: 25 servers on the workers' devices, but there are 24 ranks"),
    on_dgx("servers_without_a_number", "[parameter_server]\nserver_mode = \"asynchronous\"\n",
           "s.toml:7:15: error: [parameter_server] says how, but not how many: servers is missing"),
    on_dgx("incremental_pulls_of_everything",
           "[parameter_server]\nservers = 1\nincremental_pulls = true\n",
           "s.toml:8:21: error: a dense update changes every parameter, so incremental_pulls save "
           "nothing; set update_sparsity above 0"),
    on_dgx("indices_of_everything", "[parameter_server]\nservers = 1\nindex_bytes = \"8B\"\n",
           "s.toml:8:15: error: index_bytes go with the values of a sparse update; set "
           "update_sparsity above 0"),
    on_dgx("noise_scale_of_no_training", "[training]\ngradient_noise_scale = \"2M\"\n",
           "s.toml:7:24: error: gradient_noise_scale tells how long the training takes to its "
           "target, but not how long it is; give tokens or epochs"),
    on_dgx("a_batch_that_does_not_divide_over_workers",
           "[training]\ngbs = 24\n[parameter_server]\nservers = 1\n",
           "s.toml:7:7: error: gbs 24 is no multiple of mbs 1 × dp 16 = 16"),
    on_dgx("more_steps_than_worth_waiting_for",
           "[parameter_server]\nservers = 1\nsteps_per_worker = 1000000\n",
           "s.toml:8:20: error: 16 workers × 1000000 steps = 16000000 are more than the 4000000 "
           "that are worth waiting for; set steps_per_worker to 250000 or less"),
    on_dgx(
        "local_steps_of_one_model", "[parallelism]\ntp = 12\npp = 2\n[local_sgd]\ninterval = 4\n",
        "s.toml:10:12: error: local SGD averages replicas, and there is one: world 24 / (tp 12 × "
        "pp 2 × cp 1) = dp 1; its ranks are parts of one model and must talk in every step"),
    on_dgx("local_steps_with_zero",
           "[parallelism]\nuse_distributed_optimizer = true\n[local_sgd]\ninterval = 4\n",
           "s.toml:7:29: error: ZeRO cuts one state over replicas that are equal, but local "
           "replicas differ between averages; set zero_stage to 0"),
    on_dgx("local_steps_of_split_sequences", "[parallelism]\ncp = 2\n[local_sgd]\ninterval = 4\n",
           "s.toml:7:6: error: context- and expert-parallel ranks add up gradients in every step, "
           "so they cannot be local; set cp and ep to 1"),
    on_dgx("post_local_after_nothing",
           "[local_sgd]\ninterval = 4\ninterval_kind = \"post_local\"\n",
           "s.toml:8:17: error: interval_kind post_local needs synchronous_steps: how many steps "
           "reduce their gradients first"),
    on_dgx("synchronous_steps_of_a_fixed_interval",
           "[local_sgd]\ninterval = 4\nsynchronous_steps = 3\n",
           "s.toml:8:21: error: synchronous_steps come first where interval_kind is post_local"),
    on_dgx("adaptive_to_nothing",
           "[local_sgd]\ninterval = 4\ninterval_kind = \"adaptive\"\nsimulated_steps = 100\n",
           "s.toml:8:17: error: interval_kind adaptive needs loss_half_steps: in how many steps "
           "the loss is modelled to halve"),
    on_dgx("adaptive_for_ever",
           "[local_sgd]\ninterval = 4\ninterval_kind = \"adaptive\"\nloss_half_steps = 100\n",
           "s.toml:8:17: error: interval_kind adaptive needs simulated_steps: over how many the "
           "interval shrinks"),
    on_dgx("local_steps_without_an_interval", "[local_sgd]\ninterval_kind = \"adaptive\"\n",
           "s.toml:7:17: error: [local_sgd] says how, but not how often to average: interval is "
           "missing"),
};

}  // namespace rehearse::bad_input
