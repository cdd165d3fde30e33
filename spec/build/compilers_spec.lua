-- spec/build/compilers_spec.lua: other compilers and build types compile without a warning; and by
-- what clang makes, with the OpenMP of LLVM, ranks, workers and loaders run as by what gcc makes.
-- Only in ./dev test --exhaustive, as each is a whole build.
-- tags: unsanitized
local child = require "spec.cli.child"
local shell = require "spec.build.shell"

local ROOT <const> = os.getenv("LT_ROOT")

-- What forks after work in several threads.
local FORKING <const> = { "spec/dist/launch_spec.lua", "spec/dist/ddp_spec.lua",
                          "spec/data/loader_spec.lua", "spec/data/workers_spec.lua",
                          "spec/data/iterable_workers_spec.lua" }

local function run_forking(folder)
  local out <const> = shell.need("cd '%s' && env LT_TEST_DEVICES=none LTRAIN=%s/ltrain LT_BUILD=%s "
    .. "lua5.4 tools/run_specs.lua %s %s", ROOT, folder, folder, folder,
    table.concat(FORKING, " "))
  assert.matches("\n%d+ passed, 0 failed\n$", out)
end

describe("a build", function()
  for _, compiler in ipairs { "gcc", "clang" } do
    for _, kind in ipairs { "Debug", "Release" } do
      it(("as %s by %s compiles without a warning, and runs"):format(kind, compiler), function()
        if not ROOT then pending("LT_ROOT names no source") end
        if os.getenv("LT_EXHAUSTIVE") ~= "1" then
          pending("only with --exhaustive: a whole build")
        end
        if shell.run("command -v %s", compiler) ~= 0 then pending("no " .. compiler) end
        local folder = child.folder()
        shell.need("cmake -G Ninja -S '%s' -B %s -DCMAKE_C_COMPILER=%s -DCMAKE_BUILD_TYPE=%s "
          .. "-DLT_WERROR=ON", ROOT, folder, compiler, kind)
        shell.need("ninja -C %s", folder)
        assert.equal("tensor([2., 2.])\n", shell.need("%s/ltrain -e 'print(lt.ones(2) + 1)'",
          folder))
        if compiler == "clang" and kind == "Release" then run_forking(folder) end
        child.remove(folder)
      end)
    end
  end
end)
