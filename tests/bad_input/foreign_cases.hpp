// Broken files in the formats of others: JSON, NCCL XML, nvidia-smi and GraphML.
#pragma once

#include "tests/bad_input/case.hpp"

namespace rehearse::bad_input {

/// In the order of the formats.
inline const std::vector<Case> foreign_cases{
    {"json_syntax",
     "c.json",
     {{"c.json", "{\"nodes\": 2,\n \"node\": }\n"}},
     "c.json:2:10: error: syntax error while parsing value - unexpected '}'; e"
     "xpected '[', '{', or a literal"},
    {"json_with_unknown_key",
     "c.json",
     {{"c.json",
       "{\"node\": {\"kind\": \"ring\", \"gpus\": 4,\n"
       "  \"bandwith\": \"10GB/s\", \"latency\": \"1us\"}}\n"}},
     "c.json:2:3: error: unknown key 'bandwith'; did you mean 'bandwidth'?"},
    {"json_bare_number",
     "c.json",
     {{"c.json",
       "{\"node\": {\"kind\": \"ring\", \"gpus\": 4,\n"
       "  \"bandwidth\": 10, \"latency\": \"1us\"}}\n"}},
     "c.json:2:16: error: bandwidth: missing unit: 10; write e.g. \"400Gbps\""},
    {"json_list",
     "c.json",
     {{"c.json", "[1, 2]\n"}},
     "c.json:1:1: error: the file must hold one object"},
    {"truncated_xml",
     "t.xml",
     {{"t.xml",
       "<system version=\"1\">\n  <cpu numaid=\"0\">\n"
       "    <pci busid=\"0"}},
     "t.xml:3:17: error: not XML: Error parsing element attribute"},
    {"another_xml",
     "t.xml",
     {{"t.xml", "<html></html>\n"}},
     "t.xml:1:1: error: NCCL's topology begins with <system>, not <html>"},
    {"xml_without_gpu",
     "t.xml",
     {{"t.xml", "<system version=\"1\"></system>\n"}},
     "t.xml: error: describes no GPU and no CPU"},
    {"xml_with_unknown_element",
     "t.xml",
     {{"t.xml",
       "<system version=\"1\">\n  <cpu numaid=\"0\">\n"
       "    <pcie/>\n  </cpu>\n</system>\n"}},
     "t.xml:3:5: error: unknown element <pcie> in <cpu>; did you mean 'pci'?"},
    {"xml_with_bad_width",
     "t.xml",
     {{"t.xml",
       "<system version=\"1\">\n  <cpu numaid=\"0\">\n"
       "    <pci busid=\"1\" class=\"0x030200\" link_width=\"wide\"/>\n"
       "  </cpu>\n</system>\n"}},
     "t.xml:3:5: error: 'link_width' must be a number, not \"wide\""},
    {"xml_with_unknown_speed",
     "t.xml",
     {{"t.xml",
       "<system version=\"1\">\n  <cpu numaid=\"0\">\n"
       "    <pci busid=\"1\" class=\"0x030200\" link_speed=\"9 GT/s\"/>\n"
       "  </cpu>\n</system>\n"}},
     "t.xml:3:5: error: unknown link_speed \"9 GT/s\""},
    {"xml_nvlink_to_nobody",
     "t.xml",
     {{"t.xml",
       "<system version=\"1\">\n  <cpu numaid=\"0\">\n"
       "    <pci busid=\"1\"><gpu sm=\"90\"><nvlink target=\"2\" count=\"1\" tcl"
       "ass=\"0x0302\"/></gpu></pci>\n  </cpu>\n</system>\n"}},
     "t.xml:3:33: error: nvlink to unknown device \"2\""},
    {"matrix_not_symmetric",
     "m.txt",
     {{"m.txt", "\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU1\tNV1\tX\n"}},
     "m.txt: error: the matrix is not symmetric at 'GPU0' and 'GPU1'"},
    {"matrix_with_unknown_class",
     "m.txt",
     {{"m.txt", "\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU1\tFAST\tX\n"}},
     "m.txt:3:6: error: unknown connection 'FAST'; one of X, NV#, PIX, PXB, PH"
     "B, NODE, SYS"},
    {"matrix_with_a_short_row",
     "m.txt",
     {{"m.txt", "\tGPU0\tGPU1\nGPU0\tX\n"}},
     "m.txt:2:1: error: the row of 'GPU0' has 1 cells for 2 columns"},
    {"matrix_with_a_missing_row",
     "m.txt",
     {{"m.txt", "\tGPU0\tGPU1\nGPU0\tX\tNV2\n"}},
     "m.txt: error: the matrix has no row for 'GPU1'"},
    {"matrix_with_a_strange_row",
     "m.txt",
     {{"m.txt", "\tGPU0\tGPU1\nGPU0\tX\tNV2\nGPU7\tNV2\tX\n"}},
     "m.txt:3:1: error: a row for 'GPU7', which is no column"},
    {"graphml_edge_to_unknown_node",
     "g.graphml",
     {{"g.graphml",
       "<graphml><key id=\"w\" for=\"edge\" attr.name=\"bandwidth\"/><key id=\"l"
       "\" for=\"edge\" attr.name=\"latency\"/>\n"
       "<graph edgedefault=\"undirected\">\n<node id=\"a\"/><node id=\"b\"/>\n"
       "<edge source=\"a\" target=\"c\"><data key=\"w\">1GB/s</data><data key=\""
       "l\">1us</data></edge>\n</graph></graphml>\n"}},
     "g.graphml:4:1: error: edge with unknown target 'c'"},
    {"graphml_without_unit",
     "g.graphml",
     {{"g.graphml",
       "<graphml><key id=\"w\" for=\"edge\" attr.name=\"bandwidth\"/><key id=\"l"
       "\" for=\"edge\" attr.name=\"latency\"/>\n"
       "<graph edgedefault=\"undirected\">\n<node id=\"a\"/><node id=\"b\"/>\n"
       "<edge source=\"a\" target=\"b\"><data key=\"w\">10</data><data key=\"l\""
       ">1us</data></edge>\n</graph></graphml>\n"}},
     "g.graphml:4:1: error: missing unit: \"10\"; write e.g. \"400Gbps\""},
    {"graphml_without_latency",
     "g.graphml",
     {{"g.graphml",
       "<graphml><key id=\"w\" for=\"edge\" attr.name=\"bandwidth\"/><key id=\"l"
       "\" for=\"edge\" attr.name=\"latency\"/>\n"
       "<graph edgedefault=\"undirected\">\n<node id=\"a\"/><node id=\"b\"/>\n"
       "<edge source=\"a\" target=\"b\"><data key=\"w\">1GB/s</data></edge>\n"
       "</graph></graphml>\n"}},
     "g.graphml:4:1: error: edge without 'latency'"},
    {"graphml_with_unknown_key",
     "g.graphml",
     {{"g.graphml",
       "<graphml><key id=\"w\" for=\"edge\" attr.name=\"bandwidth\"/><key id=\"l"
       "\" for=\"edge\" attr.name=\"latency\"/>\n"
       "<graph edgedefault=\"undirected\">\n<node id=\"a\"/><node id=\"b\"/>\n"
       "<edge source=\"a\" target=\"b\"><data key=\"v\">1GB/s</data><data key=\""
       "l\">1us</data></edge>\n</graph></graphml>\n"}},
     "g.graphml:4:29: error: unknown key 'v'"},
    {"graphml_duplicate_node",
     "g.graphml",
     {{"g.graphml",
       "<graphml><key id=\"w\" for=\"edge\" attr.name=\"bandwidth\"/><key id=\"l"
       "\" for=\"edge\" attr.name=\"latency\"/>\n"
       "<graph edgedefault=\"undirected\">\n<node id=\"a\"/><node id=\"a\"/>\n"
       "<edge source=\"a\" target=\"b\"><data key=\"w\">1GB/s</data><data key=\""
       "l\">1us</data></edge>\n</graph></graphml>\n"}},
     "g.graphml:3:15: error: duplicate device name 'a'"},
    {"graphml_truncated",
     "g.graphml",
     {{"g.graphml", "<graphml>\n<graph"}},
     "g.graphml:2:6: error: not XML: Error parsing start element tag"},
};

}  // namespace rehearse::bad_input
