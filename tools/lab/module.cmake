# The WebAssembly module of the lab: the library, the lessons and the figures. assemble.py puts it
# into the page, so that the page opens from disk.
file(GLOB report_sources CONFIGURE_DEPENDS tools/report/*.cpp)
# Pages, and what they read from files, are the command line's.
list(FILTER report_sources EXCLUDE REGEX "_(page|report)\\.cpp$")
set(lab_tools cli/version output/chart predict/step_breakdown
    predict/training_cost sweep/sweep_axes teach/teach_amount teach/teach_formula
    teach/teach_lesson teach/teach_network teach/teach_numbers teach/teach_runs teach/teach_sheet)
list(TRANSFORM lab_tools REPLACE "(.+)" "tools/\\1.cpp")
add_executable(simulator tools/lab/module.cpp tools/lab/no_xml.cpp tools/lab/fmt.cpp
               tools/lab/answer.cpp tools/lab/bars.cpp
               ${lab_tools} ${report_sources})
embed_lessons(simulator)
target_link_libraries(simulator PRIVATE rehearse_core nlohmann_json::nlohmann_json)
target_precompile_headers(simulator REUSE_FROM sim_base)
target_compile_definitions(simulator PRIVATE REHEARSE_VERSION="${PROJECT_VERSION}")
target_link_options(simulator PRIVATE -sMODULARIZE=1 -sEXPORT_NAME=createSimulator
                    -sENVIRONMENT=web,node -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=2GB
                    -sINITIAL_MEMORY=64MB -sEXPORTED_RUNTIME_METHODS=ccall -sASSERTIONS=0)
