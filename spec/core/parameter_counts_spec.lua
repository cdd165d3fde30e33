-- spec/core/parameter_counts_spec.lua: parameters of each module, counted in one walk.
local lt = require "ltrain"
local parameter_counts = require "ltrain.core.parameter_counts"
local walk = require "ltrain.core.walk"

local nn = lt.nn

local function compare(net)
  local modules = walk.modules(net)
  local counts, trainable = parameter_counts(modules)
  for _, entry in ipairs(modules) do
    assert.equal(entry.module:num_parameters(), counts[entry.module], entry.name)
  end
  assert.equal(net:num_parameters { trainable = true }, trainable)
  return counts
end

describe("parameter_counts", function()
  it("counts the numbers of each module and of those in it", function()
    local net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 5), nn.ReLU()))
    net[1]:requires_grad_(false)
    local counts = compare(net)
    assert.equal(3 * 4 + 4 + 4 * 5 + 5, counts[net])
    assert.equal(4 * 5 + 5, counts[net[2]])
  end)

  it("counts once what hangs in several places", function()
    local shared, tied = nn.Sequential(nn.Linear(2, 3)), nn.Linear(3, 2)
    tied.weight = shared[1].weight
    local net = nn.Sequential(nn.Sequential(shared, shared), nn.Sequential(nn.Linear(1, 7), shared),
      tied)
    local counts = compare(net)
    assert.equal(9, counts[net[1]])
    assert.equal(14 + 9, counts[net[2]])
    assert.equal(9 + 14 + 2, counts[net])
  end)

  it("leaves buffers out", function() compare(nn.Sequential(nn.BatchNorm2d(3))) end)
end)

describe("modules inside each other, 400 deep", function()
  local net = nn.Linear(1, 1)
  for _ = 1, 400 do net = nn.Sequential(net) end

  it("have names, a state, a text and a summary", function()
    local name = ("0."):rep(400)
    local state = net:state_dict()
    assert.equal(1, state[name .. "weight"]:numel())
    assert.same({ missing = {}, unexpected = {} }, net:load_state_dict(state))
    assert.matches("Linear%(1, 1%)", tostring(net))
    local text = lt.callbacks.ModelSummary.text(net, -1)
    assert.is_truthy(text:find("\n399 | " .. name:sub(1, -2) .. " | Linear     | 2 ", 1, true))
    assert.matches("\n1 +| 0%.0 +| Sequential", lt.callbacks.ModelSummary.text(net, 2))
    assert.is_nil(lt.callbacks.ModelSummary.text(net, 2):find("0.0.0", 1, true))
  end)
end)

describe("the way to a value", function()
  it("leads through plain tables", function()
    local net = lt.Module:extend("Net")()
    net.blocks = { { a = nn.Linear(1, 1) }, { a = nn.Sequential(nn.Linear(1, 1)) } }
    local item = walk.tensors(net)[3]
    assert.equal("blocks.1.a.0.weight", item.name)
    assert.same({ "blocks", 2, "a", 1, "weight" }, walk.keys(item))
    assert.same({ "weight" }, walk.way(item))
    assert.same({ "blocks", 2, "a" }, walk.way(walk.modules(net)[3].item))
  end)
end)
