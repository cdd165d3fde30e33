-- spec/bind/errors_spec.lua: errors point at the script's line and name the module.
local lt = require "ltrain"

local nn = lt.nn

local Net = lt.Module:extend("Net")

function Net:init()
  self.head = nn.Linear(4, 3)
  self.net = nn.Sequential(nn.Linear(2, 4), nn.ReLU())
  self.layers = {{proj = nn.Linear(7, 7)}}
end

function Net:forward(x)
  local h = self.net(x)
  local y = self.head(h:view(-1, 2))
  return y
end

function Net:own(x)
  local y = x:matmul(lt.ones(5, 5))
  return y
end

function Net:deep(x)
  local y = self.layers[1].proj(x)
  return y
end

local function failure(fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok, "nothing was raised")
  return message
end

-- The line in this file of the first line that holds `text`.
local function line_of(text)
  local number = 0
  for line in io.lines(debug.getinfo(1, "S").source:sub(2)) do
    number = number + 1
    if line:find(text, 1, true) then return number end
  end
end

describe("an error below a Module", function()
  local net = Net()

  it("names its path and the script's line, not ours", function()
    local message = failure(net, lt.ones(3, 2))
    assert.matches(("errors_spec.lua:%d: linear: .*%%[6, 2%%] x %%[3, 4%%]"):format(
      line_of("self.head(h:view")), message)
    assert.matches("%(in Net.head%)$", message)
  end)

  it("shows Lua's path of an array child", function()
    local message = failure(net, lt.ones(3, 5))
    assert.matches(("errors_spec.lua:%d: linear: "):format(line_of("local h = self.net(x)")),
      message)
    assert.matches("%(in Net.net%[1%]%)$", message)
  end)

  it("shows the path through plain tables", function()
    assert.matches("%(in Net.layers%[1%].proj%)$", failure(net.deep, net, lt.ones(3, 5)))
  end)

  it("names the module whose own method it was", function()
    assert.matches(("errors_spec.lua:%d: matmul: inner sizes differ: %%[2, 2%%] x %%[5, 5%%] "
      .. "%%(in Net%%)$"):format(line_of("x:matmul(lt.ones(5, 5))")),
      failure(net.own, net, lt.ones(2, 2)))
  end)

  it("is the script's line in coroutines and callbacks too", function()
    local co = coroutine.create(function() return net:own(lt.ones(2, 2)) end)
    local _, message = coroutine.resume(co)
    assert.matches(("errors_spec.lua:%d: "):format(line_of("x:matmul(lt.ones(5, 5))")), message)
  end)
end)

describe("an error outside of Modules", function()
  it("names no path", function()
    assert.matches("inner sizes differ: %[2, 2%] x %[5, 5%]$", failure(function()
      return lt.ones(2, 2):matmul(lt.ones(5, 5))
    end))
  end)

  it("does not disturb the next call", function()
    failure(function() return lt.ones(2) + lt.ones(3) end)
    assert.same({2, 2}, (lt.ones(2) + 1):tolist())
  end)
end)

describe("lt.last_error", function()
  it("has the parts", function()
    failure(Net(), lt.ones(3, 5))
    local e = lt.last_error()
    assert.equal("shape", e.code)
    assert.equal("linear", e.op)
    assert.equal("Net.net[1]", e.path)
    assert.matches("errors_spec.lua:%d+$", e.line)
    assert.matches("^linear: .*%[3, 5%] x %[4, 2%]", e.message)
  end)

  it("has the shapes of the tensors that an op failed with", function()
    failure(function() return lt.ones(2, 3):matmul(lt.ones(4, 5)) end)
    assert.same({{2, 3}, {4, 5}}, lt.last_error().shapes)
    failure(function() return lt.cat({lt.ones(2), lt.tensor(1)}) end)
    assert.same({{2}, {}}, lt.last_error().shapes)
    failure(function() return lt.ones(2):sum(3) end)
    local many = {}
    for k = 1, 100 do many[k] = lt.ones(k, 1, 1) end
    failure(function() return lt.cat(many, 2) end)
    local shapes = lt.last_error().shapes
    assert.is_true(#shapes > 10)
    for k, shape in ipairs(shapes) do assert.same({k, 1, 1}, shape) end
  end)

  it("has none when there were no tensors", function()
    failure(function() return lt.ones(2):sum({wrong = 1}) end)
    assert.is_nil(lt.last_error().shapes)
  end)

  it("knows errors that are raised in Lua", function()
    failure(function() return nn.Linear(2, 3, {biass = true}) end)
    local e = lt.last_error()
    assert.equal("argument", e.code)
    assert.equal("nn.Linear", e.op)
    assert.equal("nn.Linear: unknown option 'biass'; did you mean 'bias'?", e.message)
    assert.matches("errors_spec.lua:%d+$", e.line)
    assert.is_nil(e.shapes)
  end)

  it("knows errors of arguments as well", function()
    failure(function() lt.ones(2):sum(3) end)
    assert.equal("argument", lt.last_error().code)
    assert.equal("sum", lt.last_error().op)
    assert.is_nil(lt.last_error().path)
  end)
end)

describe("the module of an error's line", function()
  it("is not looked for in tables that are not modules", function()
    local asked = 0
    local odd = setmetatable({}, { __index = function() asked = asked + 1 end })
    local function method(self, x)
      local y = x:sum(3)
      return self, y
    end
    failure(function() method(odd, lt.ones(2)) end)
    assert.equal(0, asked)
  end)
end)

describe("a failure in backward", function()
  it("names the op and the line that made the node", function()
    local x = lt.ones(2, {requires_grad = true})
    local y = x * 1
    local z = (y * y):sum()
    lt.no_grad(function() y:add_(1) end)
    local message = failure(function() z:backward() end)
    assert.matches(("backward of mul %%(.*errors_spec.lua:%d%%)"):format(
      line_of("local z = (y * y):sum()")), message)
    assert.matches(("by add at .*errors_spec.lua:%d"):format(line_of("y:add_(1) end)")), message)
  end)
end)
