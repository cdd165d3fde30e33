-- spec/nn/many_modules_spec.lua: what is done to a module costs in proportion to its size.
--
-- Counted are the instructions of Lua's virtual machine, which are the same in each run.
local lt = require "ltrain"

local nn = lt.nn

local FEW <const> = 40

local Many = lt.Module:extend("Many")

function Many:init(count)
  self.layers = nn.ModuleList {}
  for _ = 1, count do self.layers:append(nn.Linear(1, 1)) end
end

function Many:forward(x)
  local y = self.layers[1](x)
  return y
end

function Many:training_step(x) return self(x):sum() end

function Many:configure_optimizers()
  return lt.optim.SGD(self:parameters(), { lr = 0.1, momentum = 0.9 })
end

-- Modules in modules, `count` deep.
local function nested(count)
  local net = nn.Sequential(nn.Linear(1, 1))
  for _ = 2, count do net = nn.Sequential(nn.Linear(1, 1), net) end
  return net
end

local function instructions(fn)
  local count = 0
  debug.sethook(function() count = count + 1 end, "", 10)
  local ok, message = pcall(fn)
  debug.sethook()
  assert(ok, message)
  return count
end

-- prepare(count) returns what is to be counted. `most`: instructions that one more module may cost.
local function grows_evenly(prepare, most)
  prepare(2)() -- what is loaded, or made, at the first use
  local few = instructions(prepare(FEW))
  local many = instructions(prepare(4 * FEW))
  assert.is_true(few > FEW)
  assert.is_true(many < 5 * few, ("%d and %d instructions"):format(10 * few, 10 * many))
  local each = 10 * (many - few) / (3 * FEW)
  assert.is_true(each <= most, ("%.0f instructions a module, at most %d"):format(each, most))
end

local function state_with_gradients(count)
  local net = Many(count)
  local optimizer = net:configure_optimizers()
  for _, parameter in ipairs(net:parameters()) do parameter.grad = lt.zeros_like(parameter) end
  optimizer:step()
  return optimizer:state_dict(), net:configure_optimizers()
end

local folder

local function trainer_of(root, max_steps)
  return lt.Trainer { max_steps = max_steps or 1, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false, default_root_dir = root }
end

describe("a module of many", function()
  setup(function()
    lt.seed(1)
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
  end)
  teardown(function() os.execute("rm -r " .. folder) end)

  it("gives its state in even time", function()
    grows_evenly(function(count)
      local net = Many(count)
      return function() net:state_dict() end
    end, 950)
  end)

  it("takes its state back in even time", function()
    grows_evenly(function(count)
      local net = Many(count)
      local state = net:state_dict()
      return function() net:load_state_dict(state) end
    end, 1200)
  end)

  it("is saved and loaded in even time", function()
    grows_evenly(function(count)
      local path, state = folder .. "/state.safetensors", Many(count):state_dict()
      return function()
        assert(lt.save(path, state))
        assert(lt.load(path))
      end
    end, 800)
  end)

  it("gives its optimizer's state, and takes it back, in even time", function()
    grows_evenly(function(count)
      local state, optimizer = state_with_gradients(count)
      return function()
        optimizer:load_state_dict(state)
        optimizer:state_dict()
      end
    end, 2700)
  end)

  it("is trained in even time", function()
    grows_evenly(function(count)
      local net, trainer = Many(count), trainer_of(folder)
      return function() trainer:fit(net, { lt.ones(1, 1) }) end
    end, 8000)
  end)

  it("takes new layers in mid-fit in even time", function()
    grows_evenly(function(count)
      local net, trainer = Many(1), trainer_of(folder)
      function net:on_train_epoch_start()
        local added = Many(count)
        self.added = added
        self.trainer.optimizers[1]:add_param_group { params = added:parameters() }
      end
      return function() trainer:fit(net, { lt.ones(1, 1) }) end
    end, 6800)
  end)

  it("may hold a vocabulary: it is read a few times in a fit, not in each step", function()
    local words, batches = {}, {}
    for i = 1, 5000 do words[i] = "word" .. i end
    for i = 1, 40 do batches[i] = lt.ones(1, 1) end
    local function fit(vocabulary)
      local net, trainer = Many(1), trainer_of(folder, #batches)
      net.vocabulary = vocabulary
      return instructions(function() trainer:fit(net, batches) end)
    end
    fit(nil)
    local more = fit(words) - fit(nil)
    local kind_of <const> = type -- globals of a spec are looked up by functions
    local once = instructions(function()
      for _, word in next, words do
        if kind_of(word) ~= "string" then return end
      end
    end)
    assert.is_true(more < 20 * once, ("read %.1f times"):format(more / once))
  end)

  it("is saved by the trainer in even time", function()
    grows_evenly(function(count)
      local net, trainer = Many(count), trainer_of(folder)
      trainer:fit(net, { lt.ones(1, 1) })
      return function() trainer:save_checkpoint(folder .. "/last.ckpt") end
    end, 1450)
  end)

  it("looks no further than its first parameter for its device", function()
    local function ask(count)
      local net = nested(count)
      return function() return net.device end
    end
    ask(2)()
    assert.is_true(instructions(ask(4 * FEW)) <= 1.2 * instructions(ask(FEW)))
  end)

  it("may hold them inside each other", function()
    grows_evenly(function(count)
      local net = nested(count // 4)
      return function() net:load_state_dict(net:state_dict()) end
    end, 800)
  end)
end)
