-- spec/dist/any_fit.lua: a fit that is drawn at random, run on several numbers of ranks in one
-- script, for specs.
--
-- What is drawn: dtypes, sizes of data and batches, windows, limits, validation and its intervals,
-- optimizers, schedulers, clipping, ways to stop, a branch that only some samples use, a loss over
-- the samples of all ranks, metrics of all kinds, manual optimization, stages, units and replicas
-- of Sharded, and a run that is saved and resumes with another number of ranks. The script prints a
-- line for each difference from one rank.
local SCRIPT <const> = [[
local lt = require "ltrain"
local seed <const> = math.tointeger(tonumber(arg[1]))
local counts <const> = {2, 3, 4}

-- Draws of the case, apart from those of lt.

local state = (seed * 2654435761 + 12345) & 0xffffffff
local function random(n) -- 1 .. n
  state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
  return (state >> 33) % n + 1
end
local function one_of(...) return (select(random(select("#", ...)), ...)) end
local function maybe(share) return random(100) <= share end

local case = {
  n = one_of(1, 2, 5, 9, 16, 23, 31, 40), batch = one_of(4, 5, 7, 8, 12),
  shuffle = maybe(60), drop_last = maybe(25), window = one_of(1, 1, 2, 3),
  epochs = random(3), optimizer = one_of("SGD", "Adam", "AdamW"),
  scheduler = one_of(nil, "epoch", "step"), clip = one_of(nil, nil, 0.05),
  clip_by = one_of("norm", "value"), branch = maybe(50), contrast = maybe(30),
  val = one_of(0, 1, 3, 8, 13), val_batch = one_of(4, 5, 9), val_loaders = one_of(1, 1, 2),
  manual = maybe(20), gan = maybe(50), stop_epoch = maybe(25), early = maybe(25),
  leave_at = maybe(15) and random(4) - 1 or nil, limit = one_of(1.0, 1.0, 2, 3, 0.5),
  limit_val = one_of(1.0, 1.0, 1), max_steps = one_of(-1, -1, -1, 3, 5),
  interval = one_of(1.0, 1.0, 0.5, 2), every = one_of(1, 1, 2), sanity = one_of(0, 2),
  cut = maybe(40) and random(4) or nil, cut_ranks = one_of(1, 2, 3, 4),
  cut_how = one_of("steps", "stop", "again"), weight = maybe(25),
  norm = maybe(20), world = maybe(25), log_every = one_of(1, 3, 50), csv = maybe(50),
  skip_at = maybe(20) and random(4) - 1 or nil, light_at = maybe(15) and random(4) - 1 or nil,
  keep = maybe(35) and random(3) or nil, plateau = maybe(15), at_times = maybe(40),
  first_only = maybe(30), deal = maybe(15), own_order = maybe(15), reload = maybe(10),
  overfit = maybe(8) and 1 or 0, predict = one_of(0, 1, 4, 9), predict_batch = one_of(1, 2, 4),
  buckets = one_of("usual", "sharded", "small", "hook", "zero1"), drop = maybe(50),
  test = maybe(40), min_epochs = one_of(nil, nil, 2), ema = maybe(20),
}
if case.manual then
  case.window, case.clip, case.world, case.cut = 1, nil, false, nil
  case.n = case.batch * one_of(1, 2, 3) -- a rank without samples cannot step by itself
end
if case.world then case.contrast, case.norm, case.branch = false, false, false end
-- Where a rank has no loss all forget their gradients, one process does not.
if case.ema then case.skip_at, case.light_at = nil, nil end
if case.overfit > 0 then case.limit, case.limit_val, case.interval = 1.0, 1.0, 1.0 end
if case.epochs == 1 then case.min_epochs = nil end
if case.skip_at == 0 then case.skip_at = nil end -- the first step decides what is returned
if case.deal or case.overfit > 0 then -- whole batches are dealt: others than on one rank
  case.deal = false
end
if case.norm then case.batch, case.n = 12, one_of(16, 24, 40) end
if case.world and (case.cut_ranks == 3) then case.cut_ranks = 4 end
local batches = (case.drop_last and case.n or case.n + case.batch - 1) // case.batch
if batches == 0 then case.drop_last, batches = false, 1 end
if batches == 1 then case.limit = 1.0 end
batches = case.limit == 0.5 and batches // 2
  or math.min(batches, case.limit == 1.0 and 99 or case.limit)
if batches < 2 then case.interval = 1.0 end

-- In f32 too. A bias before batch norm has no gradient but what rounding leaves, which is another
-- on each number of ranks, and which Adam makes a whole step of: there is none then.
case.dtype = maybe(30) and "f32" or "f64"
case.bias = not (case.norm and case.dtype == "f32" and case.optimizer ~= "SGD")

-- What Sharded does. by: units are linear layers, or those that lt.shard marks.
case.stage, case.by = one_of(1, 2, 3, 3), one_of("class", "class", "shard")
case.accumulate, case.reshards = one_of("shards", "whole"), maybe(67)
case.keep_below, case.kind = one_of(0, 0, 4), one_of("full", "sharded")
case.hybrid, case.method = maybe(40), maybe(40)

-- The model.

-- Whether a batch has a sample whose number leaves `rest`.
local function some_of(id, by, rest)
  for _, i in ipairs(id:tolist()) do
    if i % by == rest then return true end
  end
  return false
end

local Net = lt.Module:extend "Net"
function Net:init()
  self.first, self.second = lt.nn.Linear(3, 4, {bias = case.bias}), lt.nn.Linear(4, 1)
  self.branch, self.unused = lt.nn.Linear(3, 1), lt.nn.Linear(2, 2)
  self.bn = case.norm and lt.nn.BatchNorm2d(4) or nil
  self.dropout = case.world and case.drop and lt.nn.Dropout(0.3) or nil
  if case.by == "shard" then
    lt.shard(self.first)
    lt.shard(self.branch, {reshard_after_forward = false})
  end
  if case.method then
    function self.branch:extra(x) return lt.nn.functional.linear(x, self.weight, self.bias) end
    lt.register_forward_method(self.branch, "extra")
  end
  self:to(case.dtype)
  self.mean, self.f1 = lt.metrics.Mean(), lt.metrics.F1()
  self.auroc = lt.metrics.AUROC()
  self.seen, self.val_seen = {}, {}
  self.automatic_optimization = not case.manual
end
function Net:forward(x)
  local hidden = self.first(x)
  if self.bn then hidden = self.bn(hidden:reshape {-1, 4, 1, 1}):reshape {-1, 4} end
  hidden = hidden:tanh()
  if self.dropout then hidden = self.dropout(hidden) end
  return self.second(hidden)
end
function Net:scores(batch)
  local x, id = batch[1], batch[2]
  local y = self(x)
  if case.branch and some_of(id, 7, 3) then
    local mask = (id % 7):eq(3):to(case.dtype):reshape {-1, 1}
    y = y + (case.method and self.branch:extra(x) or self.branch(x)) * mask
  end
  return y
end
function Net:loss(batch)
  local y, target = self:scores(batch), batch[1]:sum(2, true)
  local loss = (y - target):pow(2):mean()
  if case.contrast and self.trainer.training then
    local all = self:all_gather(y, {sync_grads = true, cat = true})
    loss = loss + ((y - all:mean()):pow(2)):mean() * 0.1
  end
  return loss
end
function Net:values(batch, loss)
  local x, id = batch[1], batch[2]
  local y, positive = self:scores(batch):detach():reshape {-1}, (id % 3):eq(0):to "i64"
  self:log("loss", loss:detach(), {on_step = true, on_epoch = true, sync_dist = true})
  self:log("most", x:amax(), {on_step = false, on_epoch = true, reduce_fx = "max"})
  self:log("sum", id:to("f64"):sum(), {on_step = false, on_epoch = true, reduce_fx = "sum"})
  if case.at_times and some_of(id, 5, 2) then
    local most = (id * (id % 5):eq(2):to "i64"):amax()
    self:log("at_times", most, {on_step = false, on_epoch = true, reduce_fx = "max"})
  end
  if case.first_only and lt.dist.rank() == 0 then
    self:log("first_only", self.current_epoch, {on_step = false, on_epoch = true,
      rank_zero_only = true})
  end
  self.mean:update(y)
  self.f1:update(y:gt(0):to "i64", positive)
  self.auroc:update(y:sigmoid(), positive)
end
function Net:training_step(batch, index)
  if self.stops_at == index then self.trainer.should_stop = true end
  for _, i in ipairs(batch[2]:tolist()) do
    table.insert(self.seen, ("%d.%03d.%03d"):format(self.current_epoch, index, i))
  end
  local loss = self:loss(batch)
  self:values(batch, loss)
  if not case.manual then
    if index == case.skip_at then return nil end
    if index == case.light_at then return {loss = loss, weight = 0} end
    if case.weight then return {loss = loss, weight = #batch[2]:tolist()} end
    return loss
  end
  local first, second = table.unpack(self:optimizers())
  first:zero_grad()
  self:manual_backward(loss)
  first:step()
  if case.gan then
    second:zero_grad()
    self:manual_backward(self:loss(batch))
    second:step()
  end
end
function Net:on_train_batch_start(_, index)
  if index == case.leave_at then return -1 end
end
function Net:on_fit_start() self.seen, self.val_seen = {}, {} end
function Net:on_train_epoch_end()
  self:log("mean", self.mean:compute())
  if case.stop_epoch and self.current_epoch == 1 and lt.dist.rank() == lt.dist.world_size() - 1 then
    self.trainer.should_stop = true
  end
  self.mean:reset()
end
function Net:test_step(batch, _, loader)
  self:log("test_loss", self:loss(batch))
  self.auroc:update(self(batch[1]):reshape {-1}, (batch[2] % 2):eq(0):to "i64")
  self:log("test_auroc", self.auroc)
end
function Net:predict_step(batch) return {batch[2], self(batch[1]):reshape {-1}} end
function Net:validation_step(batch, _, loader)
  for _, i in ipairs(self.trainer.sanity_checking and {} or batch[2]:tolist()) do
    table.insert(self.val_seen, ("%d.%d.%d.%03d"):format(self.current_epoch,
      self.trainer.global_step, loader or 1, i))
  end
  local loss = self:loss(batch)
  self:log("val_loss", loss, {sync_dist = true})
  self:log("val_most", batch[2]:to("f64"):amax(), {reduce_fx = "max"})
end
function Net:configure_optimizers()
  local function make(parameters)
    return lt.optim[case.optimizer](parameters, {lr = case.optimizer == "SGD" and 0.05 or 0.02})
  end
  if case.manual then
    return {make(self.first:parameters()),
      make(lt.nn.Sequential(self.second, self.branch):parameters())}
  end
  local optimizer = make(self:parameters())
  if case.plateau and case.val > 0 and not case.early then
    return {optimizer = optimizer, lr_scheduler = {scheduler = lt.optim.ReduceLROnPlateau(optimizer,
      {patience = 0, factor = 0.5, threshold = 0.1}), monitor = "loss_epoch"}}
  end
  if not case.scheduler then return optimizer end
  return {optimizer = optimizer, lr_scheduler = {
    scheduler = lt.optim.StepLR(optimizer, 2, {gamma = 0.5}), interval = case.scheduler}}
end

-- What ranks have seen, in order.
local lists = {}
local function gather(list)
  local all = {}
  for _, own in ipairs(lt.dist.all_gather(list)) do table.move(own, 1, #own, #all + 1, all) end
  table.sort(all)
  return all
end
function Net:on_fit_end()
  local seen, val_seen = gather(self.seen), gather(self.val_seen)
  table.move(seen, 1, #seen, #lists.seen + 1, lists.seen)
  table.move(val_seen, 1, #val_seen, #lists.val_seen + 1, lists.val_seen)
end

local function data_of(n, first)
  lt.seed(100 + first)
  return lt.data.TensorDataset(lt.randn(n, 3, {dtype = case.dtype}), lt.arange(n) + first)
end
local data, val_data = data_of(case.n, 0), data_of(math.max(case.val, 1), 500)

-- A mean of the weights after each step, kept on every rank.
local Slow = lt.Callback:extend "Slow"
Slow.all_ranks = true
function Slow:on_after_optimizer_step(trainer, module)
  local _ <close> = trainer.strategy:gather_parameters()
  self.mean = (self.mean or 0.0) * 0.9 + module.first.weight:detach():sum():item() * 0.1
end
function Slow:on_train_epoch_end(_, module) module:log("slow", self.mean or 0) end
function Slow:state_dict() return {mean = self.mean} end
function Slow:load_state_dict(saved) self.mean = saved.mean end

local function order_of(loader_seed)
  local order = {}
  for i = 1, case.n do order[i] = (i * 7 + loader_seed) % case.n + 1 end
  return order
end

local function fit(ranks, o, ckpt, stops_at)
  lt.seed(7)
  local net = Net()
  net.stops_at = stops_at
  local callbacks = {}
  if case.early and case.val > 0 and case.every == 1 and not case.leave_at and case.limit == 1.0
    and case.max_steps == -1 then
    local key = case.val_loaders > 1 and "val_loss/dataloader_idx_1" or "val_loss"
    callbacks[1] = lt.callbacks.EarlyStopping {monitor = key, patience = 1, min_delta = 0.01}
  end
  if case.ema then callbacks[#callbacks + 1] = Slow() end
  if case.keep then
    callbacks[#callbacks + 1] = lt.callbacks.ModelCheckpoint {dirpath = "kept_" .. ranks,
      filename = "{step}", every_n_train_steps = case.keep, save_top_k = -1, save_last = true}
  end
  local options = {devices = ranks, max_epochs = case.epochs, max_steps = case.max_steps,
    accumulate_grad_batches = case.window, gradient_clip_val = case.clip, logger = false,
    gradient_clip_algorithm = case.clip and case.clip_by,
    limit_train_batches = case.overfit == 0 and case.limit or nil,
    limit_val_batches = case.overfit == 0 and case.limit_val or nil,
    val_check_interval = case.interval,
    check_val_every_n_epoch = case.every, num_sanity_val_steps = case.sanity,
    log_every_n_steps = case.log_every, sync_batchnorm = case.norm and ranks > 1,
    deterministic = case.world and "world" or true,
    reload_dataloaders_every_n_epochs = case.reload and 1 or 0, overfit_batches = case.overfit,
    min_epochs = case.min_epochs,
    enable_checkpointing = case.keep ~= nil, enable_progress_bar = false,
    enable_model_summary = false,
    callbacks = callbacks}
  if ranks > 1 and case.buckets == "small" then
    options.strategy = lt.strategies.DDP {bucket_cap_mb = 1e-5}
  elseif ranks > 1 and case.buckets == "hook" then
    options.strategy = lt.strategies.DDP {bucket_cap_mb = 1e-4,
      ddp_comm_hook = function(row) return lt.dist.all_reduce(row) end}
  elseif ranks > 1 and case.buckets == "zero1" then
    options.strategy = {"zero1", bucket_cap_mb = 1e-4}
  elseif ranks > 1 and case.buckets == "sharded" then
    options.strategy = {"sharded", bucket_cap_mb = 1e-4, stage = case.stage,
      units = case.by == "class" and {lt.nn.Linear} or {}, accumulate = case.accumulate,
      reshard_after_forward = case.reshards, keep_below = case.keep_below,
      state_dict_type = case.kind, replicas = case.hybrid and ranks % 2 == 0 and 2 or 1}
  end
  if case.csv then
    options.logger = lt.loggers.CSVLogger {save_dir = "logs_" .. ranks,
      version = o and "cut" or "whole"}
  end
  for name, value in pairs(o or {}) do options[name] = value end
  local t = lt.Trainer(options)
  local vals
  if case.val > 0 then
    vals = {}
    for i = 1, case.val_loaders do
      vals[i] = lt.data.DataLoader(val_data, {global_batch_size = case.val_batch})
    end
    if #vals == 1 then vals = vals[1] end
  end
  local by = case.own_order and case.n % 7 ~= 0 and {sampler = order_of(2)}
    or {shuffle = case.shuffle, seed = 5}
  by.global_batch_size, by.drop_last = case.batch, case.drop_last
  local train = lt.data.DataLoader(data, by)
  t:fit(net, train, vals, ckpt and {ckpt_path = ckpt} or nil)
  return net, t, function()
    net.stops_at, t.max_steps = nil, case.max_steps
    t:fit(net, train, vals)
  end
end

-- A file that was kept in mid-fit.
local function kept(t)
  local path = t.callbacks[#t.callbacks].last_model_path
  return path ~= "" and path or "cut.ckpt"
end

-- The cells of a CSV file, by row and column.
local function add_rows(values, path)
  local file, names = io.open(path), nil
  if not file then return end
  local row = 0
  for line in file:lines() do
    local cells = {}
    for cell in (line .. ","):gmatch "([^,]*)," do cells[#cells + 1] = cell end
    if not names then names = cells end
    for i, cell in ipairs(cells) do
      values[("row %d %s"):format(row, names[i])] = tonumber(cell) or cell
    end
    row = row + 1
  end
  file:close()
end

local function run(ranks)
  lists = {seen = {}, val_seen = {}}
  local net, t, again
  if case.cut then
    local most, stops_at = case.cut, nil
    if case.max_steps > 0 then most = math.min(most, case.max_steps) end
    if case.cut_how == "stop" then most, stops_at = case.max_steps, case.cut * case.window - 1 end
    local same = case.cut_how == "again"
    net, t, again = fit((ranks == 1 or same) and ranks or case.cut_ranks, {max_steps = most}, nil,
      stops_at)
    if same then
      again()
    else
      t:save_checkpoint "cut.ckpt"
      net, t = fit(ranks, nil, case.keep and case.cut_how == "steps" and kept(t) or "cut.ckpt")
    end
  else
    net, t = fit(ranks)
  end
  local values = {}
  for name, value in pairs(t.callback_metrics) do values["metric " .. name] = value end
  if case.test then
    local test = t:test(net, lt.data.DataLoader(val_data, {global_batch_size = case.val_batch}),
      {verbose = false})
    for name, value in pairs(test[1]) do values["test " .. name] = value end
  end
  if case.predict > 0 then
    local list = t:predict(net, lt.data.DataLoader(data_of(case.predict, 900),
      {batch_size = case.predict_batch}))
    for k, one in ipairs(list) do
      values["predicted " .. k] = table.concat(one[1]:tolist(), " ")
      for i, value in ipairs(one[2]:tolist()) do
        values[("predicted %d.%d"):format(k, i)] = value
      end
    end
  end
  if case.csv then
    add_rows(values, t.log_dir .. "/metrics.csv")
    if not case.cut then os.execute("rm -rf " .. t.log_dir) end
  end
  local found = {step = t.global_step, epoch = t.current_epoch, hash = lt.hash(net:state_dict()),
    seen = table.concat(lists.seen, " "), val_seen = table.concat(lists.val_seen, " "),
    f1 = net.f1:compute(), auroc = net.auroc:compute()}
  for name, value in pairs(values) do found[name] = value end
  for name, tensor in pairs(net:state_dict()) do
    for i, value in ipairs(tensor:reshape {-1}:tolist()) do
      found[("%s[%d]"):format(name, i)] = value
    end
  end
  return found
end

local function number(v) return type(v) == "userdata" and v:item() or v end
local function same(name, a, b)
  a, b = number(a), number(b)
  if name == "hash" then return not case.world or a == b end
  if type(a) ~= "number" or type(b) ~= "number" then return a == b end
  if a ~= a then return b ~= b end
  local most = case.optimizer == "SGD" and 1e-9 or 1e-6 -- Adam divides what rounding left
  if case.dtype == "f32" then most = 3e-6 end
  return math.abs(a - b) <= most * math.max(1, math.abs(a))
end

if arg[2] then
  for k, v in pairs(case) do print(k, v) end
end
local ok, wanted = pcall(run, 1)
if not ok then -- a case that cannot be, such as a monitor that nobody logs
  if not tostring(wanted):find "nothing called" then print("1 rank: " .. tostring(wanted)) end
  os.exit(0)
end
for _, ranks in ipairs(case.world and {2, 4} or counts) do
  local found = run(ranks)
  local names = {}
  for name in pairs(wanted) do names[name] = true end
  for name in pairs(found) do names[name] = true end
  for name in pairs(names) do
    if not same(name, wanted[name], found[name]) then
      print(("%d ranks: %s: %s, on 1 rank %s"):format(ranks, name, tostring(number(found[name])),
        tostring(number(wanted[name]))))
    end
  end
end
]]

--- The script; its argument is the number of the case.
return SCRIPT
