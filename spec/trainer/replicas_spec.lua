-- spec/trainer/replicas_spec.lua: other writes into an optimizer's parameters are reported.
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"
local trained = require "spec.dist.trained"

local PRELUDE <const> = [[
local Net = lt.Module:extend("Net")
function Net:init() self.head, self.other = lt.nn.Linear(2, 1), lt.nn.Linear(2, 1) end
function Net:training_step(x, i)
  if self.at then self.at(i, self) end
  return (self.head(x) + self.other(x)):mean()
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local function fit(net, o)
  local t = trainer(o)
  t:fit(net, {lt.ones(1, 2), lt.ones(1, 2), lt.ones(1, 2), lt.ones(1, 2)})
  return t
end
local net = Net()
]]
local FIRST <const> = select(2, PRELUDE:gsub("\n", "\n")) + 1 -- the number of a script's first line

local scripts <const> = trained.with(PRELUDE)

-- Standard error of the script, which must end well, without the line of the seed.
local function run(script)
  local _, err = scripts.output(nil, script)
  return (err:gsub("ltrain: seed[^\n]*\n", ""))
end

local function reported(name, op, line)
  return ("ltrain: warning: parameter %s was changed by %s at script.lua:%d, not by its optimizer; "
    .. "if that is meant, write it within lt.allow_update(function() ... end)\n"):format(name, op,
    FIRST + line)
end

describe("a parameter that others than its optimizer change", function()
  it("is reported once, with its name, the op and the script's line", function()
    local err = run [[
function net.at(i, self)
  local _ <close> = lt.no_grad()
  if i > 0 then self.head.weight:mul_(0.9) end
end
fit(net)
]]
    assert.equal(reported("head.weight", "mul", 2), err)
  end)

  it("is reported for each way to write: copies, assignments, views, values of the host", function()
    local err = run [[
local writes = {
  function(w) w:copy_(lt.ones(1, 2)) end,
  function(w) w[1] = 3 end,
  function(w) w[1]:add_(1) end,
  function(w) lt.nn.init.zeros_(w) end,
}
local net = lt.Module:extend("Many")()
for i = 1, 4 do net["p" .. i] = lt.parameter(lt.zeros(1, 2)) end
local optimizer = lt.optim.Adam(net:parameters())
optimizer:step()
lt.no_grad(function() for i, write in ipairs(writes) do write(net["p" .. i]) end end)
optimizer:step()
]]
    local lines = { reported("p1", "copy", 1), reported("p2", "%w+", 2), reported("p3", "add", 3),
                    reported("p4", "fill", 4) }
    for _, line in ipairs(lines) do
      local pattern = line:gsub("[%(%)%-%.]", "%%%0")
      assert.matches(pattern, err)
    end
    assert.equal(4, select(2, err:gsub("warning", "")))
  end)

  it("is reported by the parameters() name in a loop without a Trainer", function()
    local err = run [[
local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.1})
for _ = 1, 3 do
  net.other.bias.grad = lt.ones(1)
  optimizer:step()
  lt.no_grad(function() net.other.bias:zero_() end)
end
]]
    assert.equal(reported("other.bias", "fill", 4), err)
  end)

  it("is not reported for what comes before the first step", function()
    assert.equal("", run [[
function net:on_fit_start() lt.no_grad(function() self.head.weight:zero_() end) end
fit(net)
]])
  end)

  it("is not reported for what comes between two trainings", function()
    assert.equal("", run [[
fit(net)
lt.no_grad(function() net.head.weight:zero_() end)
fit(net)
]])
  end)

  it("is not reported for lt.allow_update, load_state_dict and other optimizers", function()
    assert.equal("", run [[
local state = {}
for name, tensor in pairs(net:state_dict()) do state[name] = tensor:clone() end
local second = lt.optim.SGD(net:parameters(), {lr = 1.0})
function net.at(i, self)
  lt.allow_update(function() self.head.weight:clamp_(-0.1, 0.1) end)
  do
    local _ <close> = lt.allow_update()
    self.head.bias:zero_()
  end
  self:load_state_dict(state)
  second:step()
end
fit(net)
]])
  end)

  it("is still reported when others wrote after it", function()
    local err = run [[
function net.at(i, self)
  if i ~= 2 then return end
  lt.no_grad(function() self.head.bias:add_(1) end)
  lt.allow_update(function() self.head.bias:mul_(2) end)
end
fit(net)
]]
    assert.equal(reported("head.bias", "add", 2), err)
  end)

  it("is watched from the next step on when it joins the optimizer later", function()
    local err = run [[
local optimizer = lt.optim.SGD(net.head:parameters(), {lr = 0.1})
optimizer:step()
lt.no_grad(function() net.other.weight:add_(1) end)
optimizer:add_param_group {params = net.other:parameters()}
optimizer:step()
lt.no_grad(function() net.other.weight:add_(1) end)
optimizer:step()
]]
    assert.equal(1, select(2, err:gsub("warning", "")))
    assert.matches("script.lua:" .. FIRST + 5, err, 1, true)
  end)
end)

describe("lt.allow_update", function()
  it("is no_grad too, and ends as scopes do", function()
    local w = lt.parameter(lt.ones(2))
    assert.same({ 2, 2 }, lt.allow_update(function() return w:add_(1) end):tolist())
    assert.is_false(lt.allow_update(function() return lt.is_grad_enabled() end))
    assert.is_true(lt.is_grad_enabled())
    assert.is_false(pcall(lt.allow_update, function() error("x") end))
    assert.is_false(pcall(function() w:add_(1) end))
  end)
end)

-- The message of the error that ends a fit of four steps; `at` runs in each training_step.
local function error_of_fit(build, at)
  local Net = lt.Module:extend("Net")
  function Net:init() build(self) end
  function Net:training_step(x, i)
    at(self, i)
    local hidden = self.first(x)
    return hidden:mean()
  end
  function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
  local trainer = tiny.trainer { max_epochs = 1 }
  return tiny.error_of(trainer.fit, trainer, Net(), tiny.same(4, { { 1.0, 2.0 } }))
end

local function two_layers(self)
  self.first, self.layers = lt.nn.Linear(2, 2), { lt.nn.Linear(2, 2), { lt.nn.Linear(2, 2) } }
end

local function line() return debug.getinfo(2, "l").currentline end

describe("an optimizer step", function()
  it("refuses a parameter that was replaced, with the line that made the new one", function()
    local made
    local message = error_of_fit(two_layers, function(self, i)
      if i == 2 then made = line() self.first.weight = lt.parameter(lt.ones(2, 2)) end
    end)
    assert.matches("optimizer step 3: parameter Net.first.weight was replaced since "
      .. "configure_optimizers %(made at .*replicas_spec.lua:" .. made .. "%)", message)
  end)

  it("refuses a parameter that is new, deep in tables too", function()
    local made
    local message = error_of_fit(two_layers, function(self, i)
      if i == 1 then made = line() self.layers[2][2] = lt.nn.Linear(2, 2) end
    end)
    assert.matches("optimizer step 2: parameter Net.layers%[2%]%[2%]%.weight is new since "
      .. "configure_optimizers %(made at .*replicas_spec.lua:" .. made .. "%)", message)
  end)

  it("refuses a parameter that was lost, with its module, a table or alone", function()
    local function lost(path, drop)
      assert.matches("optimizer step 4: parameter Net%." .. path
        .. " was lost since configure_optimizers", error_of_fit(two_layers, function(self, i)
        if i == 3 then drop(self) end
      end))
    end
    lost("layers%[1%]%.weight", function(self) self.layers = nil end)
    lost("layers%[2%]%[1%]%.weight", function(self) self.layers[2] = nil end)
    lost("layers%[2%]%[1%]%.bias", function(self) self.layers[2][1].bias = nil end)
  end)

  it("refuses one that took another's place", function()
    assert.matches("optimizer step 1: parameter Net%.layers%[1%]%.weight was replaced",
      error_of_fit(two_layers, function(self)
        local layers = self.layers
        layers[1].weight, layers[2][1].weight = layers[2][1].weight, layers[1].weight
      end))
  end)

  it("accepts parameters made for something else, and modules that moved aside", function()
    local net = tiny.Line()
    local loss = net.training_step
    function net:training_step(x)
      self._teacher = tiny.Line()
      self.plain = { 1, 2 }
      return loss(self, x)
    end
    local trainer = tiny.trainer { max_epochs = 1 }
    trainer:fit(net, tiny.same(3))
    assert.equal(3, trainer.global_step)
  end)

  it("accepts a parameter that an optimizer was given meanwhile", function()
    local net = tiny.Line()
    local loss = net.training_step
    function net:training_step(x, i)
      if i == 1 then
        self.more = lt.parameter(lt.ones(1))
        self:optimizers():add_param_group { params = { self.more } }
      end
      return loss(self, x)
    end
    local trainer = tiny.trainer { max_epochs = 1 }
    trainer:fit(net, tiny.same(3))
    assert.equal(3, trainer.global_step)
  end)
end)
