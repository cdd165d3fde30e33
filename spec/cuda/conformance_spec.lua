-- spec/cuda/conformance_spec.lua: the emulated cuda does what ltrain/backend.h says, its kernels
-- what the CPU's do: the program that ./dev gpu runs first, and under compute-sanitizer, on a GPU.
--
-- The threads and blocks of its grids run from the last to the first, in other specs from the first
-- on: what depends on an order fails in one of them. All kernels, some calls of each; all of them
-- with --exhaustive.
-- tags: slow, sampled
local child = require "spec.cli.child"

local BUILD <const> = os.getenv "LT_BUILD" or "build"
local SOME <const> = os.getenv "LT_EXHAUSTIVE" == "1" and "" or "LT_TEST_SOME=1/3 "
local PLUGIN <const> = BUILD .. "/spec/cuda/backends/ltrain_cuda.so"

describe("device_conformance", function()
  local title <const> = "finds nothing wrong with cuda"
  local there = io.open(PLUGIN)
  if not there then return pending(title .. " (no emulated cuda in this build)") end
  there:close()
  it(title, function()
    local command = SOME .. "EMU_ORDER=-1 '%s/spec/c/device_conformance' cuda '%s'"
    local status, out, err = child.shell(command:format(BUILD, PLUGIN), { seconds = 280 })
    assert.equal("", err)
    assert.equal(0, status)
    assert.matches("cuda conforms: 4 devices", out, 1, true)
  end)
end)
