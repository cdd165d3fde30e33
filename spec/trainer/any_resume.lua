-- spec/trainer/any_resume.lua: a fit that is drawn at random, saved after every batch and resumed
-- from each file, for specs.
--
-- What is drawn: the kind of data, sizes, windows, limits, optimizers, schedulers, callbacks,
-- manual optimization, validation and its intervals, ways to stop, and the hook that saves. A
-- resumed fit must have the same end: the checkpoint of its end (weights, optimizers, schedulers,
-- metrics, callbacks' states, counters), the rows of metrics.csv, and the hooks that were called
-- after the save, with what they found in the Trainer.
local c = require "ltrain.c"
local checkpoint_file = require "ltrain.files.checkpoint_file"
local console = require "ltrain.core.console"
local draw = require "spec.trainer.draw"
local hooks = require "ltrain.core.hooks"
local lt = require "ltrain"
local tree = require "ltrain.core.tree"

local any_resume = {}

-- What is drawn.

local OPTIMIZERS <const> = { "SGD", "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Lion",
  "RAdam", "Adadelta", "LBFGS" }
local SCHEDULERS <const> = { "none", "none", "StepLR", "ExponentialLR", "OneCycleLR",
  "CosineAnnealingWarmRestarts", "SequentialLR", "plateau", "LambdaLR", "CyclicLR" }
local DATA <const> = { "map", "map", "sampler", "iterable", "stateful", "table", "generator",
  "endless", "combined", "object" }
local CALLBACKS <const> = { "EMA", "SWA", "early", "accumulation", "lr", "finetuning", "checkpoint",
  "averaging" }
local WHERE <const> = { "on_train_batch_end", "on_train_batch_end", "request", "request",
  "on_validation_end", "on_train_epoch_end", "on_train_epoch_start", "training_step",
  "on_validation_batch_end" }

--- The case of a number.
function any_resume.draw(number)
  local random, one_of, maybe = draw(number)
  local case = { data = one_of(DATA), n = random(11) + 1, batch = random(4),
    drop_last = maybe(20), shuffle = maybe(60), mode = one_of { "min_size", "max_size",
      "max_size_cycle", "sequential" },
    epochs = random(3), window = one_of { 1, 1, 2, 3 }, optimizer = one_of(OPTIMIZERS),
    scheduler = one_of(SCHEDULERS), interval = one_of { "step", "epoch" },
    frequency = one_of { 1, 1, 2, 3 }, clip = one_of { 0, 0.05, 0.5 }, norm = maybe(30),
    manual = maybe(30), every = random(3), gan = maybe(40), cleared = one_of { "before", "after" },
    val = one_of { 0, 1, 1, 2 }, val_batch = random(3), val_interval = one_of { 1.0, 1.0, 0.5, 2 },
    by_batches = maybe(20), check_every = one_of { 1, 1, 2 }, limit = one_of { 1.0, 1.0, 2, 0.6 },
    max_steps = one_of { -1, -1, -1, 4, 7 }, log_every = one_of { 1, 1, 2, 3 },
    reload = one_of { 0, 0, 0, 1 }, where = one_of(WHERE), skips = maybe(20), leaves = maybe(15),
    stops = maybe(15), callbacks = {}, min_epochs = one_of { 0, 0, 2 } }
  for _, name in ipairs(CALLBACKS) do case.callbacks[name] = maybe(20) end
  return any_resume.settle(case)
end

-- Number of batches in an epoch where the loader knows it.
local function length_of(case)
  local n = (case.drop_last and case.n or case.n + case.batch - 1) // case.batch
  return math.max(n, 1)
end

--- Leaves out what cannot be together.
function any_resume.settle(case)
  if case.n < case.batch then case.drop_last = false end
  local unsized = case.data == "iterable" or case.data == "stateful" or case.data == "generator"
    or case.data == "endless"
  if unsized and math.type(case.limit) == "float" then case.limit = 1.0 end
  if unsized and math.type(case.val_interval) == "float" then case.val_interval = 1.0 end
  if case.data == "endless" then case.limit, case.leaves = 3, false end
  if length_of(case) == 1 and case.limit == 0.6 then case.limit = 1.0 end
  if case.where == "training_step" then case.callbacks.lr = false end -- it logs before the step
  local has = case.callbacks
  if case.by_batches and math.type(case.val_interval) == "float" then case.val_interval = 3 end
  if case.val_interval == 2 and not case.by_batches
    and (case.limit ~= 1.0 or length_of(case) < 4) then
    case.val_interval = 1.0
  end
  if case.manual then
    case.window, case.clip, case.skips, has.accumulation = 1, 0, false, false
    if case.optimizer == "LBFGS" then case.optimizer = "SGD" end
    if case.gan then has.finetuning = false end
  end
  if case.optimizer == "LBFGS" then
    case.window, case.norm, has.finetuning, case.clip = 1, false, false, 0
    has.accumulation = false
  end
  if has.accumulation then case.window = 1 end
  if case.scheduler ~= "none" or case.manual and case.gan then has.SWA = false end
  if has.SWA or has.EMA then has.averaging = false end
  if has.SWA then has.EMA = false end
  if has.SWA or has.EMA or has.averaging then has.finetuning = false end
  if case.data ~= "map" and case.data ~= "table" then has.SWA = false end
  if has.finetuning and (case.scheduler ~= "none" or case.norm) then has.finetuning = false end
  if has.checkpoint and case.where ~= "on_train_batch_end" then has.checkpoint = false end
  if case.scheduler == "CyclicLR" and case.optimizer ~= "SGD" then case.scheduler = "StepLR" end
  if case.scheduler == "OneCycleLR" then
    case.interval = "step"
    if case.optimizer ~= "SGD" then case.optimizer = "AdamW" end
  end
  if has.lr then has.lr = case.optimizer ~= "none" end
  return case
end

-- The data: each pass differs from the one before where the kind of data allows it.

local function tensors(n, first)
  local x = (lt.arange(n * 3):to "f32" + first):reshape { n, 3 }
  return lt.data.TensorDataset(x:sin(), (x * 0.7):cos():sum(2, { keepdim = true }))
end

local function batch_of(i, size)
  local x = (lt.arange(size * 3):to "f32" + i * 5):reshape { size, 3 }:sin()
  return { x, x:sum(2, { keepdim = true }) }
end

local Stream = lt.data.IterableDataset:extend "Stream"
function Stream:init(n) self.n = n end
function Stream:iterate()
  local i = 0
  return function()
    i = i + 1
    if i > self.n then return nil end
    local one = batch_of(i, 1)
    return { one[1][1] + lt.rand(3), one[2][1] }
  end
end

-- One that knows where it is, and draws as it goes.
local Stateful = lt.data.IterableDataset:extend "Stateful"
function Stateful:init(n) self.n, self.at = n, 0 end
function Stateful:iterate()
  if self.at >= self.n then self.at = 0 end
  return function()
    if self.at >= self.n then
      self.at = 0
      return nil
    end
    self.at = self.at + 1
    local one = batch_of(self.at, 1)
    return { one[1][1], one[2][1] }
  end
end
function Stateful:state_dict() return { at = self.at } end
function Stateful:load_state_dict(saved) self.at = saved.at end

-- A loader of the script's own, whose order depends on the epoch.
local function object(count)
  local own = { epoch = 0, length = function() return count end }
  function own:set_epoch(epoch) self.epoch = epoch end
  function own:batches(position)
    local i = position or 0
    return function()
      i = i + 1
      if i <= count then return batch_of(i * (self.epoch + 1), 2) end
    end
  end
  return own
end

local LOADERS <const> = {}

function LOADERS.map(case)
  return lt.data.DataLoader(tensors(case.n, 0), { batch_size = case.batch, shuffle = case.shuffle,
    drop_last = case.drop_last })
end

function LOADERS.sampler(case)
  local data, weights = tensors(case.n, 0), {}
  for i = 1, case.n do weights[i] = i end
  return lt.data.DataLoader(data, { batch_size = case.batch,
    sampler = lt.data.WeightedRandomSampler(weights, case.n) })
end

function LOADERS.iterable(case)
  return lt.data.DataLoader(Stream(case.n), { batch_size = case.batch, drop_last = case.drop_last })
end

function LOADERS.stateful(case)
  return lt.data.DataLoader(Stateful(case.n), { batch_size = case.batch })
end

function LOADERS.table(case)
  local list = {}
  for i = 1, length_of(case) do
    list[i] = batch_of(i, i * case.batch > case.n and case.n % case.batch or case.batch)
  end
  return list
end

function LOADERS.generator(case)
  return function()
    local i = 0
    return function()
      i = i + 1
      if i <= length_of(case) then
        local one = batch_of(i, 2)
        return { one[1] + lt.rand(2, 3), one[2] }
      end
    end
  end
end

function LOADERS.endless()
  local i = 0
  return function()
    i = i + 1
    return batch_of(i, 2)
  end
end

function LOADERS.combined(case)
  return lt.data.CombinedLoader({ a = LOADERS.map(case), b = lt.data.DataLoader(tensors(5, 50),
    { batch_size = 2, shuffle = case.shuffle }) }, { mode = case.mode })
end

function LOADERS.object(case) return object(length_of(case)) end

local function val_loaders(case)
  if case.val == 0 then return nil end
  local list = {}
  for i = 1, case.val do
    list[i] = lt.data.DataLoader(tensors(2 + i, 100 * i), { batch_size = case.val_batch })
  end
  return case.val == 1 and list[1] or list
end

-- The module.

local Net = lt.Module:extend "Net"

function Net:init(case)
  self.case, self.automatic_optimization = case, not case.manual
  self.backbone, self.head = lt.nn.Linear(3, 3), lt.nn.Linear(3, 1)
  self.norm = case.norm and lt.nn.BatchNorm1d(3) or nil
  self.dropout = lt.nn.Dropout(0.2)
  self.mean = lt.metrics.Mean()
end

function Net:forward(x)
  local hidden = self.backbone(x)
  if self.norm and #hidden > 1 then hidden = self.norm(hidden) end
  return self.head(self.dropout(hidden:tanh()))
end

local function loss_of(self, batch)
  if batch.a or batch.b then
    local loss = batch.a and loss_of(self, batch.a)
    local other = batch.b and loss_of(self, batch.b)
    return loss and other and loss + other or loss or other
  end
  return (self(batch[1]) - batch[2]):square():mean()
end

function Net:manual_step(loss, index)
  local case, list = self.case, self:optimizers()
  if list.param_groups then list = { list } end
  local optimizer = list[case.gan and index % #list + 1 or 1]
  self:manual_backward(loss)
  if (index + 1) % case.every == 0 then
    optimizer:step()
    optimizer:zero_grad()
  end
end

function Net:training_step(batch, index)
  self.saver:at("training_step", self.trainer)
  local case = self.case
  local loss = loss_of(self, batch)
  self.mean:update(loss)
  self:log("loss", loss, { on_epoch = true, prog_bar = true, batch_size = 1 })
  self:log("mean", self.mean, { on_step = false, on_epoch = true })
  if case.stops and self.trainer.current_epoch == 1 and index == 1 then
    self.trainer.should_stop = true
  end
  if case.skips and index % 3 == 2 then return nil end
  if not case.manual then return loss end
  self:manual_step(loss, index)
end

function Net:on_train_batch_start(_, index)
  if self.case.leaves and self.trainer.current_epoch == 1 and index == 2 then return -1 end
end

function Net:validation_step(batch) self:log("val_loss", loss_of(self, batch),
  { add_dataloader_idx = self.case.val > 1, batch_size = 1 }) end

function Net:on_train_epoch_end() self:log("draw", lt.rand(1)) end

local SCHEDULE <const> = {
  StepLR = function(o) return lt.optim.StepLR(o, 2, { gamma = 0.5 }) end,
  ExponentialLR = function(o) return lt.optim.ExponentialLR(o, 0.9) end,
  OneCycleLR = function(o) return lt.optim.OneCycleLR(o, 0.1, { total_steps = 60 }) end,
  CosineAnnealingWarmRestarts = function(o)
    return lt.optim.CosineAnnealingWarmRestarts(o, 3)
  end,
  SequentialLR = function(o)
    return lt.optim.SequentialLR(o, { lt.optim.LinearLR(o), lt.optim.StepLR(o, 2) },
      { 3 })
  end,
  LambdaLR = function(o) return lt.optim.LambdaLR(o, function(i) return 1 / (i + 1) end) end,
  CyclicLR = function(o) return lt.optim.CyclicLR(o, 0.01, 0.1, { step_size_up = 2 }) end,
  plateau = function(o)
    return lt.optim.ReduceLROnPlateau(o, { patience = 0, factor = 0.5, threshold = 0.3 })
  end,
}

function Net:configure_optimizers()
  local case = self.case
  local function make(parameters)
    local trained = {}
    for _, parameter in ipairs(parameters) do
      if parameter.requires_grad then trained[#trained + 1] = parameter end
    end
    local o = { lr = 0.02 }
    if case.optimizer == "LBFGS" then o.max_iter = 2 end
    if case.optimizer == "SGD" then o.momentum = 0.9 end
    return lt.optim[case.optimizer](trained, o)
  end
  if case.manual and case.gan then
    return { make(self.backbone:parameters()), make(self.head:parameters()) }
  end
  local optimizer = make(self:parameters())
  if case.scheduler == "none" then return optimizer end
  return { optimizer = optimizer, lr_scheduler = { scheduler = SCHEDULE[case.scheduler](optimizer),
    interval = case.interval, frequency = case.frequency,
    monitor = case.scheduler == "plateau" and "loss" or nil } }
end

-- Callbacks.

local MAKE <const> = {
  EMA = function() return lt.callbacks.EMAWeightAveraging { decay = 0.5,
    update_starting_at_epoch = 1 } end,
  averaging = function() return lt.callbacks.WeightAveraging {} end,
  SWA = function() return lt.callbacks.StochasticWeightAveraging { swa_lrs = 0.01,
    swa_epoch_start = 1, annealing_epochs = 2 } end,
  early = function(case)
    local monitor = case.val == 0 and "draw" or case.val == 1 and "val_loss"
      or "val_loss/dataloader_idx_2"
    return lt.callbacks.EarlyStopping { monitor = monitor, patience = 1, min_delta = 0.05,
      strict = false }
  end,
  accumulation = function()
    return lt.callbacks.GradientAccumulationScheduler { [0] = 2, [1] = 1, [2] = 3 }
  end,
  lr = function() return lt.callbacks.LearningRateMonitor {} end,
  finetuning = function()
    return lt.callbacks.BackboneFinetuning { unfreeze_backbone_at_epoch = 1 }
  end,
  checkpoint = function(_, folder)
    return lt.callbacks.ModelCheckpoint { dirpath = folder .. "/kept", monitor = "loss",
      save_top_k = 2, every_n_train_steps = 2 }
  end,
}

-- Hooks that only a resumed fit, or only an uninterrupted one, has called.
local OF_SET_UP <const> = { setup = true, on_fit_start = true, on_train_start = true,
  on_save_checkpoint = true, on_load_checkpoint = true, on_sanity_check_start = true,
  on_sanity_check_end = true }

-- What a hook finds in the Trainer.
local function found(name, trainer, ...)
  local parts = { name, "epoch " .. trainer.current_epoch, "step " .. trainer.global_step,
    "last " .. tostring(trainer.is_last_batch) }
  for i = 1, select("#", ...) do
    local value = select(i, ...)
    if type(value) == "number" then parts[#parts + 1] = ("%s"):format(value) end
  end
  for _, optimizer in ipairs(trainer.optimizers) do
    parts[#parts + 1] = ("lr %a"):format(optimizer.param_groups[1].lr)
  end
  for key, value in tree.pairs(trainer.callback_metrics) do
    value = c.is_tensor(value) and value:item() or value
    parts[#parts + 1] = ("%s %a"):format(key, value)
  end
  return table.concat(parts, ", ")
end

-- Writes down the hooks that are called.
local function recorder(events)
  local own = lt.Callback()
  own.all_ranks = true
  for _, name in ipairs(hooks.names "callback") do
    if not OF_SET_UP[name] then
      own[name] = function(_, trainer, _, ...)
        events[#events + 1] = found(name, trainer, ...)
      end
    end
  end
  return own
end

-- A copy of the files that ModelCheckpoint has at a save.
local function keep_files(case, path)
  if not case.callbacks.checkpoint then return nil end
  os.execute(("cp -r '%s/../kept' '%s.kept' 2>/dev/null"):format(path:match "^(.*)/", path))
  return path .. ".kept"
end

-- Saves, each time another file, where the case says so.
local function make_saver(case, folder, events)
  local saver = lt.Callback()
  saver.files, saver.moments = {}, {} -- moments: how many hooks were called at each save
  saver.saves_checkpoints = true -- the last of all callbacks
  saver.all_ranks = true
  function saver:at(hook, trainer)
    local requested = case.where == "request" and hook == "on_train_batch_end"
    if not (requested or hook == case.where) or not folder then return end
    if trainer.sanity_checking or trainer.running.step_closure:is_again() then return end
    self.count = (self.count or 0) + 1
    local path = ("%s/%d.ckpt"):format(folder, self.count)
    local function saved() -- of a device some batches later
      self.files[#self.files + 1] = { path = path, at = table.remove(self.moments, 1),
        kept = keep_files(case, path), stops = trainer.should_stop }
    end
    if requested then return trainer:request_checkpoint(path, nil, saved) end
    self.moments = {} -- without those of ModelCheckpoint
    trainer:save_checkpoint(path)
    saved()
  end
  function saver:on_save_checkpoint() table.insert(self.moments, #events) end
  for _, hook in ipairs(WHERE) do
    if hooks.by_name[hook] and hook ~= "training_step" then
      saver[hook] = function(self, trainer) self:at(hook, trainer) end
    end
  end
  return saver
end

-- What fits say on the way is not what is tested.
local function quiet(fn, ...)
  local _ <close> = setmetatable({ console.say }, { __close = function(own)
    console.say = own[1]
  end })
  console.say = function() end
  return fn(...)
end

-- A fit of the case; `files`: the folder to save in; `from`: the file to resume.
local function fit(case, folder, files, from)
  lt.seed(from and 99 or 7)
  local events, net = {}, Net(case)
  if from then lt.rand(5) end
  local callbacks = { recorder(events) }
  for _, name in ipairs(CALLBACKS) do
    if case.callbacks[name] then callbacks[#callbacks + 1] = MAKE[name](case, folder) end
  end
  local saver = make_saver(case, files, events)
  net.saver = saver
  callbacks[#callbacks + 1] = saver
  local trainer = lt.Trainer { max_epochs = case.epochs, max_steps = case.max_steps,
    min_epochs = case.min_epochs <= case.epochs and case.min_epochs or 0,
    accumulate_grad_batches = case.window, gradient_clip_val = case.clip,
    limit_train_batches = case.limit, val_check_interval = case.val_interval,
    check_val_every_n_epoch = not case.by_batches and case.check_every,
    log_every_n_steps = case.log_every, num_sanity_val_steps = 0,
    reload_dataloaders_every_n_epochs = case.reload, enable_progress_bar = false,
    enable_model_summary = false, enable_checkpointing = case.callbacks.checkpoint,
    callbacks = callbacks, logger = lt.loggers.CSVLogger(folder, { version = 0 }) }
  trainer:fit(net, LOADERS[case.data](case), val_loaders(case), { ckpt_path = from })
  trainer.last_run.window:set_nominal_batch(nil) -- begins anew with a resumed fit
  local path = folder .. "/end.ckpt"
  trainer:save_checkpoint(path)
  local rows = c.io.read_file(trainer.log_dir .. "/metrics.csv") or ""
  return { events = events, files = saver.files, rows = rows,
    saved = assert(checkpoint_file.read(path)) }
end

-- Comparison.

local function text_of(value)
  if c.is_tensor(value) then
    return ("%s %08x"):format(value, c.io.crc32(value:contiguous()))
  end
  return math.type(value) == "float" and ("%a"):format(value) or tostring(value)
end

-- Adds the differences of two trees to the list.
local function compare(list, path, a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    if text_of(a) ~= text_of(b) then
      list[#list + 1] = ("%s: %s, uninterrupted %s"):format(path, text_of(b), text_of(a))
    end
    return
  end
  local keys = {}
  for key in pairs(a) do keys[key] = true end
  for key in pairs(b) do keys[key] = true end
  for key in tree.pairs(keys) do compare(list, ("%s.%s"):format(path, key), a[key], b[key]) end
end

-- The hooks of a resumed fit are the last of those of the whole one, from the save on; what the
-- file was saved in the middle of, a validation or a batch that has not begun, comes again.
local function compare_events(list, whole, resumed, at)
  local a, b = whole.events, resumed.events
  local first = #a - #b
  for i = first + 1, at do
    if first < 0 or not (a[i]:find "validation" or a[i]:find "^on_train_batch_start") then
      list[#list + 1] = ("%d hooks were called, uninterrupted %d"):format(#b, #a - at)
      break
    end
  end
  if first > at then
    list[#list + 1] = ("%d hooks were called, uninterrupted %d"):format(#b, #a - at)
  end
  for i = 0, #b - 1 do
    if b[#b - i] ~= a[#a - i] then
      list[#list + 1] = ("hook: %s\n  uninterrupted: %s"):format(b[#b - i], a[#a - i])
      return
    end
  end
end

-- Whether the file was saved after the last step of a fit that ended in mid-epoch: there is nothing
-- left to do.
local function has_nothing(whole, resumed)
  return whole.saved.loops.fit.in_epoch and #resumed.events < 3
end

-- A request to stop is not in the file: a resumed fit continues.
local function files_of(whole)
  local list = {}
  for _, file in ipairs(whole.files) do
    if not file.stops then list[#list + 1] = file end
  end
  return list
end

--- Runs the case; returns a list of differences between each resumed fit and the uninterrupted one,
--- and how many files were resumed. `folder` is made, and removed.
function any_resume.differences(case, folder)
  local _ <close> = setmetatable({}, { __close = function()
    os.execute(("rm -rf '%s'"):format(folder))
  end })
  assert(c.io.make_folder(folder .. "/files"))
  local list = {}
  local whole = quiet(fit, case, folder, folder .. "/files")
  local files = files_of(whole)
  for i, file in ipairs(files) do
    local before = #list
    if file.kept then
      os.execute(("rm -rf '%s/kept'; cp -r '%s' '%s/kept' 2>/dev/null"):format(folder, file.kept,
        folder))
    end
    local ok, resumed = pcall(quiet, fit, case, folder, nil, file.path)
    if not ok then
      list[#list + 1] = tostring(resumed)
    elseif not has_nothing(whole, resumed) then
      compare(list, "end", whole.saved, resumed.saved)
      if whole.rows ~= resumed.rows then
        list[#list + 1] = ("metrics.csv:\n%s\nuninterrupted:\n%s"):format(resumed.rows, whole.rows)
      end
      compare_events(list, whole, resumed, file.at)
    end
    if #list > before then
      table.insert(list, before + 1, ("file %d of %d, saved after: %s"):format(i, #files,
        whole.events[file.at] or "nothing"))
    end
  end
  return list, #files
end

--- The case as a line of text.
function any_resume.text(case)
  local parts = {}
  for key, value in tree.pairs(case) do
    if type(value) ~= "table" then parts[#parts + 1] = ("%s=%s"):format(key, value) end
  end
  for name, has in tree.pairs(case.callbacks) do
    if has then parts[#parts + 1] = name end
  end
  return table.concat(parts, " ")
end

return any_resume
