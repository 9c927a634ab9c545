# Adds the native tests to a build of llama.cpp without a change to its files:
#
#   cmake -S <llama.cpp> -B <build> -DCMAKE_PROJECT_llama.cpp_INCLUDE=<this file>
#   cmake --build <build> --target test-tq3_0
#
# The programs end up beside the others, in bin. CMake 3.19 or later.

function(tqforge_native_program name)
    add_executable(${name} EXCLUDE_FROM_ALL ${ARGN})
    target_compile_features(${name} PRIVATE cxx_std_17)
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/common ${CMAKE_SOURCE_DIR}/ggml/src)
    target_link_libraries(${name} PRIVATE llama-common llama ggml Threads::Threads ${CMAKE_DL_LIBS})
endfunction()

function(tqforge_native_tests)
    find_package(Threads REQUIRED)
    set(folder ${CMAKE_CURRENT_FUNCTION_LIST_DIR})

    file(GLOB topics CONFIGURE_DEPENDS ${folder}/*.cpp)
    tqforge_native_program(test-tq3_0 ${topics})
    # kv-context puts a function of its own before one of ggml
    set_target_properties(test-tq3_0 PROPERTIES ENABLE_EXPORTS ON)
    # run by quantize
    if (TARGET llama-quantize)
        add_dependencies(test-tq3_0 llama-quantize)
    endif()

    tqforge_native_program(test-fa-paths ${folder}/programs/test-fa-paths.cpp)

    tqforge_native_program(test-backend-ops-tq3_0 ${folder}/programs/test-backend-ops-tq3_0.cpp)
    if (TARGET test-backend-ops)
        add_dependencies(test-backend-ops-tq3_0 test-backend-ops)
    endif()
endfunction()

# the targets of llama.cpp are there at the end
cmake_language(DEFER CALL tqforge_native_tests)
