-- spec/nn/state_hooks_spec.lua: extra state of modules, hooks of state_dict and load_state_dict.
local child = require "spec.cli.child"
local error_of = require "spec.error_of"
local lt = require "ltrain"
local nn = lt.nn

-- A layer that keeps something beside its tensors.
local Counting = lt.Module:extend "Counting"
function Counting:init(n) self.w, self.n = lt.parameter(lt.ones(2)), n or 0 end
function Counting:forward(x) return x * self.w end
function Counting:get_extra_state() return { n = self.n, seen = { lt.full({ 2 }, self.n) } } end
function Counting:set_extra_state(state) self.n, self.seen = state.n, state.seen[1] end

local function keys(state)
  local list = {}
  for key in pairs(state) do list[#list + 1] = key end
  table.sort(list)
  return table.concat(list, " ")
end

describe("get_extra_state and set_extra_state", function()
  it("add something to the state of a module", function()
    local net, other = nn.Sequential(Counting(5), nn.Linear(2, 1)),
      nn.Sequential(Counting(), nn.Linear(2, 1))
    assert.equal("0._extra_state 0.w 1.bias 1.weight", keys(net:state_dict()))
    other:load_state_dict(net:state_dict())
    assert.equal(5, other[1].n)
    local state = net:state_dict()
    state["0._extra_state"] = nil
    assert.matches("missing: 0._extra_state",
      error_of(other.load_state_dict, other, state), 1, true)
    assert.matches("unexpected: 0._extra_state", error_of(function()
      nn.Sequential(nn.Linear(2, 1)):load_state_dict { ["0.weight"] = lt.ones(1, 2),
        ["0.bias"] = lt.ones(1), ["0._extra_state"] = 1 }
    end), 1, true)
  end)

  it("are in checkpoints, tensors too", function()
    local folder = child.folder()
    local Net = lt.Module:extend "Net"
    function Net:init(n) self.count, self.head = Counting(n), nn.Linear(2, 1) end
    function Net:training_step(batch)
      self.count.n = self.count.n + 1
      return self.head(self.count(batch)):sum()
    end
    function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
    local function fit(net, epochs, path)
      local trainer = lt.Trainer { max_epochs = epochs, logger = false, enable_progress_bar = false,
        enable_model_summary = false, enable_checkpointing = false, default_root_dir = folder }
      trainer:fit(net, { lt.ones(3, 2), lt.ones(3, 2) }, path and { ckpt_path = path } or nil)
      return trainer
    end
    local net = Net(10)
    local path = folder .. "/a.ckpt"
    fit(net, 1):save_checkpoint(path)
    assert.equal(12, net.count.n)
    local loaded = Net:load_from_checkpoint(path)
    assert.equal(12, loaded.count.n)
    assert.same({ 12, 12 }, loaded.count.seen:tolist())
    local resumed = Net(0)
    fit(resumed, 2, path)
    assert.equal(14, resumed.count.n)
    child.remove(folder)
  end)
end)

describe("hooks of state_dict", function()
  it("run from the outermost module inwards, and after it outwards", function()
    local net, order = nn.Sequential(nn.Sequential(nn.Linear(2, 1))), {}
    local modules = { net, net[1], net[1][1] }
    for _, module in ipairs(modules) do
      module:register_state_dict_pre_hook(function(self, prefix, keep_vars)
        assert.equal(module, self)
        order[#order + 1] = ("<%s %s"):format(prefix, keep_vars)
      end)
      module:register_state_dict_post_hook(function(self, state, prefix, metadata)
        assert.equal(module, self)
        assert.same({}, metadata)
        order[#order + 1] = ">" .. prefix
        state[prefix .. "mark"] = lt.ones(1)
      end)
    end
    local state = net:state_dict { prefix = "m.", keep_vars = true }
    assert.equal("<m. true <m.0. true <m.0.0. true >m.0.0. >m.0. >m.", table.concat(order, " "))
    assert.equal("m.0.0.bias m.0.0.mark m.0.0.weight m.0.mark m.mark", keys(state))
    assert.equal(net[1][1].weight, state["m.0.0.weight"])
  end)

  it("are removed, and go with copies of the module", function()
    local net = nn.Linear(2, 1)
    local handle = net:register_state_dict_post_hook(function(_, state) state.mark = lt.ones(1) end)
    local copy = nn.deepcopy(net)
    handle:remove()
    assert.equal("bias weight", keys(net:state_dict()))
    assert.equal("bias mark weight", keys(copy:state_dict()))
    net:register_state_dict_post_hook(function() return {} end)
    assert.matches("state_dict hook: it must change its tables, and return nothing: got a table",
      error_of(net.state_dict, net))
    assert.matches("register_state_dict_post_hook: hook must be a function",
      error_of(net.register_state_dict_post_hook, net, 1))
  end)

  it("fill a table of the caller", function()
    local state = {}
    assert.equal(state, nn.Linear(2, 1):state_dict { destination = state, prefix = "a." })
    assert.equal("a.bias a.weight", keys(state))
  end)
end)

describe("hooks of load_state_dict", function()
  it("change a copy of the state before it is read", function()
    local net = nn.Sequential(nn.Linear(2, 1))
    net[1]:register_load_state_dict_pre_hook(function(self, state, prefix, _, strict)
      assert.equal(net[1], self)
      assert.is_true(strict)
      state[prefix .. "weight"], state.old = state.old, nil
    end)
    local state = { old = lt.full({ 1, 2 }, 3.0), ["0.bias"] = lt.zeros(1) }
    net:load_state_dict(state)
    assert.same({ { 3, 3 } }, net[1].weight:tolist())
    assert.is_not_nil(state.old)
    net:register_load_state_dict_pre_hook(function(_, _, _, _, _, missing, _, messages)
      missing[1], messages[1] = "something", "a message"
    end)
    assert.matches("a message\n  missing: something", error_of(net.load_state_dict, net, state))
  end)

  it("change the lists of names that do not fit", function()
    local net, seen = nn.Linear(2, 1), nil
    net:register_load_state_dict_post_hook(function(module, found)
      seen = table.concat(found.missing_keys, " ") .. "|" .. table.concat(found.unexpected, " ")
      assert.equal(7.0, module.bias:item())
      table.remove(found.missing_keys)
      found.unexpected_keys = {}
    end)
    local got = net:load_state_dict { bias = lt.full({ 1 }, 7.0), other = lt.ones(1) }
    assert.equal("weight|other", seen)
    assert.same({ {}, {} }, { got.missing, got.unexpected_keys })
    local strict = nn.Sequential(net)
    assert.matches("missing: more", error_of(function()
      net:register_load_state_dict_post_hook(function(_, found) found.missing = { "more" } end)
      strict:load_state_dict { ["0.weight"] = lt.ones(1, 2), ["0.bias"] = lt.full({ 1 }, 7.0) }
    end))
  end)
end)

describe("load_state_dict{assign = true}", function()
  it("puts the tensors in the place of the module's, in all places", function()
    local net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.BatchNorm1d(2))
    net[2].weight = net[1].weight
    net[1].weight.requires_grad = false
    local state = net:state_dict()
    state["0.weight"] = lt.ones(2, 2):to "f64"
    net:load_state_dict(state, { assign = true })
    assert.equal("f64", net[1].weight.dtype)
    assert.is_false(net[1].weight.requires_grad)
    assert.equal(net[1].weight, net[2].weight)
    assert.is_true(lt.is_parameter(net[1].bias) and net[1].bias.requires_grad)
    assert.equal(state["2.running_mean"], net[3].running_mean)
  end)
end)
