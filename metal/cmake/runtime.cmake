file(GLOB runtime_files CONFIGURE_DEPENDS runtime/*.cpp)
add_library(metal-emulator-runtime SHARED ${runtime_files})
target_include_directories(metal-emulator-runtime PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}" include)
target_compile_options(metal-emulator-runtime PRIVATE -Wall -Wextra -g1 -O2)
target_compile_definitions(metal-emulator-runtime PRIVATE
  METAL_EMULATOR_SYMBOLIZER="${SYMBOLIZER}" METAL_EMULATOR_DEFAULT_SUPPRESSIONS="${METAL_EMULATOR_SUPPRESSIONS}"
  $<$<BOOL:${METAL_EMULATOR_UCONTEXT}>:METAL_EMULATOR_UCONTEXT>)
target_link_libraries(metal-emulator-runtime PRIVATE ${CMAKE_DL_LIBS})

# llama.cpp's dispatch code, unchanged. Some of its files rely on headers that Apple's standard library includes by itself.
set(dispatch_files ggml-metal.cpp ggml-metal-device.cpp ggml-metal-common.cpp ggml-metal-ops.cpp ggml-metal-fusion.cpp ggml-metal-tuning.cpp)
list(TRANSFORM dispatch_files PREPEND "${METAL}/")
set(dispatch_headers "SHELL:-include algorithm" "SHELL:-include cstring" "SHELL:-include memory" "SHELL:-include vector")

function(add_backend_library target)
  add_library(${target} SHARED ${ARGN})
  target_include_directories(${target} PRIVATE "${LLAMA_DIR}/ggml/include" "${LLAMA_DIR}/ggml/src" "${METAL}" "${GENERATED}" backend)
  target_compile_definitions(${target} PRIVATE GGML_BACKEND_DL GGML_BACKEND_BUILD GGML_BACKEND_SHARED GGML_SHARED)
  target_compile_options(${target} PRIVATE -O0 -g1 -w ${dispatch_headers})
  target_link_libraries(${target} PRIVATE metal-emulator-runtime "${LLAMA_LIB_DIR}/libggml-base.so")
endfunction()

# supports_op is a library of its own: it and the rest call each other, so its symbols are found when it is loaded
add_backend_library(metal-emulator-supports backend/supports.cpp)
set_property(SOURCE backend/supports.cpp APPEND PROPERTY OBJECT_DEPENDS "${GENERATED}/supports_op.inc")
add_backend_library(metal-emulator-backend ${dispatch_files} backend/buffer.cpp backend/context.cpp backend/device.cpp backend/pipeline.cpp)
target_link_libraries(metal-emulator-backend PRIVATE metal-emulator-supports)
