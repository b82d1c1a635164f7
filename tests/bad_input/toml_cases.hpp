// Broken cluster files in our own TOML.
#pragma once

#include "tests/bad_input/case.hpp"

namespace rehearse::bad_input {

using namespace std::string_literals;

/// A file named "…/" is a folder.
inline const std::vector<Case> toml_cases{
    {"unknown_key",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwith = \"10GB/s\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:4:1: error: unknown key 'bandwith'; did you mean 'bandwidth'?"},
    {"unknown_key_at_the_top",
     "c.toml",
     {{"c.toml",
       "noeds = 2\n[node]\nkind = \"ring\"\ngpus = 4\n"
       "bandwidth = \"10GB/s\"\nlatency = \"1us\"\n"}},
     "c.toml:1:1: error: unknown key 'noeds'; did you mean 'nodes'?"},
    {"several_mistakes_at_once",
     "c.toml",
     {{"c.toml",
       "nodes = \"two\"\n[node]\nkind = \"ring\"\n"
       "gpus = -4\nbandwidth = \"10GB/s\"\nlatency = \"1\"\n"
       "[fabric]\nkind = \"cloud\"\n"}},
     "c.toml:1:9: error: 'nodes' must be a whole number, not a string\n"
     "c.toml:4:8: error: 'gpus' must be at least 1, not -4\n"
     "c.toml:6:11: error: latency: missing unit: \"1\"; write e.g. \"2us\"\n"
     "c.toml:8:8: error: unknown kind 'cloud'; one of none, star, fat_tree, ra"
     "il_optimized, torus2d, torus3d, dragonfly"},
    {"missing_unit",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:4:13: error: bandwidth: missing unit: \"10\"; write e.g. \"400Gbp"
     "s\""},
    {"bare_number",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = 10\n"
       "latency = \"1us\"\n"}},
     "c.toml:4:13: error: bandwidth: missing unit: 10; write e.g. \"400Gbps\""},
    {"negative_bandwidth",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"-10GB/s\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:4:13: error: bandwidth: \"-10GB/s\" is negative"},
    {"zero_bandwidth",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"0GB/s\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:4:13: error: bandwidth: must be above zero"},
    {"nan_latency",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10GB/s\"\n"
       "latency = \"nan us\"\n"}},
     "c.toml:5:11: error: latency: \"nan us\" is not a finite number"},
    {"infinite_bandwidth",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"infGB/s\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:4:13: error: bandwidth: \"infGB/s\" is not a finite number"},
    {"overflowing_bandwidth",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"1e999GB/s\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:4:13: error: bandwidth: \"1e999GB/s\" is out of range"},
    {"latency_of_hours",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10GB/s\"\n"
       "latency = \"9000s\"\n"}},
     "c.toml:5:11: error: latency: more than 1 s is no latency of a machine"},
    {"wrong_unit",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10us\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:4:13: error: bandwidth: unknown unit in \"10us\"; write e.g. \"40"
     "0Gbps\""},
    {"unit_in_lower_case",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10gbps\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:4:13: error: bandwidth: unknown unit in \"10gbps\"; did you mean "
     "'Gbps'?"},
    {"wrong_type",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10GB/s\"\n"
       "latency = [\"1us\"]\n"}},
     "c.toml:5:11: error: 'latency' must be a string such as \"2us\", not a li"
     "st"},
    {"flag_for_a_count",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = true\nbandwidth = \"10GB/s\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:3:8: error: 'gpus' must be a whole number, not true or false"},
    {"missing_key",
     "c.toml",
     {{"c.toml", "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10GB/s\"\n"}},
     "c.toml:1:1: error: [node] needs the key 'latency'"},
    {"no_node",
     "c.toml",
     {{"c.toml", "nodes = 2\n"}},
     "c.toml:1:1: error: the file needs the key 'node'"},
    {"a_node_told_twice",
     "c.toml",
     {{"c.toml", "nccl_xml = \"t.xml\"\n[node]\nkind = \"single\"\n"},
      {"t.xml", "<system><cpu/></system>\n"}},
     "c.toml:1:12: error: 'node' and 'nccl_xml' both say what a node is"},
    {"unknown_node_kind",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"rign\"\ngpus = 4\nbandwidth = \"10GB/s\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:2:8: error: unknown kind 'rign'; did you mean 'ring'?"},
    {"unknown_fabric_kind",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10GB/s\"\n"
       "latency = \"1us\"\n[fabric]\nkind = \"rail_optimised\"\n"}},
     "c.toml:7:8: error: unknown kind 'rail_optimised'; did you mean 'rail_opt"
     "imized'?"},
    {"key_of_another_kind",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10GB/s\"\n"
       "latency = \"1us\"\nextent = [2, 2]\n"}},
     "c.toml:6:1: error: unknown key 'extent'"},
    {"nodes_without_fabric",
     "c.toml",
     {{"c.toml",
       "nodes = 3\n[node]\nkind = \"ring\"\ngpus = 4\n"
       "bandwidth = \"10GB/s\"\nlatency = \"1us\"\n"}},
     "c.toml:1:9: error: 3 nodes, and no fabric to join them"},
    {"zero_nodes",
     "c.toml",
     {{"c.toml",
       "nodes = 0\n[node]\nkind = \"ring\"\ngpus = 4\n"
       "bandwidth = \"10GB/s\"\nlatency = \"1us\"\n"}},
     "c.toml:1:9: error: 'nodes' must be at least 1, not 0"},
    {"a_million_million_nodes",
     "c.toml",
     {{"c.toml",
       "nodes = 1000000000000\n[node]\nkind = \"ring\"\n"
       "gpus = 4\nbandwidth = \"10GB/s\"\nlatency = \"1us\"\n"
       "[fabric]\nkind = \"star\"\nbandwidth = \"1GB/s\"\n"
       "latency = \"1us\"\n"}},
     "c.toml:1:9: error: 1000000000000 nodes x 4 devices are more than the 104"
     "8576 devices supported"},
    {"a_million_million_gpus",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 1000000000000\n"
       "bandwidth = \"10GB/s\"\nlatency = \"1us\"\n"}},
     "c.toml:3:8: error: 1000000000000 GPUs are more than the 1048576 devices "
     "supported"},
    {"number_beyond_int64",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 99999999999999999999\n"
       "bandwidth = \"10GB/s\"\nlatency = \"1us\"\n"}},
     "c.toml:3:28: error: Error while parsing decimal integer: '99999999999999"
     "999999' is not representable in 64 bits"},
    {"torus_that_does_not_fit",
     "c.toml",
     {{"c.toml",
       "nodes = 5\n[node]\nkind = \"ring\"\ngpus = 4\n"
       "bandwidth = \"10GB/s\"\nlatency = \"1us\"\n"
       "[fabric]\nkind = \"torus2d\"\nbandwidth = \"1GB/s\"\n"
       "latency = \"1us\"\nextent = [2, 3]\n"}},
     "c.toml:1:9: error: a torus of 2 x 3 has 6 places for 5 nodes"},
    {"oversubscription_below_one",
     "c.toml",
     {{"c.toml",
       "nodes = 2\n[node]\nkind = \"ring\"\ngpus = 4\n"
       "bandwidth = \"10GB/s\"\nlatency = \"1us\"\n"
       "[fabric]\nkind = \"fat_tree\"\nbandwidth = \"1GB/s\"\n"
       "latency = \"1us\"\noversubscription = 0.5\n"}},
     "c.toml:11:20: error: 'oversubscription' must be from 1 to 1024"},
    {"fat_tree_too_small",
     "c.toml",
     {{"c.toml",
       "nodes = 40\n[node]\nkind = \"single\"\n[fabric]\n"
       "kind = \"fat_tree\"\nbandwidth = \"1GB/s\"\n"
       "latency = \"1us\"\nradix = 4\nlevels = 2\n"}},
     "c.toml:1:9: error: 40 ports on leaves of 2 need 20 leaves, and a spine h"
     "as 4 ports; use levels = 3"},
    {"nics_without_sockets",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"nvswitch\"\ngpus = 8\nnics = 8\n"
       "nvlink = { bandwidth = \"1GB/s\", latency = \"1us\" }\n"}},
     "c.toml:4:8: error: NICs and PCIe switches need 'sockets' to hang on"},
    {"cube_of_four",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"hybrid_cube_mesh\"\ngpus = 4\n"
       "nvlink = { bandwidth = \"1GB/s\", latency = \"1us\" }\n"}},
     "c.toml:3:8: error: a hybrid cube mesh has 8 GPUs, not 4"},
    {"schema_of_the_future",
     "c.toml",
     {{"c.toml",
       "schema = 2\n[node]\nkind = \"ring\"\ngpus = 4\n"
       "bandwidth = \"10GB/s\"\nlatency = \"1us\"\n"}},
     "c.toml:1:10: error: 'schema' must be at most 1, not 2"},
    {"payload_above_one",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10GB/s\"\n"
       "latency = \"1us\"\n[[protocol]]\nname = \"ll\"\n"
       "payload = 1.5\n"}},
     "c.toml:8:11: error: 'payload' must be above 0 and at most 1"},
    {"duplicate_device_name",
     "c.toml",
     {{"c.toml",
       "[[device]]\nname = \"a\"\nkind = \"gpu\"\n"
       "[[device]]\nname = \"a\"\nkind = \"gpu\"\n"}},
     "c.toml:5:8: error: duplicate device name 'a'"},
    {"device_of_unknown_kind",
     "c.toml",
     {{"c.toml",
       "[[device]]\nname = \"a\"\nkind = \"gpuu\"\n"
       "[[device]]\nname = \"b\"\nkind = \"gpu\"\n"}},
     "c.toml:3:8: error: unknown kind 'gpuu'; did you mean 'gpu'?"},
    {"link_to_unknown_device",
     "c.toml",
     {{"c.toml",
       "[[device]]\nname = \"a\"\nkind = \"gpu\"\n"
       "[[device]]\nname = \"b\"\nkind = \"gpu\"\n"
       "[[link]]\nsource = \"a\"\ntarget = \"c\"\n"
       "bandwidth = \"1GB/s\"\nlatency = \"1us\"\n"}},
     "c.toml:9:10: error: unknown device 'c'; did you mean 'a'?"},
    {"link_to_itself",
     "c.toml",
     {{"c.toml",
       "[[device]]\nname = \"a\"\nkind = \"gpu\"\n"
       "[[device]]\nname = \"b\"\nkind = \"gpu\"\n"
       "[[link]]\nsource = \"a\"\ntarget = \"a\"\n"
       "bandwidth = \"1GB/s\"\nlatency = \"1us\"\n"}},
     "c.toml:9:10: error: a link from a device to itself"},
    {"unreachable_rank",
     "c.toml",
     {{"c.toml",
       "[[device]]\nname = \"a\"\nkind = \"gpu\"\n"
       "[[device]]\nname = \"b\"\nkind = \"gpu\"\n"}},
     "c.toml: error: rank 1 ('b') cannot be reached from rank 0 ('a')"},
    {"reachable_one_way_only",
     "c.toml",
     {{"c.toml",
       "[[device]]\nname = \"a\"\nkind = \"gpu\"\n"
       "[[device]]\nname = \"b\"\nkind = \"gpu\"\n"
       "[[link]]\nsource = \"a\"\ntarget = \"b\"\n"
       "bandwidth = \"1GB/s\"\nlatency = \"1us\"\n"}},
     "c.toml: error: rank 0 ('a') cannot be reached from rank 1 ('b')"},
    {"nobody_computes",
     "c.toml",
     {{"c.toml", "[[device]]\nname = \"a\"\nkind = \"switch\"\n"}},
     "c.toml: error: describes no GPU and no CPU: nobody could compute"},
    {"control_character_in_a_name",
     "c.toml",
     {{"c.toml",
       "[[device]]\nname = \"a\\u0007\"\nkind = \"gpu\"\n"
       "[[device]]\nname = \"b\"\nkind = \"gpu\"\n"}},
     "c.toml:2:8: error: a device's name needs visible characters and no contr"
     "ol characters"},
    {"empty_file", "c.toml", {{"c.toml", ""}}, "c.toml: error: is empty"},
    {"toml_syntax",
     "c.toml",
     {{"c.toml", "[node\nkind = 3\n"}},
     "c.toml:1:6: error: Error while parsing table header: expected ']', saw '"
     "\\n'"},
    {"duplicate_key",
     "c.toml",
     {{"c.toml",
       "nodes = 1\nnodes = 2\n[node]\nkind = \"ring\"\n"
       "gpus = 4\nbandwidth = \"10GB/s\"\nlatency = \"1us\"\n"}},
     "c.toml:2:9: error: Error while parsing key-value pair: cannot redefine e"
     "xisting integer 'nodes'"},
    {"wrong_encoding",
     "c.toml",
     {{"c.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"10GB/s\"\n"
       "latency = \"1us\"\n# caf\351\n"}},
     "c.toml:6:6: error: byte 0xe9 is not UTF-8 text"},
    {"nul_byte",
     "c.toml",
     {{"c.toml", "nodes = 1\0\n"s}},
     "c.toml:1:10: error: byte 0x00 is not UTF-8 text"},
    {"a_directory", "d.toml", {{"d.toml/", ""}}, "d.toml: error: is a directory, not a file"},
    {"no_such_file", "none.toml", {}, "error: no such file: 'none.toml'"},
    {"no_such_machine",
     "dgx-h10",
     {},
     "error: unknown cluster 'dgx-h10'; did you mean 'dgx-h100'? (`rehearse to"
     "po show` lists the catalog)"},
    {"extends_itself",
     "c.toml",
     {{"c.toml", "extends = \"c.toml\"\n"}},
     "c.toml:1:11: error: 'extends' goes in a circle: c.toml -> c.toml"},
    {"extends_in_a_circle",
     "a.toml",
     {{"a.toml", "extends = \"b.toml\"\n"},
      {"b.toml", "extends = \"c.toml\"\n"},
      {"c.toml", "extends = \"b.toml\"\n"}},
     "c.toml:1:11: error: 'extends' goes in a circle: a.toml -> b.toml -> c.to"
     "ml -> b.toml"},
    {"extends_nobody",
     "c.toml",
     {{"c.toml", "extends = \"dgx-h1000\"\n"}},
     "c.toml:1:11: error: unknown cluster 'dgx-h1000'; did you mean 'dgx-h100'"
     "? (`rehearse topo show` lists the catalog)"},
    {"mistake_in_the_extended_file",
     "a.toml",
     {{"a.toml", "extends = \"b.toml\"\nnodes = 1\n"},
      {"b.toml",
       "[node]\nkind = \"ring\"\ngpus = 4\nbandwidth = \"-1GB/s\"\n"
       "latency = \"1us\"\n"}},
     "b.toml:4:13: error: bandwidth: \"-1GB/s\" is negative"},
};

}  // namespace rehearse::bad_input
