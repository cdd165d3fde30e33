-- spec/dist/replicas_spec.lua: ranks whose weights diverge are reported, with names, ranks and
-- lines.
-- tags: sampled, slow
local count = require "spec.count"
local over = require "spec.dist.over"
local support = require "spec.dist.support"
local trained = require "spec.dist.trained"

local PRELUDE <const> = [[
lt.seed(5)
local Net = lt.Module:extend("Net")
function Net:init() self.body, self.head = lt.nn.Linear(2, 2), lt.nn.Linear(2, 1) end
function Net:training_step(x, i)
  if self.at then self.at(i, self, lt.dist.rank()) end
  local hidden = self.body(x)
  return self.head(hidden):pow(2):mean()
end
function Net:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 0.01})
end
local function fit(net, o)
  local batches = {}
  for i = 1, 12 do batches[i] = lt.randn(2, 2) end
  local t = trainer(o)
  t:fit(net, batches)
  return t
end
local net = Net()
]]
local FIRST <const> = select(2, PRELUDE:gsub("\n", "\n")) -- lines before a script's first
local scripts <const> = trained.with(PRELUDE)

-- Exit status and what the script printed on both streams.
local function run(script)
  local status, out, err = scripts.run(nil, script)
  return status, out .. err
end

describe("ranks that hold the same", function()
  it("are found to, also after a step in which one had no sample", function()
    local status, text = run [[
local t = trainer {devices = 2, replica_check_every_n_steps = 2}
t:fit(net, lt.data.DataLoader(lt.data.TensorDataset(lt.randn(3, 2)),
  {batch_size = 1, collate = function(samples) return samples[1][1]:reshape{1, 2} end}))
print("steps", t.global_step)
]]
    assert.equal(0, status, text)
    assert.matches("steps\t2", text)
  end)
end)

describe("weights that one rank changed", function()
  it("end the fit at the next comparison, naming parameter, rank and line; reported there too",
    function()
      local status, text = run [[
function net.at(i, self, rank)
  if rank == 1 and i == 5 then lt.no_grad(function() self.head.weight:mul_(0.9) end) end
end
fit(net, {devices = 2, replica_check_every_n_steps = 4})
]]
      assert.equal(1, status, text)
      local line = FIRST + 2
      assert.matches("[rank 1] ltrain: warning: parameter head.weight was changed by mul at "
        .. "script.lua:" .. line, text, 1, true)
      assert.matches("ranks hold different values after optimizer step 8, compared to rank 0:\n"
        .. "  rank 1: ", text, 1, true)
      assert.matches("head.weight (changed by mul at script.lua:" .. line .. ")", text, 1, true)
      assert.equal(1, count(text, "ranks hold different values"))
    end)

  it("are reported on rank 0 itself when it was the one", function()
    local status, text = run [[
function net.at(i, self, rank)
  if rank == 0 and i == 1 then lt.no_grad(function() self.head.bias:add_(1) end) end
end
fit(net, {devices = 2, replica_check_every_n_steps = 2})
]]
    assert.equal(1, status, text)
    assert.matches("after optimizer step 2, compared", text, 1, true)
    assert.matches("\n  rank 0 itself: head.bias (changed by add at script.lua:" .. FIRST + 2
      .. ")", text, 1, true)
  end)

  it("are found at the end of a fit that is shorter than n steps", function()
    local status, text = run [[
function net.at(i, self, rank)
  if rank == 2 and i == 11 then lt.allow_update(function() self.head.bias:add_(1) end) end
end
fit(net, {devices = 3})
]]
    assert.equal(1, status, text)
    assert.matches("ranks hold different values after optimizer step 12", text, 1, true)
    assert.matches("\n  rank 2: [^\n]*head.bias", text)
    assert.is_nil(text:find("\n  rank 1:", 1, true))
    assert.is_nil(text:find("changed by", 1, true))
  end)

  it("are found after the last step, with the line that wrote", function()
    local status, text = run [[
function net:on_train_end() error("not reached") end
function net:on_train_epoch_end()
  local _ <close> = lt.no_grad()
  if lt.dist.rank() == 1 then self.head.bias[1] = 3 end
end
fit(net, {devices = 2})
]]
    assert.equal(1, status, text)
    assert.matches("\n  rank 1: head.bias %(changed by %w+ at script.lua:" .. FIRST + 4, text)
    assert.is_nil(text:find("not reached", 1, true))
  end)

  it("are no error when nobody compares", function()
    local status, text = run [[
function net.at(i, self, rank)
  if rank == 1 and i == 5 then lt.allow_update(function() self.head.weight:mul_(0.9) end) end
end
fit(net, {devices = 2, replica_check_every_n_steps = 0})
]]
    assert.equal(0, status, text)
  end)
end)

describe("weights that all ranks changed alike", function()
  it("are reported once and train on", function()
    local status, text = run [[
function net.at(i, self)
  lt.no_grad(function() self.head.weight:mul_(0.9) end)
end
print(fit(net, {devices = 2, replica_check_every_n_steps = 1}).global_step)
]]
    assert.equal(0, status, text)
    assert.matches("^12\n", text)
    assert.equal(1, count(text, "\nltrain: warning: parameter head.weight was changed by mul at "
      .. "script.lua:" .. FIRST + 2))
    assert.equal(1, count(text, "head.weight was changed"))
  end)
end)

describe("weights that ranks changed at several lines", function()
  it("are reported by each with its number, also of the last step", function()
    local status, text = run [[
function net.at(i, self, rank)
  if i ~= 11 then return end
  local _ <close> = lt.no_grad()
  if rank == 0 then self.head.weight:mul_(0.5) else
    self.head.weight:mul_(0.5)
  end
  self.head.bias:mul_(0.5)
end
print(fit(net, {devices = 3, replica_check_every_n_steps = 5}).global_step)
]]
    assert.equal(0, status, text)
    for rank = 0, 2 do
      assert.equal(1, count(text, ("[rank %d] ltrain: warning: parameter head.weight was changed "
        .. "by mul at script.lua:%d"):format(rank, FIRST + (rank == 0 and 4 or 5))), text)
    end
    assert.equal(3, count(text, "head.weight was changed"))
    assert.equal(1, count(text, "head.bias was changed"))
  end)

  it("are reported although the next thing is an error", function()
    local status, text = run [[
function net.at(i, self, rank)
  if i == 4 and rank == 1 then lt.no_grad(function() self.head.weight:mul_(0.9) end) end
end
function net:on_train_batch_end() if self.trainer.global_step == 5 then error "boom" end end
fit(net, {devices = 2})
]]
    assert.equal(1, status, text)
    assert.equal(1, count(text, "[rank 1] ltrain: warning: parameter head.weight was changed by "
      .. "mul at script.lua:" .. FIRST + 2))
  end)
end)

describe("a collective into a parameter", function()
  it("is reported under its own name", function()
    local status, text = run [[
function net.at(i, self)
  if i == 2 then lt.no_grad(function() lt.dist.all_reduce_(self.body.bias) end) end
  if i == 3 then lt.no_grad(function() lt.dist.broadcast(self.head.bias) end) end
end
fit(net, {devices = 2})
]]
    assert.equal(0, status, text)
    assert.equal(1, count(text, "body.bias was changed by all_reduce_ at script.lua:" .. FIRST + 2))
    assert.is_nil(text:find("head.bias", 1, true)) -- broadcast makes a new tensor
  end)
end)

describe("what else ranks hold", function()
  it("counts too: the state of an optimizer, its options", function()
    local status, text = run [[
function net.at(i, self, rank)
  if rank == 0 or i ~= 3 then return end
  self:optimizers().state[self.body.bias].exp_avg:mul_(1 + 1e-6)
end
fit(net, {devices = 2, replica_check_every_n_steps = 4})
]]
    assert.equal(1, status, text)
    assert.matches("\n  rank 1: [^\n]*state of body.bias", text)
    status, text = run [[
function net.at(i, self, rank)
  if i == 3 then self:optimizers().param_groups[1].lr = 0.01 * (1 + rank * 1e-15) end
end
fit(net, {devices = 2, replica_check_every_n_steps = 4})
]]
    assert.equal(1, status, text)
    assert.matches("options of group 1 of the optimizer", text, 1, true)
  end)

  it("may part in a GAN too: every optimizer is compared", function()
    local status, text = run [[
net.automatic_optimization = false
function net:configure_optimizers()
  return {lt.optim.SGD(self.body:parameters(), {lr = 0.01}),
          lt.optim.SGD(self.head:parameters(), {lr = 0.01})}
end
function net:training_step(x, i)
  if lt.dist.rank() == 1 and i == 2 then
    lt.allow_update(function() self.body.weight:add_(1) end)
  end
  for _, optimizer in ipairs(self:optimizers()) do
    local loss = self.head(self.body(x)):mean()
    optimizer:zero_grad()
    self:manual_backward(loss)
    optimizer:step()
  end
end
fit(net, {devices = 2, replica_check_every_n_steps = 2})
]]
    assert.equal(1, status, text)
    assert.matches("after optimizer step 6", text, 1, true)
    assert.matches("rank 1: [^\n]*body.weight", text)
  end)
end)

describe("ranks that mpirun started", function()
  over({ "mpi", "two hosts" }, "are compared too", function(way)
    local status, output = support.over(way, 2, trained.prelude .. PRELUDE .. [[
function net.at(i, self, rank)
  if rank == 1 and i == 1 then lt.no_grad(function() self.head.weight:mul_(0.9) end) end
end
fit(net, {replica_check_every_n_steps = 2})
]])
    assert.equal(1, status, output)
    local by = "changed by mul at script.lua:" .. FIRST + 2
    assert.matches("[rank 1] ltrain: warning: parameter head.weight was " .. by, output, 1, true)
    assert.matches("\n  rank 1: [^\n]*head.weight %(" .. by .. "%)", output)
    assert.equal(1, count(output, "ranks hold different values"))
  end)
end)

describe("deterministic", function()
  -- That backends add in the order they say is shown by spec/c/comm_conformance.c.
  local SCRIPT <const> = [[
local Net = lt.Module:extend("Net")
function Net:init() self.w = lt.parameter(lt.ones(1)) end
function Net:training_step() return self.w * 1 end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
for _, deterministic in ipairs {false, true, false} do
  local t = trainer {deterministic = deterministic}
  t:fit(Net(), {lt.ones(1)})
  if dist.rank() == 0 then io.write(("%s: %s\n"):format(deterministic, t.world.reduction_order)) end
end
]]

  it("makes ranks under mpirun add in the order of the tree", function()
    local missing = require "ltrain.clusters.mpirun".missing()
    if missing then pending(missing) end
    local status, output = support.mpirun(2, trained.prelude .. SCRIPT, "run")
    assert.equal(0, status, output)
    assert.matches("false: of the backend\n.*true: binary tree\n.*false: of the backend\n", output)
  end)
end)
