-- spec/strategies/sharded_files_spec.lua: checkpoints of Sharded are whole, and resume on any
-- number of ranks and under DDP.
-- tags: half, slow
local job = require "spec.dist.job"
local trained = require "spec.dist.trained"

local NET <const> = [[
local nn = lt.nn
local Net = lt.Module:extend("Net")
function Net:init()
  self.a, self.b = nn.Linear(7, 13), nn.Linear(13, 1)
  self.w = lt.parameter(lt.ones(1))
end
function Net:training_step(batch)
  return (self.b(self.a(batch[1]):tanh()) * self.w - 1):square():mean()
end
function Net:configure_model() self:to "f64" end
function Net:configure_optimizers()
  return lt.optim.Adam({{params = self.a:parameters()},
    {params = {self.b.weight, self.b.bias, self.w}, lr = 0.02}}, {lr = 0.01})
end
lt.seed(5)
local x = lt.randn(48, 7):to "f64"
-- A fit on some ranks, on all batches of 8 together; returns the net and the Trainer.
local function fit(strategy, ranks, o, fit_options)
  lt.seed(1)
  local net, all = Net(), {strategy = strategy, devices = ranks, max_epochs = 2}
  for name, value in pairs(o or {}) do all[name] = value end
  local t = trainer(all)
  t:fit(net, lt.data.DataLoader(lt.data.TensorDataset(x), {global_batch_size = 8, shuffle = true,
    seed = 3}), nil, fit_options)
  return net, t
end
-- The tensors of a checkpoint, by name.
local function tensors_of(saved)
  local found = {}
  for name, tensor in pairs(saved.state_dict) do found[name] = tensor end
  for path, slots in pairs(saved.optimizer_states[1].state) do
    for slot, value in pairs(slots) do found[path .. "." .. slot] = value end
  end
  return found
end
-- How far two such tables are apart, "exactly" or about; their names must be the same.
local function distance(a, b)
  local most, count = 0.0, 0
  for name, value in pairs(a) do
    assert(b[name] ~= nil, name)
    local apart = lt.is_tensor(value) and (value - b[name]):abs():max():item()
      or math.abs(value - b[name])
    most, count = math.max(most, apart), count + 1
  end
  for name in pairs(b) do assert(a[name] ~= nil, name) end
  return most, count
end
local read = require "ltrain.files.checkpoint_file".read
local function near(a, b) return distance(tensors_of(a), tensors_of(b)) < 1e-9 end
]]

local scripts <const> = trained.with(NET)

local function prints(wanted, script)
  local out, err = scripts.output(nil, script)
  assert.equal(wanted, (out:gsub("\t", " ")))
  return err
end

describe("a checkpoint of Sharded", function()
  it("is the one of DDP: saved in mid-fit, by a callback and after the fit", function()
    -- 5 parameters, each with a step and two means
    prints("0.0 20\n0.0 20\n0.0 20\n", [[
      for _, strategy in ipairs {"ddp", "zero1"} do
        function Net:on_train_epoch_end()
          if self.current_epoch == 0 then self.trainer:save_checkpoint(strategy .. ".mid") end
        end
        local callback = lt.callbacks.ModelCheckpoint {dirpath = strategy, filename = "at",
          every_n_train_steps = 7}
        local _, t = fit(strategy, 3, {enable_checkpointing = true, callbacks = {callback}})
        t:save_checkpoint(strategy .. ".end")
      end
      for _, name in ipairs {"%s.mid", "%s/at.ckpt", "%s.end"} do
        print(distance(tensors_of(read(name:format "ddp")), tensors_of(read(name:format "zero1"))))
      end
    ]])
  end)

  it("resumes exactly on as many ranks, under DDP and back", function()
    prints("0.0 20\n0.0 20\n0.0 20\n", [[
      local _, whole = fit("ddp", 2, {max_steps = 9})
      whole:save_checkpoint "whole"
      local wanted = tensors_of(read "whole")
      for i, pair in ipairs {{"zero1", "zero1"}, {"zero1", "ddp"}, {"ddp", "zero1"}} do
        local _, first = fit(pair[1], 2, {max_steps = 4})
        first:save_checkpoint("cut" .. i)
        local _, second = fit(pair[2], 2, {max_steps = 9}, {ckpt_path = "cut" .. i})
        second:save_checkpoint("resumed" .. i)
        print(distance(wanted, tensors_of(read("resumed" .. i))))
      end
    ]])
  end)

  it("resumes on 4, then 2, then 1 ranks", function()
    prints("true 9\n", [[
      local _, whole = fit("single_device", 1, {max_steps = 9})
      whole:save_checkpoint "whole"
      local steps, path = {4, 7, 9}, nil
      for i, ranks in ipairs {4, 2, 1} do
        local _, t = fit("zero1", ranks, {max_steps = steps[i]}, {ckpt_path = path})
        path = "after" .. i
        t:save_checkpoint(path)
      end
      print(near(read "whole", read(path)), read(path).global_step)
    ]])
  end)

  it("takes a state that the optimizer has already, and that a group was added to", function()
    prints("0.0 20\n", [[
      function Net:configure_optimizers() return lt.optim.Adam(self.a:parameters(), {lr = 0.01}) end
      function Net:on_train_epoch_start()
        if self.current_epoch == 1 and #self:optimizers().param_groups == 1 then
          self:optimizers():add_param_group {params = {self.b.weight, self.b.bias, self.w}}
        end
      end
      local _, whole = fit("ddp", 2, {max_steps = 9})
      whole:save_checkpoint "whole"
      local _, first = fit("zero1", 2, {max_steps = 8})
      first:save_checkpoint "cut"
      local _, second = fit("zero1", 2, {max_steps = 9}, {ckpt_path = "cut"})
      second:save_checkpoint "resumed"
      print(distance(tensors_of(read "whole"), tensors_of(read "resumed")))
    ]])
  end)

  it("of weights alone is rank 0's affair", function()
    prints("true\n", [[
      local watch = {on_train_batch_end = function(_, t, _, _, _, i)
        if i == 2 then t:save_checkpoint("weights", {weights_only = true}) end
      end}
      fit("zero1", 2, {callbacks = {watch}})
      print(read "weights".optimizer_states == nil)
    ]])
  end)

  it("saved by rank 0 alone is an error that names the call", function()
    for _, kind in ipairs { "full", "sharded" } do
      for _, stage in ipairs { 1, 3 } do
        local status, _, err = scripts.run(nil, ([[
          local watch = {on_train_batch_end = function(_, t) t:save_checkpoint "x" end}
          fit(lt.strategies.Sharded {stage = %d, state_dict_type = "%s"}, 2, {callbacks = {watch}})
        ]]):format(stage, kind))
        assert.equal(1, status)
        assert.matches("ranks disagree at collective %d+: rank 0: [%w_ %[%]]+ at script.lua:%d+ "
          .. "%(save_checkpoint%); rank 1: ", err)
      end
    end
  end)

  it("asked for by rank 0 alone is refused with what to do", function()
    local status, _, err = scripts.run(nil, [[
      local watch = {on_train_batch_end = function(_, t) t:request_checkpoint "x" end}
      fit("zero1", 2, {callbacks = {watch}})
    ]])
    assert.equal(1, status)
    assert.matches("request_checkpoint: under strategies.Sharded each rank has a part of the "
      .. "checkpoint: every rank must request it, with agreed = true", err)
  end)
end)

describe("a module on the meta device", function()
  it("resumes, under each strategy", function()
    prints("same same same same\n", [[
      local Meta = Net:extend("Meta")
      function Meta:init() end
      function Meta:configure_model()
        if self.a then return end
        local _ <close> = lt.device "meta"
        Net.init(self)
        self:to "f64"
      end
      for _, strategy in ipairs {"ddp", "zero1", "fsdp", "deepspeed_stage_2"} do
        local function go(epochs, path)
          lt.seed(3)
          local net, t = Meta(), trainer {strategy = strategy, devices = 2, max_epochs = epochs}
          t:fit(net, lt.data.DataLoader(lt.data.TensorDataset(x), {batch_size = 4}), nil,
            {ckpt_path = path})
          return lt.hash(net:state_dict()), t
        end
        local whole, path = go(2), "meta_" .. strategy .. ".ckpt"
        select(2, go(1)):save_checkpoint(path)
        local ends = strategy == "deepspeed_stage_2" and "\n" or " "
        io.write(go(2, path) == whole and "same" or "other", ends)
      end
    ]])
  end)
end)

describe("save_on_exception under Sharded", function()
  it("is refused with a sentence, at the start and at the end", function()
    local status, out, err = scripts.run(nil, [[
      function Net:on_train_batch_end(_, _, i) if i == 3 then error "as planned" end end
      local callback = lt.callbacks.ModelCheckpoint {dirpath = "kept", save_on_exception = true}
      local ok, message = pcall(fit, "zero1", 2, {enable_checkpointing = true,
        callbacks = {callback}})
      assert(not ok)
      print(lt.dist.world_size(), message:match "as planned",
        io.open(callback.exception_path) == nil)
      error(message, 0)
    ]])
    assert.equal(1, status)
    assert.equal("1\tas planned\ttrue", out:match "^[^\n]*")
    assert.matches("warning: save_on_exception has no effect: under strategies.Sharded each rank "
      .. "has a part of the checkpoint, and after an error no rank can gather the others", err)
    assert.matches("on_exception: .*save_checkpoint: under strategies.Sharded .*: nothing is saved",
      err)
  end)

  it("works on 1 rank", function()
    prints("3\n", [[
      function Net:on_train_batch_end(_, _, i) if i == 3 then error "as planned" end end
      local callback = lt.callbacks.ModelCheckpoint {dirpath = "kept", save_on_exception = true}
      pcall(fit, "zero1", 1, {enable_checkpointing = true, callbacks = {callback}})
      print(read(callback.exception_path).loops.fit.batch - 1)
    ]])
  end)
end)

describe("a rank that is killed in a save under Sharded", function()
  it("ends the job, and the former file stays", function()
    local one <close> = job.start([[
      local net = lt.nn.Linear(9, 9)
      function net:training_step(batch) return self(batch):square():mean() end
      function net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.1}) end
      function net:on_train_start() pid(lt.dist.rank()) end
      function net:on_train_batch_end(_, _, i)
        if i == 1 then self.trainer:save_checkpoint "kept.ckpt" end
        if i < 2 then return end
        if lt.dist.rank() == 1 then -- others are in the save
          mark "late"
          busy(30)
        end
        self.trainer:save_checkpoint "kept.ckpt"
      end
      local batches = {}
      for k = 1, 8 do batches[k] = lt.ones(2, 9) end
      lt.Trainer {max_epochs = 1, devices = 2, strategy = "zero1", logger = false,
        enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false}
        :fit(net, batches)
    ]], { ranks = 2 })
    assert.truthy(one:wait_for("late", 20), one:read "err")
    local before = one:read "kept.ckpt"
    assert.truthy(job.signal("KILL", one:pid(1)))
    assert.truthy(one:wait_gone(15), "processes are left")
    assert.equal(137, one:status())
    assert.equal(before, one:read "kept.ckpt")
    assert.matches("rank 1 .*was ended by SIGKILL .*in on_train_batch_end", one:read "err")
  end)
end)
