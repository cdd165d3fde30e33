-- spec/parallel/models_spec.lua: the plans of lt.models give what one rank gives.
-- tags: slow
local scripts = require "spec.parallel.small_models"

-- Three steps of each model, without dropout and with: losses.
local STEPS <const> = [[
local function losses(name, p, mesh, options)
  local net = make(name, p)
  local ids, images = lt.randint(0, 16, {3, 8}), lt.randn(3, 3, 8, 8)
  local cross_entropy = options and options.loss_parallel and P.loss_parallel(mesh)
  if mesh then lt.parallelize(net, mesh, options and net:tensor_parallel_plan(options) or nil) end
  local optimizer, out = lt.optim.Adam(net:parameters(), {lr = 0.01}), {}
  lt.seed(6)
  for i = 1, 3 do
    optimizer:zero_grad()
    local loss = loss_of(name, net, ids, images, cross_entropy)
    loss:backward()
    optimizer:step()
    out[i] = digits(loss:item())
  end
  return table.concat(out, " ")
end
local wanted, different = {}, 0
for _, name in ipairs(NAMES) do
  wanted[name], wanted[name .. "p"] = losses(name, 0), losses(name, 0.25)
  if name ~= "llama" then assert(wanted[name] ~= wanted[name .. "p"], "no dropout") end
end
local function compare(ranks, options_for)
  dist.launch(ranks, function()
    local mesh = dist.mesh({ranks}, {"tensor_parallel"})
    for _, name in ipairs(NAMES) do
      local options = options_for(name)
      if options ~= nil then
        local a, b = losses(name, 0, mesh, options), losses(name, 0.25, mesh, options)
        if dist.rank() == 0 then
          print(name, a == wanted[name] and "same" or a, b == wanted[name .. "p"] and "same" or b)
        end
      end
    end
  end)
end
]]

local function same(names)
  local lines = {}
  for name in names:gmatch "%S+" do lines[#lines + 1] = name .. "\tsame\tsame\n" end
  return table.concat(lines)
end

describe("plans of lt.models", function()
  it("give the losses of one rank to 10 digits, with dropout too", function()
    assert.equal(same "gpt2 llama bert vit", (scripts.output(nil, STEPS .. [[
      compare(2, function() return false end)
    ]])))
  end)

  it("do so with parts of sequences, and with a divided loss", function()
    assert.equal(same "gpt2 llama bert", (scripts.output(nil, STEPS .. [[
      local both = {sequence_parallel = true, loss_parallel = true}
      compare(2, function(name)
        if name == "vit" then return nil end
        return name == "bert" and {sequence_parallel = true} or both
      end)
    ]])))
  end)

  it("do so on 4 ranks", function()
    assert.equal(same "gpt2", (scripts.output(nil, STEPS .. [[
      compare(4, function(name) return name == "gpt2" and {} or nil end)
    ]])))
  end)
end)
