-- spec/ports/ports_spec.lua: models of tutorials and papers, trained for 20 steps from the weights
-- that they have in PyTorch (record.py), have the same losses.
local formulas = require "spec.ports.formulas"
local recorded = require "spec.recorded"

local TOLERANCE <const> = 1e-4
local NO_PORTS <const> = {formulas = true, ports_spec = true}

local losses_of <const> = {}
for _, row in ipairs(recorded "spec/ports/recorded.jsonl") do losses_of[row.name] = row.losses end

local function names()
  local list = {}
  local pipe <close> = assert(io.popen "ls spec/ports/*.lua")
  for path in pipe:lines() do
    local name = path:match "([%w_]+)%.lua$"
    if not NO_PORTS[name] then list[#list + 1] = name end
  end
  return list
end

describe("ports", function()
  it("are those that PyTorch's losses are recorded of, thirty at least", function()
    local of_pytorch = {}
    for name in pairs(losses_of) do of_pytorch[#of_pytorch + 1] = name end
    table.sort(of_pytorch)
    local here = names()
    table.sort(here)
    assert.same(of_pytorch, here)
    assert.is_true(#here >= 30)
  end)

  for _, name in ipairs(names()) do
    it("train as in PyTorch: " .. name, function()
      local losses, wanted = require("spec.ports." .. name)(formulas), losses_of[name]
      assert.equal(20, #losses)
      for step, loss in ipairs(wanted) do
        local bound = TOLERANCE * math.max(1, math.abs(loss))
        assert(math.abs(losses[step] - loss) <= bound,
          ("step %d: the loss is %.9g, PyTorch's %.9g"):format(step, losses[step], loss))
      end
    end)
  end
end)
