-- spec/trainer/doctored_spec.lua: checkpoints whose bytes or fields were changed: a sentence at the
-- script's line, or no effect; never a crash and never an error within the library.
--
-- LT_EXHAUSTIVE=1 changes each bit and gives each field each wrong value.
-- tags: slow, waits

local lt = require "ltrain"
local c = require "ltrain.c"

local EXHAUSTIVE <const> = os.getenv "LT_EXHAUSTIVE" == "1"
local INTERNAL <const> = "ltrain%.[%w_.]+:%d+:"
local io_of = lt.CheckpointIO()

local folder, path, other_path, changed

local Net = lt.Module:extend "Net"

function Net:init()
  self.linear = lt.nn.Linear(2, 1)
  self.mean = lt.metrics.Mean()
end

function Net:training_step(batch)
  local y = self.linear(batch[1])
  self.mean:update(y)
  self:log("a", y:mean(), { on_step = true, on_epoch = true })
  return (y - batch[2]):square():mean()
end

function Net:validation_step(batch)
  self:log("v", (self.linear(batch[1]) - batch[2]):square():mean())
end

function Net:configure_optimizers()
  local optimizer = lt.optim.Adam(self:parameters(), { lr = 0.01 })
  local scheduler = lt.optim.ReduceLROnPlateau(optimizer)
  return { optimizer = optimizer, lr_scheduler = { scheduler = scheduler, monitor = "v" } }
end

-- A schedule that counts steps, two groups, wrappers of metrics, a loader of two.
local Other = Net:extend "Other"

function Other:init()
  Net.init(self)
  self.backbone = lt.nn.Linear(2, 2)
  local mse = lt.metrics.MeanSquaredError
  self.running, self.tracker = lt.metrics.Running(lt.metrics.Mean(), { window = 2 }),
    lt.metrics.MetricTracker(mse())
  self.ends, self.all = lt.metrics.MinMaxMetric(mse()), lt.metrics.MetricCollection { mse(),
    lt.metrics.Mean() }
  self.tracker:increment()
end

function Other:training_step(batch)
  batch = batch.a
  local y = self.linear(self.backbone(batch[1]))
  self.running:update(y)
  self.tracker:update(y, batch[2])
  self.ends:update(y, batch[2])
  return (y - batch[2]):square():mean()
end

function Other:configure_optimizers()
  local optimizer = lt.optim.SGD({ { params = self.linear:parameters() } },
    { lr = 0.01, momentum = 0.9 })
  return { optimizer = optimizer,
    lr_scheduler = { scheduler = lt.optim.StepLR(optimizer, 1), interval = "step" } }
end

local function callbacks_of(is_other)
  if is_other then
    return { lt.callbacks.BackboneFinetuning { unfreeze_backbone_at_epoch = 0 },
      lt.callbacks.EMAWeightAveraging {}, lt.callbacks.StochasticWeightAveraging { swa_lrs = 0.1,
        swa_epoch_start = 0 }, lt.callbacks.ModelCheckpoint { dirpath = folder .. "/others" } }
  end
  return { lt.callbacks.EarlyStopping { monitor = "v" }, lt.callbacks.Timer {},
    lt.callbacks.ModelCheckpoint { monitor = "v", dirpath = folder .. "/kept", save_last = true } }
end

local function loader_of(is_other, data, batch)
  local function one() return lt.data.DataLoader(data, { batch_size = batch, shuffle = true }) end
  return is_other and lt.data.CombinedLoader { a = one(), b = one() } or one()
end

-- A fit of one epoch, saved in mid-epoch and in mid-window under `save`, or resumed from
-- `from`. Returns the weights.
local function fit(save, from, is_other)
  lt.seed(1)
  local data = lt.data.TensorDataset(lt.randn(8, 2), lt.randn(8, 1))
  local trainer = lt.Trainer { max_epochs = 1, enable_progress_bar = false,
    logger = is_other and { lt.loggers.CSVLogger { save_dir = folder .. "/logs", version = 0 } },
    enable_model_summary = false, default_root_dir = folder, accumulate_grad_batches = 2,
    num_sanity_val_steps = 0,
    allow_batch_change = true, callbacks = callbacks_of(is_other) }
  local net = (is_other and Other or Net)()
  function net.on_train_batch_end(_, _, _, index)
    if save and index == 2 then trainer:save_checkpoint(save) end
  end
  trainer:fit(net, loader_of(is_other, data, is_other and from and 1 or 2),
    lt.data.DataLoader(data, { batch_size = 4 }), { ckpt_path = from })
  return lt.hash(net:state_dict())
end

local function bytes_of(name)
  local file <close> = assert(io.open(name, "rb"))
  return file:read "a"
end

setup(function()
  local pipe <close> = assert(io.popen "mktemp -d")
  folder = pipe:read "l"
  path, changed = folder .. "/good.ckpt", folder .. "/changed.ckpt"
  other_path = folder .. "/other.ckpt"
  fit(path)
  fit(other_path, nil, true)
end)

teardown(function() os.execute(("rm -rf '%s'"):format(folder)) end)

-- A fit that resumes from the changed file; `what` names the change.
local function resume(what, is_other)
  local ok, message = pcall(fit, nil, changed, is_other)
  if ok then return message end
  message = tostring(message)
  assert.is_nil(message:find(INTERNAL), ("%s: %s"):format(what, message))
  assert.is_truthy(message:find("doctored_spec.lua:%d+: "), ("%s: %s"):format(what, message))
end

describe("a checkpoint with a changed bit", function()
  it("is refused, or the run that resumes from it is the same", function()
    local bytes, weights = bytes_of(path), fit(nil, path)
    local step = EXHAUSTIVE and 1 or #bytes * 8 // 200
    for bit = 0, #bytes * 8 - 1, step do
      local at = bit // 8 + 1
      local file <close> = assert(io.open(changed, "wb"))
      file:write(bytes:sub(1, at - 1), string.char(bytes:byte(at) ~ 1 << bit % 8),
        bytes:sub(at + 1))
      file:close()
      local saved, message = io_of:load(changed)
      if saved then
        assert.equal(weights, resume("bit " .. bit), "bit " .. bit)
      else
        assert.is_truthy(message:find(changed, 1, true), "bit " .. bit)
        assert.is_nil((lt.load(changed)))
      end
    end
  end)
end)

-- Lists of all places in the tree, each as a list of keys.
local function places(value, at, list)
  if type(value) ~= "table" then return list end
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    local place = table.move(at, 1, #at, 1, {})
    place[#place + 1] = key
    list[#list + 1] = place
    places(value[key], place, list)
  end
  return list
end

local NULL <const> = "null of JSON"
local WRONG <const> = { -1, "x", {}, 2.5, true, math.maxinteger, { { "y" } }, -100000000, 0.0 / 0.0,
  "", math.mininteger, { a = 1 }, 1 << 40, false, NULL, 0, 0.5 }

-- The checkpoint with another value at a place; nil: without one.
local function save_changed(place, value, is_other)
  local saved = assert(io_of:load(is_other and other_path or path))
  local held = saved
  for i = 1, #place - 1 do held = held[place[i]] end
  held[place[#place]] = value
  local ok = pcall(io_of.save, io_of, saved, changed)
  if not ok or value ~= NULL and type(value) ~= "table" then return ok end
  local tensors, metadata = c.io.load_safetensors(changed)
  metadata.ltrain = metadata.ltrain:gsub('"' .. NULL .. '"', "null")
  metadata["ltrain.crc32"] = "00000000"
  return c.io.save_safetensors(changed, tensors, metadata, {})
end

local function try_all(is_other)
  local list, count = places(assert(io_of:load(is_other and other_path or path)), {}, {}), 0
  assert.is_true(#list > 80)
  for n, place in ipairs(list) do
    for k = 0, #WRONG do -- the last one: no field
      local drawn = EXHAUSTIVE or k == n % (#WRONG + 1) and (not is_other or n % 4 == 0)
      if drawn and save_changed(place, WRONG[k + 1], is_other) then
        count = count + 1
        resume(("%s = %s"):format(table.concat(place, "."), tostring(WRONG[k + 1])), is_other)
      end
    end
  end
  assert.is_true(count > (is_other and 20 or 80))
end

describe("a checkpoint with a field of another type or value", function()
  it("is reported in a sentence at the script's line, or read", function() try_all(false) end)

  it("is so for other schedulers, callbacks, loaders and loggers too", function() try_all(true) end)

  it("writes and removes no file outside the folder of its callback", function()
    local other = folder .. "/other"
    local file <close> = assert(io.open(other, "w"))
    file:write "x"
    file:close()
    for _, name in ipairs { other, folder .. "/kept/../other" } do
      local saved = assert(io_of:load(path))
      for key, state in pairs(saved.callbacks) do
        if key:find "^ModelCheckpoint" then
          state.last_model_path, state.best_k_models = name, { [name] = math.huge }
          state.best_model_path, state.kth_best_model_path = name, name
        end
      end
      assert(io_of:save(saved, changed))
      resume(name)
      assert.equal("x", bytes_of(other))
    end
  end)

  it("names the file and the field", function()
    for field, words in pairs { epoch = "must be a count", loops = "must be a table",
      random = "must be a table", modes = "must be a table" } do
      assert(save_changed({ field }, "x"))
      local saved, message = io_of:load(changed)
      assert.is_nil(saved)
      assert.equal(("%s: damaged: field '%s' %s: got 'x'"):format(changed, field, words), message)
    end
  end)

  it("names both where the part of it is that the field belongs to", function()
    local rows = {
      { { "loops", "fit", "loader", "position" }, -100000000, "position must be at least 0: got " },
      { { "callbacks", "EarlyStopping(v, min)", "patience" }, "x",
        "EarlyStopping: load_state_dict: field 'patience' must be a count: got 'x'" },
      { { "optimizer_states", 1, "param_groups", 1, "params" }, { "a", NULL, "b" },
        "SGD: load_state_dict: field 'param_groups[1].params' must be a list: got a table", true },
    }
    for i, row in ipairs(rows) do
      assert(save_changed(row[1], row[2], row[4]), i)
      local ok, message = pcall(fit, nil, changed, row[4])
      assert.is_false(ok)
      assert.matches("doctored_spec.lua:%d+: ", message)
      assert.is_truthy(message:find(row[3], 1, true), message)
      assert.is_truthy(message:find(changed, 1, true), message)
    end
  end)
end)
