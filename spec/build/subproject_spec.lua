-- spec/build/subproject_spec.lua: ltrain within somebody else's project in CMake.
-- tags: slow, unsanitized
local child = require "spec.cli.child"
local shell = require "spec.build.shell"

local ROOT <const> = os.getenv("LT_ROOT")

-- add_subdirectory may add to the targets and nothing else that the project above can see.
local PROJECT <const> = [[
cmake_minimum_required(VERSION 3.20)
project(above LANGUAGES C)
set(seen CMAKE_BUILD_TYPE CMAKE_C_FLAGS CMAKE_C_STANDARD CMAKE_C_COMPILER_LAUNCHER
  CMAKE_POSITION_INDEPENDENT_CODE CMAKE_C_VISIBILITY_PRESET CMAKE_MODULE_PATH)
foreach(name IN LISTS seen)
  set(before_${name} "${${name}}")
endforeach()
add_subdirectory("ROOT" ltrain)
foreach(name IN LISTS seen)
  if(NOT "${${name}}" STREQUAL "${before_${name}}" OR DEFINED CACHE{CPACK_GENERATOR})
    message(FATAL_ERROR "${name}: was '${before_${name}}', is '${${name}}'")
  endif()
endforeach()
foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_OPTIONS)
  get_directory_property(value ${property})
  if(value)
    message(FATAL_ERROR "${property}: '${value}'")
  endif()
endforeach()
foreach(target ltrain ltrain_module ltrain_runtime host_test uninstall package)
  if(TARGET ${target})
    message(FATAL_ERROR "a target called ${target}")
  endif()
endforeach()
add_executable(host "ROOT/examples/embed/host.c")
target_link_libraries(host PRIVATE ltrain::ltrain)
add_executable(whole "ROOT/examples/embed/host.c")
target_link_libraries(whole PRIVATE ltrain::ltrain_static)
]]

describe("ltrain within another project", function()
  local folder

  setup(function()
    if not ROOT then return end
    folder = shell.project((PROJECT:gsub("ROOT", ROOT)))
  end)
  teardown(function()
    if folder then child.remove(folder) end
  end)

  local function configure()
    if not ROOT then pending("LT_ROOT names no source") end
    return shell.need("CI=true cmake -G Ninja -S %s -B %s/b", folder, folder)
  end

  it("gives ltrain::ltrain, and changes nothing of that project", function()
    local out = configure()
    assert.matches("✗ tests in C: not within another project", out, 1, true)
  end)

  it("is not made stricter by a variable that others set, but is optimised", function()
    configure()
    local ninja = shell.need("cat %s/b/build.ninja", folder)
    assert.is_nil(ninja:find("-Werror", 1, true))
    assert.matches("FLAGS = [^\n]*%-O2 ", ninja)
  end)

  it("installs nothing", function()
    configure()
    assert.equal("", shell.need(
      "grep -l 'file(INSTALL' $(find %s/b -name cmake_install.cmake) || true", folder))
  end)

  it("builds a host that runs, shared and static", function()
    if os.getenv("LT_EXHAUSTIVE") ~= "1" then pending("only with --exhaustive: a whole build") end
    configure()
    shell.need("cmake --build %s/b --target host whole", folder)
    for _, name in ipairs { "host", "whole" } do
      local out = shell.need("%s/b/%s examples/mlp.lua 30", folder, name)
      assert.matches("\naccuracy 0%.%d+\n", out)
    end
  end)
end)
