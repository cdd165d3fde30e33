-- spec/mistakes/training_spec.lua: options, steps, hooks, logging, loaders.
local lt = require "ltrain"
local mistakes = require "spec.mistakes.mistakes"
local prelude = require "spec.mistakes.prelude"

mistakes("training", {
  { "epochs", [[
local t = lt.Trainer{epochs = 3} --!]],
    "Trainer: unknown option 'epochs'; did you mean 'max_epochs'?" },
  { "max_epochs as a text", [[
local t = lt.Trainer{max_epochs = "3"} --!]],
    "Trainer: max_epochs must be an integer: got '3'" },
  { "an accelerator that is none", [[
local t = lt.Trainer(quiet{accelerator = "gpuu"}) --!]],
    "Trainer: accelerator = 'gpuu': must be 'auto', 'cpu', 'gpu' (or 'cuda') or the kind of a "
    .. "backend in LTRAIN_BACKENDS; did you mean 'gpu'?" },
  { "fp16", [[
local t = lt.Trainer(quiet{precision = "fp16"}) --!]],
    "Trainer: precision = 'fp16': must be one of 16-mixed, 16-true, 32-true, 64-true, "
    .. "bf16-mixed, bf16-true, fp8-mixed, transformer-engine, transformer-engine-float16" },
  { "the name of a callback", [[
local t = lt.Trainer(quiet{callbacks = "EarlyStopping"}) --!]],
    "Trainer: callbacks must be a table or an object: got 'EarlyStopping'" },
  { "a callback of Lightning under another name", [[
local bar = lt.callbacks.TQDMProgressBar{refresh_rate = 5} --!]],
    "callbacks: there is no 'TQDMProgressBar'; write lt.callbacks.ProgressBar{interval = 0.5}" },
  { "a field that is called", [[
local steps = lt.Trainer(quiet()):estimated_stepping_batches() --!]],
    "attempt to call a number value (method 'estimated_stepping_batches'); "
    .. "estimated_stepping_batches is a field: write it without the brackets" },
  { "a logger that there is not", [[
local logger = lt.loggers.CometLogger{project = "p"} --!]],
    "loggers: there is no 'CometLogger'; write lt.loggers.CSVLogger, JSONLinesLogger, "
    .. "TensorBoardLogger, WandbLogger or MLFlowLogger, or a subclass of lt.Logger; "
    .. "`ltrain dashboard` shows the runs" },
  { "the Tuner", [[
local tuner = lt.Tuner(lt.Trainer(quiet())) --!]],
    "ltrain: there is no lt.Tuner; write the callbacks lt.callbacks.LearningRateFinder and "
    .. "BatchSizeFinder" },
  { "the older options of ModelCheckpoint, filepath", [[
local c = lt.callbacks.ModelCheckpoint{filepath = "out"} --!]],
    "callbacks.ModelCheckpoint: unknown option 'filepath'; did you mean 'dirpath'?" },
  { "the older options of ModelCheckpoint, period", [[
local c = lt.callbacks.ModelCheckpoint{period = 2} --!]],
    "callbacks.ModelCheckpoint: unknown option 'period'; did you mean 'every_n_epochs'?" },
  { "the class of a callback", [[
local t = lt.Trainer(quiet{callbacks = {lt.callbacks.EarlyStopping}}) --!
t:fit(Net(), loader())]],
    "a callback must be an object of a subclass of lt.Callback or a plain table of hooks: got "
    .. "class EarlyStopping: call it to make an object" },
  { "fit with a dot", [[
local t = lt.Trainer(quiet())
t.fit(Net(), loader()) --!]],
    "fit: call it with a colon, trainer:fit(...): got an object of class Net instead of the "
    .. "Trainer" },
  { "fit without a module", [[
local t = lt.Trainer(quiet())
t:fit() --!]],
    "fit: a module is needed: got nil" },
  { "fit of a class", [[
local t = lt.Trainer(quiet())
t:fit(Net, loader()) --!]],
    "fit: Net is a class: call it to make a module" },
  { "fit without data", [[
local t = lt.Trainer(quiet())
t:fit(Net()) --!]],
    "fit: no training data: pass a loader or a DataModule, or define train_dataloader" },
  { "data before the module", [[
local t = lt.Trainer(quiet())
t:fit(loader(), Net()) --!]],
    "fit: a module is a table without metatable, or an object of a class below lt.Module: got "
    .. "an object of class DataLoader: the module comes first, the data after it" },
  { "a tensor in place of a loader", [[
local t = lt.Trainer(quiet())
t:fit(Net(), lt.ones(2, 4)) --!]],
    "train_dataloader: a loader must be a DataLoader, a table of batches, a function or an "
    .. "object with batches(): got a tensor [2, 4]: write "
    .. "lt.data.DataLoader(lt.data.TensorDataset(x), {batch_size = ...})" },
  { "a data set in place of a loader", [[
local t = lt.Trainer(quiet())
t:fit(Net(), lt.data.TensorDataset(lt.randn(8, 4), lt.randint(0, 2, {8}))) --!]],
    "train_dataloader: a loader is needed, and this is a data set: lt.data.DataLoader(dataset, "
    .. "{batch_size = ...}): got an object of class TensorDataset" },
  { "no return of the loss", [[
function Net:training_step(b) local l = self(b[1]):sum() end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "training_step: nothing was returned (epoch 0, batch 0, step 0): return the loss, or nil "
    .. "to skip a batch" },
  { "the loss as a number", [[
function Net:training_step(batch) return 0.5 end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "training_step: return the loss (a tensor), a table with loss, or nil: got 0.5: leave out "
    .. ":item()" },
  { "a loss for each sample", [[
function Net:training_step(b) --!
  local loss = self(b[1]):sum(2)
  return loss
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "training_step: the loss must have one element: got a tensor [4]: reduce it with :mean() "
    .. "or :sum()" },
  { "a detached loss", [[
function Net:training_step(b) local l = lt.cross_entropy(self(b[1]), b[2]):detach() return l end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "training_step: the loss depends on no parameter that requires grad: was it detached, "
    .. "computed under no_grad, or from numbers (item)?" },
  { "a table without loss", [[
function Net:training_step(b) local y = self(b[1]) return {l = lt.cross_entropy(y, b[2])} end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "training_step: return the loss (a tensor), a table with loss, or nil: got a table with "
    .. "loss = nil" },
  { "backward in training_step", [[
function Net:training_step(b) local l = self(b[1]):sum() l:backward() return l end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "training_step: backward was called on the loss that is returned, and the Trainer calls it: "
    .. "return the loss alone, or set self.automatic_optimization = false" },
  { "no configure_optimizers", [[
Net.configure_optimizers = nil
lt.Trainer(quiet()):fit(Net(), loader()) --!]],
    "fit: Net has no configure_optimizers: define it, and return an optimizer as "
    .. "lt.optim.Adam(self:parameters(), {lr = 1e-3})" },
  { "the class of an optimizer", [[
function Net:configure_optimizers() return lt.optim.SGD end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "configure_optimizers: return an optimizer, a list of them, {optimizer =, lr_scheduler =}, "
    .. "a list of such tables, or two lists: got class SGD" },
  { "a misspelt key of configure_optimizers", [[
function Net:configure_optimizers() --!
  local o = lt.optim.SGD(self:parameters(), {lr = 0.1})
  return {optimiser = o}
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "configure_optimizers: return an optimizer, a list of them, {optimizer =, lr_scheduler =}, "
    .. "a list of such tables, or two lists: got a table with the key 'optimiser'; did you "
    .. "mean 'optimizer'?" },
  { "a plateau without monitor", [[
function Net:configure_optimizers() --!
  local o = lt.optim.SGD(self:parameters(), {lr = 0.1})
  return {optimizer = o, lr_scheduler = lt.optim.ReduceLROnPlateau(o)}
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "configure_optimizers: an object of class ReduceLROnPlateau needs monitor, the name of a "
    .. "logged value" },
  { "the class of a scheduler", [[
function Net:configure_optimizers() --!
  local o = lt.optim.SGD(self:parameters(), {lr = 0.1})
  return {optimizer = o, lr_scheduler = lt.optim.CosineAnnealingLR}
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "configure_optimizers: a scheduler, or a table with scheduler, is needed: got class "
    .. "CosineAnnealingLR: call it with the optimizer" },
  { "no training_step", [[
Net.training_step = nil
lt.Trainer(quiet()):fit(Net(), loader()) --!]],
    "fit: Net has no training_step: define function Net:training_step(batch)" },
  { "a misspelt training_step", [[
Net.training_step = nil
function Net:trainig_step(b) return self(b[1]):sum() end
lt.Trainer(quiet()):fit(Net(), loader()) --!]],
    "Net: no hook is called 'trainig_step'; did you mean 'training_step'? (at script.lua:2; a "
    .. "method of your own: _trainig_step)" },
  { "a misspelt hook", [[
function Net:on_train_epoch_strat() end
lt.Trainer(quiet()):fit(Net(), loader()) --!]],
    "Net: no hook is called 'on_train_epoch_strat'; did you mean 'on_train_epoch_start'? (at "
    .. "script.lua:1; a method of your own: _on_train_epoch_strat)" },
  { "a monitor that was never logged", [[
local stop = lt.callbacks.EarlyStopping{monitor = "trian_loss"}
lt.Trainer(quiet{callbacks = {stop}}):fit(Net(), loader()) --!]],
    "EarlyStopping: nothing called 'trian_loss' was logged; there is: train_loss; did you mean "
    .. "'train_loss'?" },
  { "EarlyStopping without monitor", [[
local c = lt.callbacks.EarlyStopping{} --!]],
    "callbacks.EarlyStopping: option 'monitor' is required" },
  { "mode = 'minimum'", [[
local c = lt.callbacks.EarlyStopping{monitor = "val_loss", mode = "minimum"} --!]],
    "callbacks.EarlyStopping: mode must be 'min' or 'max': got 'minimum'; did you mean 'min'?" },
  { "log with a dot", [[
function Net:training_step(b) local l = self(b[1]):sum() self.log("loss", l) return l end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "log: call it with a colon, self:log(...): got 'loss' instead of the module" },
  { "log of a matrix", [[
function Net:training_step(b) local y = self(b[1]) self:log("y", y) return y:sum() end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "log: 'y' needs a number, a tensor of one element or a metric: got a tensor [4, 2]" },
  { "log of a text", [[
function Net:training_step(b) local y = self(b[1]) self:log("y", "high") return y:sum() end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "log: 'y' needs a number, a tensor of one element or a metric: got 'high'" },
  { "log in init", [[
function Net:init() self.fc = lt.nn.Linear(4, 2) self:log("a", 1) end --!
local n = Net()]],
    "log: the module is not attached to a trainer: Net" },
  { "log in on_fit_start", [[
function Net:on_fit_start() self:log("a", 1) end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "log: no loop of the Trainer is running: nothing is logged in on_fit_start" },
  { "a field called device", [[
function Net:init() self.device = "cuda" end --!
local net = Net()]],
    "Net: 'device' is computed by every Module: give the field another name" },
  { "a field called trainer", [[
function Net:init() self.trainer = 3 end --!
local net = Net()]],
    "Net: 'trainer' is the Trainer that runs the module: give the field another name" },
  { "a misspelt option of log", [[
function Net:training_step(b)
  self:log("y", 1, {on_epochs = true}) --!
  return self(b[1]):sum()
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "log: unknown option 'on_epochs'; did you mean 'on_epoch'?" },
  { "a key that a batch lacks", [[
function Net:training_step(b)
  local y = self.fc(b.x) --!
  return lt.cross_entropy(y, b.y)
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "linear: argument 1 must be a tensor, got nil (in Net.fc); b.x is nil: the batch has {a "
    .. "tensor [4, 4], a tensor [4]}" },
  { "training_step(x, y)", [[
function Net:training_step(x, y)
  local out = self.fc(x) --!
  return lt.cross_entropy(out, y)
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "linear: argument 1 must be a tensor, got table (in Net.fc)" },
  { "batch[0]", [[
function Net:training_step(b)
  local y = self.fc(b[0]) --!
  return lt.cross_entropy(y, b[1])
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "linear: argument 1 must be a tensor, got nil (in Net.fc); b[0] is nil: the batch has {a "
    .. "tensor [4, 4], a tensor [4]}" },
  { "weights changed in training_step", [[
function Net:training_step(b) self.fc.weight:mul_(0.9) return self(b[1]):sum() end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "mul_: in-place write into a leaf that requires grad; do it under lt.no_grad() (in Net)" },
  { "a layer replaced", [[
function Net:on_train_start() self.fc = lt.nn.Linear(4, 2) end
lt.Trainer(quiet()):fit(Net(), loader()) --!]],
    "at the start of an epoch: parameter Net.fc.weight was replaced since configure_optimizers "
    .. "(made at script.lua:1)" },
  { "an empty validation set", [[
local data = lt.data.TensorDataset(lt.zeros(0, 4), lt.zeros(0):long())
lt.Trainer(quiet()):fit(Net(), loader(), lt.data.DataLoader(data)) --!]],
    "DataLoader: the data set is empty" },
  { "no whole batch", [[
local data = lt.data.TensorDataset(lt.zeros(3, 4), lt.zeros(3):long())
local few = lt.data.DataLoader(data, {batch_size = 4, drop_last = true})
lt.Trainer(quiet()):fit(Net(), few) --!]],
    "fit: train_dataloader has no batches: the data set is empty, or smaller than one batch "
    .. "with drop_last" },
  { "a loss that is nan", [[
function Net:training_step(b) return (self(b[1]):sum() * 0):log() * 0 end --!
lt.Trainer(quiet()):fit(Net(), loader())]],
    "training_step: the loss is nan (epoch 0, batch 0, step 0): log at script.lua:1 made the "
    .. "first inf, mul at script.lua:1 the first nan: the weights are those before this step" },
  { "a layer outside of the module", [[
local fc = lt.nn.Linear(4, 2)
function Net:init() end
function Net:forward(x) local y = fc(x) return y end
function Net:configure_optimizers() --!
  return lt.optim.SGD(self:parameters(), {lr = 0.1})
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "optim.SGD: there are no parameters to optimize" },
  { "no test_step", [[
lt.Trainer(quiet()):test(Net(), loader()) --!]],
    "test: Net has no test_step: define function Net:test_step(batch)" },
  { "no validation data", [[
lt.Trainer(quiet()):validate(Net()) --!]],
    "validate: Net has no validation_step: define function Net:validation_step(batch)" },
  { "a checkpoint in place of the validation loader", [[
lt.Trainer(quiet()):fit(Net(), loader(), "last.ckpt") --!]],
    "fit: a loader is needed: got 'last.ckpt': a checkpoint is {ckpt_path = 'last.ckpt'}" },
  { "ckpt", [[
lt.Trainer(quiet()):fit(Net(), loader(), {ckpt = "none.ckpt"}) --!]],
    "fit: unknown option 'ckpt'; did you mean 'ckpt_path'?" },
  { "val_check_interval beyond the epoch", [[
function Net:validation_step(batch) self:log("val_loss", 1) end
local trainer = lt.Trainer(quiet{val_check_interval = 100})
trainer:fit(Net(), loader(), loader()) --!]],
    "val_check_interval: 100 is more than the 2 batches of an epoch; with "
    .. "check_val_every_n_epoch = false it counts across epochs" },
  { "one and a half batches", [[
lt.Trainer(quiet{limit_train_batches = 1.5}) --!]],
    "Trainer: limit_train_batches must be an integer (batches) or a fraction from 0.0 to 1.0: "
    .. "got 1.5" },
  { "accumulate_grad_batches = 0", [[
lt.Trainer(quiet{accumulate_grad_batches = 0}) --!]],
    "Trainer: accumulate_grad_batches must be at least 1: got 0" },
  { "a negative gradient_clip_val", [[
lt.Trainer(quiet{gradient_clip_val = -1}) --!]],
    "Trainer: gradient_clip_val must be at least 0: got -1" },
  { "dpp", [[
lt.Trainer(quiet{strategy = "dpp"}) --!]],
    ("Trainer: strategy = 'dpp': must be one of auto, %s; did you mean 'ddp'?"):format(
      table.concat(lt.strategies.available_strategies(), ", ")) },
  { "a logger that is none", [[
lt.Trainer(quiet{logger = "comet"}) --!]],
    "Trainer: logger must be 'csv', 'jsonlines', 'mlflow', 'none', 'tensorboard', 'wandb', true, "
    .. "false, a logger or a list of loggers: got 'comet'" },
  { "samples of different shapes", [[
local D = lt.data.Dataset:extend("D")
function D:__len() return 4 end
function D:get(i) return {x = lt.ones(i)} end
lt.Trainer(quiet()):fit(Net(), lt.data.DataLoader(D(), {batch_size = 2})) --!]],
    "collate: samples differ in shape at 'x': sample 1 has f32 [1], sample 2 has f32 [2]" },
  { "get(i) off by one", [[
local D = lt.data.Dataset:extend("D")
D.rows = {lt.ones(4), lt.ones(4)}
function D:__len() return 2 end
function D:get(i) return self.rows[i + 1] end
lt.Trainer(quiet()):fit(Net(), lt.data.DataLoader(D(), {batch_size = 2})) --!]],
    "DataLoader: get(2) returned nothing (in sample 2)" },
  { "get with a misspelt field", [[
local D = lt.data.Dataset:extend("D")
function D:__len() return 2 end
function D:get(i) return self.row[i] end --!
lt.Trainer(quiet()):fit(Net(), lt.data.DataLoader(D(), {batch_size = 2}))]],
    "attempt to index a nil value (field 'row') (in sample 1)" },
  { "a misspelt hook of a DataModule", [[
local DM = lt.DataModule:extend("DM")
function DM:train_dataloder() return loader() end
lt.Trainer(quiet()):fit(Net(), DM()) --!]],
    "DM: no hook is called 'train_dataloder'; did you mean 'train_dataloader'? (at "
    .. "script.lua:2; a method of your own: _train_dataloder)" },
  { "a dataloader hook without return", [[
local DM = lt.DataModule:extend("DM")
function DM:train_dataloader() local l = loader() end
lt.Trainer(quiet()):fit(Net(), DM()) --!]],
    "fit: train_dataloader returned nothing: return a loader" },
  { "a part that a batch does not have", [[
function Net:training_step(batch)
  local loss = lt.cross_entropy(self.fc(batch[1]), batch[3]) --!
  return loss
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "cross_entropy: argument 2 must be a tensor, got nil (in Net); batch[3] is nil: the batch has "
    .. "{a tensor [4, 4], a tensor [4]}" },
  { "a misspelt name of a batch", [[
function Net:training_step(batch)
  local x = batch.image
  local flat = x:view(-1, 4) --!
  local loss = self.fc(flat):mean()
  return loss
end
lt.Trainer(quiet()):fit(Net(), {{img = lt.ones(2, 4), label = lt.zeros(2)}})]],
    "attempt to index a nil value (local 'x'); batch.image is nil: the batch has {img = a tensor "
    .. "[2, 4], label = a tensor [2]}" },
  { "manual_backward in automatic optimization", [[
function Net:training_step(b)
  local loss = self(b[1]):sum()
  self:manual_backward(loss) --!
  return loss
end
lt.Trainer(quiet()):fit(Net(), loader())]],
    "manual_backward: set self.automatic_optimization = false in init first" },
}, prelude)
