# Adds the native tests to a build of llama.cpp without a change to its files:
#
#   cmake -S <llama.cpp> -B <build> -DCMAKE_PROJECT_llama.cpp_INCLUDE=<this file>
#   cmake --build <build> --target test-tq3_0
#
# The program ends up beside the others, in bin. CMake 3.19 or later.

function(tqforge_native_tests)
    find_package(Threads REQUIRED)

    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/*.cpp)

    add_executable(test-tq3_0 EXCLUDE_FROM_ALL ${sources})
    # kv-context puts a function of its own before one of ggml
    set_target_properties(test-tq3_0 PROPERTIES ENABLE_EXPORTS ON)
    target_compile_features(test-tq3_0 PRIVATE cxx_std_17)
    target_include_directories(test-tq3_0 PRIVATE ${CMAKE_SOURCE_DIR}/common ${CMAKE_SOURCE_DIR}/ggml/src)
    target_link_libraries(test-tq3_0 PRIVATE llama-common llama ggml Threads::Threads ${CMAKE_DL_LIBS})

    # run by quantize
    if (TARGET llama-quantize)
        add_dependencies(test-tq3_0 llama-quantize)
    endif()
endfunction()

# the targets of llama.cpp are there at the end
cmake_language(DEFER CALL tqforge_native_tests)
