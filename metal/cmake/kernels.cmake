# Half operations round each time, unsuffixed literals are float, nothing is fused: as in Metal without fast math.
set(kernel_options -x c++ -O2 -g1 -ffp-contract=off -fno-math-errno -fno-strict-aliasing -fvisibility=hidden
  "SHELL:-Xclang -ffloat16-excess-precision=none" "SHELL:-Xclang -cl-single-precision-constant"
  "SHELL:-include ${CMAKE_CURRENT_SOURCE_DIR}/include/metal_stdlib"
  -Wno-unknown-attributes -Wno-unknown-pragmas -Wno-duplicate-decl-specifier -Wno-undefined-inline -Wno-c99-designator -Wno-pass-failed)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND kernel_options -mf16c -mfma -mprefer-vector-width=128)
endif()
# ThreadSanitizer's instrumentation without its runtime: runtime/hooks.cpp answers the calls
set(check_options -O1 -DMETAL_EMULATOR_CHECK -fsanitize=thread -fno-vectorize -fno-slp-vectorize
  "SHELL:-mllvm -tsan-instrument-func-entry-exit=0" "SHELL:-mllvm -tsan-instrument-atomics=0"
  "SHELL:-mllvm -simplifycfg-sink-common=false" "SHELL:-mllvm -simplifycfg-hoist-common=false") # or an access loses its line

foreach(variant ${METAL_EMULATOR_VARIANTS})
  add_library(metal-emulator-${variant} SHARED backend/variant.cpp) # what GGML_BACKEND_PATH names; loads all the others
  target_compile_definitions(metal-emulator-${variant} PRIVATE METAL_EMULATOR_VARIANT="${variant}")
  target_link_libraries(metal-emulator-${variant} PRIVATE metal-emulator-backend metal-emulator-runtime "${LLAMA_LIB_DIR}/libggml-base.so")
  target_link_options(metal-emulator-${variant} PRIVATE "LINKER:--no-as-needed")
  foreach(source ${KERNEL_SOURCES})
    set(target kernels-${variant}-${source})
    set(file "${GENERATED}/${variant}/${source}.metal")
    # one library per source: inline functions of two sources must not be merged, they see different function constants
    add_library(${target} SHARED "${file}")
    set_source_files_properties("${file}" PROPERTIES LANGUAGE CXX)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    target_include_directories(${target} PRIVATE include "${GENERATED}/${variant}" "${METAL}" "${LLAMA_DIR}/ggml/src")
    target_compile_options(${target} PRIVATE ${kernel_options} $<$<STREQUAL:${variant},check>:${check_options}>)
    target_link_libraries(${target} PRIVATE metal-emulator-runtime m)
    target_link_libraries(metal-emulator-${variant} PRIVATE ${target})
  endforeach()
endforeach()
