-- spec/apps/check/bugs_in_use.lua: more scripts with one bug each, as forums are full of; rows as
-- in spec/apps/check/bugs.lua.
local bases = require "spec.apps.check.bases"

local base <const>, regression <const> = bases.classifier, bases.regression

local ADAM <const> = "  return lt.optim.Adam(self:parameters(), {lr = 1e-3})"
local SECOND <const> = "  self.second = nn.Linear(o.width, 4)"
local LOSS <const> = "local loss = lt.cross_entropy(logits, batch[2])"
local SCHEDULED <const> = "  local adam = lt.optim.Adam(self:parameters(), {lr = 1e-3})\n"

-- The base with a scheduler and a number of epochs.
local function schedule(text, epochs)
  return base({ ADAM, SCHEDULED .. text }, { "max_epochs = 2", "max_epochs = " .. epochs })
end

-- A transformer that predicts tokens.
local LANGUAGE <const> = [[
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend("Net")
function Net:init()
  self.words, self.places = nn.Embedding(20, 16), lt.parameter(lt.randn(8, 16))
  self.block = nn.TransformerEncoderLayer(16, 2, {dim_feedforward = 32})
  self.head = nn.Linear(16, 20)
end
function Net:training_step(batch)
  local hidden = self.block(self.words(batch[1]) + self.places)
  return lt.cross_entropy(self.head(hidden):view(-1, 20), batch[2]:flatten())
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-3}) end
local ids = lt.randint(0, 20, {64, 9})
local data = lt.data.TensorDataset(ids:narrow(2, 1, 8), ids:narrow(2, 2, 8))
return {model = Net(), data = lt.data.DataLoader(data, {batch_size = 8, shuffle = true})}
]]

local RECURRENT <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend("Net")
function Net:init() self.gru, self.head = lt.nn.GRU(4, 8), lt.nn.Linear(8, 3) end
function Net:training_step(batch)
  local out, state = self.gru(batch[1], self.state)
  self.state = state
  local loss = lt.cross_entropy(self.head(out:select(2, -1)), batch[2])
  return loss
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-3}) end
local data = lt.data.TensorDataset(lt.randn(64, 5, 4), lt.randint(0, 3, {64}))
return {model = Net(), data = lt.data.DataLoader(data, {batch_size = 8, shuffle = true})}
]]

local SAME_SAMPLE <const> = [[
local lt = require "ltrain"
local Data = lt.data.Dataset:extend("Data")
function Data:init() self.x, self.y = lt.randn(64, 4), lt.randint(0, 3, {64}) end
function Data:get() return {self.x[1], self.y[1]} end
function Data:__len() return 64 end
local net = lt.nn.Sequential(lt.nn.Linear(4, 8), lt.nn.ReLU(), lt.nn.Linear(8, 3))
function net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-3}) end
local samples = Data()
return {model = net, data = lt.data.DataLoader(samples, {batch_size = 8, shuffle = true})}
]]

local MANUAL <const> = [[
local lt = require "ltrain"
local net = lt.nn.Sequential(lt.nn.Linear(4, 16), lt.nn.Tanh(), lt.nn.Linear(16, 1))
net.automatic_optimization = false
function net:training_step(batch, batch_idx)
  local optimizer = self:optimizers()
  local loss = lt.mse_loss(self(batch[1]), batch[2])
  STEP
end
function net:configure_optimizers()
  return lt.optim.SGD(self:parameters(), {lr = 0.01})
end
local x = lt.randn(32, 4)
local data = lt.data.TensorDataset(x, x:sum(2, {keepdim = true}))
return {model = net, data = {train = lt.data.DataLoader(data, {batch_size = 8, shuffle = true})}}
]]

local PLAIN <const> = [[
local lt = require "ltrain"
local net = lt.nn.Linear(2, 1)
local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.1})
for i = 1, 100 do
  local loss = net(lt.randn(4, 2)):square():mean()
  STEP
end
]]

-- The lines of a step, in a training_step of manual optimization or a plain loop.
local function manual(...)
  return { text = MANUAL, changes = { { "STEP", table.concat({ ... }, "\n  ") } } }
end
local function plain(...)
  return { text = PLAIN, changes = { { "STEP", table.concat({ ... }, "\n  ") } } }
end

-- Validation data of their own.
local VAL <const> = "local val = lt.data.TensorDataset(lt.randn(16, 8), lt.randint(0, 4, {16}))"

return {
  rows = {
    { "a layer of zeros before one with one output", "weights",
      "all values of 0.weight [16, 4] are 0 at the start", "function net:training_step",
      regression { "local x = lt.randn(32, 4)",
                   "lt.nn.init.zeros_(net[1].weight)\nlocal x = lt.randn(32, 4)" } },
    -- The order of zero_grad, backward and step.
    { "zero_grad between backward and step", "zero_grad", "the step of SGD has no gradients",
      "optimizer:zero_grad()", manual("self:manual_backward(loss)", "optimizer:zero_grad()",
        "optimizer:step()") },
    { "zero_grad in each of the batches that are accumulated", "zero_grad",
      "zero_grad() in a batch without a step", "optimizer:zero_grad()",
      manual("optimizer:zero_grad()", "self:manual_backward(loss)",
        "if (batch_idx + 1) % 4 == 0 then optimizer:step() end") },
    { "zero_grad behind each of the batches that are accumulated", "zero_grad",
      "zero_grad() in a batch without a step", "self:zero_grad()",
      manual("self:manual_backward(loss)", "if (batch_idx + 1) % 4 == 0 then optimizer:step() end",
        "self:zero_grad()") },
    { "zero_grad in a hook behind backward", "zero_grad", "the step of Adam has no gradients",
      "  self:zero_grad()", base { "function Net:configure_optimizers()",
        "function Net:on_after_backward()\n  self:zero_grad()\nend\n"
        .. "function Net:configure_optimizers()" } },
    { "zero_grad in a hook before the step", "zero_grad", "the step of Adam has no gradients",
      "  optimizer:zero_grad()", base { "function Net:configure_optimizers()",
        "function Net:on_before_optimizer_step(optimizer)\n  optimizer:zero_grad()\nend\n"
        .. "function Net:configure_optimizers()" } },
    { "zero_grad in a training_step whose gradients are accumulated", "zero_grad",
      "with accumulate_grad_batches = 4", "  self:zero_grad()",
      base({ LOSS, "self:zero_grad()\n  " .. LOSS }, { "max_epochs = 2",
        "max_epochs = 2, accumulate_grad_batches = 4" }) },
    { "zero_grad between backward and step of a plain loop", "zero_grad",
      "zero_grad() between backward() and step()", "optimizer:zero_grad()",
      plain("loss:backward()", "optimizer:zero_grad()", "optimizer:step()") },
    { "zero_grad in each pass of a plain loop that accumulates", "zero_grad",
      "zero_grad() in an iteration without a step", "net:zero_grad()",
      plain("net:zero_grad()", "loss:backward()", "if i % 4 == 0 then optimizer:step() end") },
    { "a plain loop without zero_grad", "zero_grad", "the loop never calls zero_grad()",
      "optimizer:step()", plain("loss:backward()", "optimizer:step()") },

    -- Losses and last layers.
    { "log_softmax before cross_entropy", "loss", "of the result of log_softmax [2, 4]",
      "lt.cross_entropy(logits", base { "  return logits", "  return (logits:log_softmax(-1))" } },
    { "log_softmax over another dim than the classes", "loss", "and log_softmax was over dim 1",
      "lt.nll_loss", base { LOSS, "local loss = lt.nll_loss(logits:log_softmax(1), batch[2])" } },
    { "kl_div of probabilities", "loss", "kl_div takes log-probabilities first", "lt.kl_div",
      base { LOSS, "local loss = lt.kl_div(logits:softmax(-1), "
        .. "nn.functional.one_hot(batch[2], 4):float())" } },
    { "label smoothing of all", "loss", "with label_smoothing = 1", "label_smoothing",
      base { LOSS, "local loss = lt.cross_entropy(logits, batch[2], {label_smoothing = 1})" } },
    { "sigmoid of sigmoid", "chain", "sigmoid of the result of sigmoid [2, 1]", "y:sigmoid()",
      regression({ "lt.nn.Linear(16, 1))", "lt.nn.Linear(16, 1), lt.nn.Sigmoid())" },
        { "lt.mse_loss(y, batch[2])",
          "lt.binary_cross_entropy(y:sigmoid(), batch[2]:gt(0):float())" }) },
    { "sigmoid for targets beyond 0..1", "range", "the result of sigmoid is in 0..1, and the",
      "lt.mse_loss", regression({ "lt.nn.Linear(16, 1))", "lt.nn.Linear(16, 1), lt.nn.Sigmoid())" },
        { "x:sum(2, {keepdim = true})", "x:sum(2, {keepdim = true}) * 5 + 20" }) },
    { "relu for targets below 0", "range", "the result of relu is in 0 and above, and the targets",
      "lt.mse_loss", regression { "lt.nn.Linear(16, 1))", "lt.nn.Linear(16, 1), lt.nn.ReLU())" },
      more = 1 },
    { "one-hot labels that are integers", "fit", "got [2, 4]: targets of one-hot rows are floats",
      "lt.cross_entropy(logits", base({ "lt.randint(0, 4, {64})",
        "nn.functional.one_hot(lt.randint(0, 4, {64}), 4)" }) },
    { "labels in front of logits", "fit", "; logits come first, labels second",
      "lt.cross_entropy(batch", base { LOSS, "local loss = lt.cross_entropy(batch[2], logits)" } },
    { "a forward without return", "fit", "argument 1 must be a tensor, got nil",
      "lt.cross_entropy(logits", base({ "  return logits\nend", "end" },
        { "lt.cross_entropy(self(batch[1]), batch[2])", "lt.ones(1):sum()" }) },

    -- Layers.
    { "no activation between linear layers", "chain", "weights [16, 8] and [4, 16]: both together",
      "self.second(hidden)", base { "self.first(x):relu()", "self.first(x)" } },
    { "dropout of nearly all", "chain", "first.1: Dropout drops 99 %", nil,
      base { "self.first = nn.Linear(8, o.width)",
        "self.first = nn.Sequential(nn.Linear(8, o.width), nn.Dropout(0.99))" }, line = false },
    { "dropout in evaluation mode", "chain", "dropout (p = 0.5) also acts in evaluation mode",
      "functional.dropout", base { "self.first(x):relu()",
        "nn.functional.dropout(self.first(x):relu(), {p = 0.5})" } },
    { "dropout of logits", "chain", "drop: Dropout of the logits of cross_entropy", nil,
      base({ "  return logits", "  return self.drop(logits)" },
        { SECOND, SECOND .. "\n  self.drop = nn.Dropout(0.5)" }), line = false },
    { "a relu that gives 0 only", "chain", "relu of [2, 16] gives 0 only", "self.first(x):relu()",
      base { SECOND, SECOND .. "\n  nn.init.constant_(self.first.bias, -100)" } },
    { "all weights alike", "weights", "all values of first.weight [16, 8] are 0.5",
      "self.first = nn", base { SECOND, SECOND .. "\n  nn.init.constant_(self.first.weight, 0.5)" }
    },
    { "weights of 0 between layers", "weights", "first.weight [16, 8] are 0 at the start",
      "self.first = nn", base { SECOND, SECOND .. "\n  nn.init.zeros_(self.first.weight)" } },
    { "weights of 0 that are of no layer", "weights", "w [8, 16] are 0 at the start",
      "self.w = lt", base({ "  self.first = nn.Linear(8, o.width)",
        "  self.w = lt.parameter(lt.zeros(8, o.width))" },
        { "self.first(x):relu()", "x:matmul(self.w):tanh()" }) },
    { "weights of 0 in an LSTM", "weights", "first.weight_hh_l0 [64, 16] are 0, and stay 0",
      "self.first = nn", base({ "self.first = nn.Linear(8, o.width)",
        "self.first = nn.LSTM(8, o.width)" }, { SECOND, SECOND
        .. "\n  for _, p in self.first:named_parameters() do nn.init.zeros_(p) end" },
        { "self.first(x):relu()", "self.first(x:unsqueeze(2)):squeeze(2)" }), more = 1 },
    { "all weights 0", "weights", "second.weight [4, 16] are 0, and stay 0", "self.second = nn",
      base { SECOND, SECOND .. "\n  for _, p in self:named_parameters() do nn.init.zeros_(p) end" },
      more = 1 },
    { "a mask that leaves nothing", "activations", "softmax has made the first values that are not",
      "masked_fill", base { "self.first(x):relu()",
        "self.first(x):masked_fill(x:narrow(2, 1, 1):lt(100), -math.huge):softmax(-1)" } },
    { "a language model that sees the future", "future", "change with the token at position 8",
      "lt.cross_entropy", script = LANGUAGE },

    -- Optimizers, schedulers, options.
    { "all parameters frozen", "optimizer", "none of the 4 parameters requires grad",
      "Net:configure_optimizers", base { SECOND, SECOND
        .. "\n  for _, p in self:named_parameters() do p.requires_grad = false end" } },
    { "a learning rate of next to nothing", "optimizer", "lr = 1e-12: weights hardly change",
      "Net:configure_optimizers", base { "lr = 1e-3", "lr = 1e-12" } },
    { "a learning rate of Adam that is for SGD", "optimizer", "changes each weight by about that",
      "Net:configure_optimizers", base { "lr = 1e-3", "lr = 10" } },
    { "a weight decay that leaves nothing", "optimizer", "weight_decay = 10 (lr = 0.001)",
      "Net:configure_optimizers", base { "lr = 1e-3", "lr = 1e-3, weight_decay = 10" } },
    { "betas the other way round", "optimizer", "betas = {0.999, 0.9}", "Net:configure_optimizers",
      base { "lr = 1e-3", "lr = 1e-3, betas = {0.999, 0.9}" } },
    { "a momentum above 1", "optimizer", "momentum = 1.5", "net:configure_optimizers",
      regression { "{lr = 0.01}", "{lr = 0.01, momentum = 1.5}" } },
    { "gradients clipped to nothing", "options", "gradient_clip_val = 1e-09 makes all gradients",
      "gradient_clip_val", base { "max_epochs = 2", "max_epochs = 2, gradient_clip_val = 1e-9" } },
    { "clipping that clips nothing", "options", "gradient_clip_val = 1e+09 clips nothing",
      "gradient_clip_val", base { "max_epochs = 2", "max_epochs = 2, gradient_clip_val = 1e9" } },
    { "no epochs", "options", "max_epochs = 0: nothing is trained", "max_epochs",
      base { "max_epochs = 2", "max_epochs = 0" } },
    { "no batches", "options", "limit_train_batches = 0: nothing", "limit_train_batches",
      base { "max_epochs = 2", "max_epochs = 2, limit_train_batches = 0" } },
    { "validation that never comes", "options", "val_check_interval = 1000 is more than the 8",
      "val_check_interval",
      base { "max_epochs = 2", "max_epochs = 2, val_check_interval = 1000" } },
    { "a scheduler of steps that is stepped by epochs", "schedule", "OneCycleLR is as long as 1000",
      "Net:configure_optimizers", schedule("  return {optimizer = adam, lr_scheduler = "
        .. "lt.optim.OneCycleLR(adam, 0.01, {total_steps = 1000})}", 2) },
    { "a scheduler that is too short", "schedule", "cannot be stepped for step 9 of 16",
      "Net:configure_optimizers", schedule("  return {optimizer = adam, lr_scheduler = {interval = "
        .. "'step', scheduler = lt.optim.OneCycleLR(adam, 0.01, {total_steps = 8})}}", 2) },
    { "a learning rate that grows", "schedule", "raises the learning rate from",
      "Net:configure_optimizers", schedule("  return {optimizer = adam, lr_scheduler = "
        .. "lt.optim.ExponentialLR(adam, 2)}", 20) },
    { "a learning rate that ends at once", "schedule", "the learning rate is 0 for 19 of 20 epochs",
      "Net:configure_optimizers", schedule("  return {optimizer = adam, lr_scheduler = "
        .. "lt.optim.StepLR(adam, 1, {gamma = 0})}", 20) },
    { "a scheduler that is not returned", "schedule", "nothing uses the scheduler StepLR",
      "local lower", schedule("  local lower = lt.optim.StepLR(adam, 1)\n  return adam", 20) },

    -- Data and validation.
    { "a validation loader that shuffles", "validation", "the validation loader shuffles", nil,
      base { "(val, {batch_size = 8})", "(val, {batch_size = 8, shuffle = true})" },
      line = "train = lt.data.DataLoader" },
    { "validation data of another scale", "validation", "in validation", nil,
      base { "TensorDataset(lt.randn(16, 8)", "TensorDataset(lt.rand(16, 8) * 255" },
      line = "train = lt.data.DataLoader" },
    { "bytes that are not scaled", "activations", "the inputs of first: Linear have a root mean",
      "self.first = nn", base({ "lt.randn(64, 8)", "lt.randint(0, 256, {64, 8}):float()" },
        { "TensorDataset(lt.randn(16, 8)", "TensorDataset(lt.randint(0, 256, {16, 8}):float()" }) },
    { "a data set that gives one sample", "data", "the 8 samples of the first batch are all the",
      "DataLoader(samples", script = SAME_SAMPLE },
    { "validation on a copy of the training data", "overlap", "64 of the 64 validation samples",
      "train = lt.data.DataLoader", base({ VAL,
        "local val = lt.data.TensorDataset(x:clone(), y:clone())" }, { "lt.randn(64, 8)",
        "lt.randn(64, 2)" }, { "nn.Linear(8", "nn.Linear(2" }) },
    { "a part of a copy of the training data", "overlap", "3 of the 3 validation samples",
      "train = lt.data.DataLoader", base { VAL, "local val = lt.data.Subset("
        .. "lt.data.TensorDataset(x:clone(), y:clone()), {3, 1, 7})" } },
    { "bytes that are training data too", "overlap", "64 of the 64 validation samples",
      "train = lt.data.DataLoader", base({ "lt.randn(64, 8)",
        "lt.randint(0, 256, {64, 8}):to 'u8'" }, { "TensorDataset(x, y)",
        "TensorDataset(x, y):scaled(1, 255)" }, { VAL,
        "local val = lt.data.TensorDataset(x:clone(), y:clone()):scaled(1, 255)" }) },
    { "a data set of the script's own that is made twice", "overlap",
      "the first 4 validation samples are the first training samples", "train = lt.data.DataLoader",
      base({ "local train = lt.data.TensorDataset(x, y)", "local Data = lt.data.Dataset:extend "
        .. "'Data'\nfunction Data:get(i) return {x[i]:clone(), y[i]:clone()} end\n"
        .. "function Data:__len() return 64 end\nlocal train = Data()" },
        { VAL, "local val = Data()" }) },
    { "targets [N, 1] among the inputs", "data", "column 3 of tensor 1 of the training data is "
      .. "tensor 2", "lt.data.TensorDataset(x", regression {
        "local data = lt.data.TensorDataset(x, x:sum(2, {keepdim = true}))",
        "local y = x:sum(2, {keepdim = true})\n"
        .. "x[{lt.all, 3}] = y:squeeze(2)\nlocal data = lt.data.TensorDataset(x, y)" } },
    { "targets among the inputs of a data set of the script's own", "data",
      "column 4 of batch[1] of the training data is batch[2]", "return {model",
      regression { "local data = lt.data.TensorDataset(x, x:sum(2, {keepdim = true}))",
        "local y = x:sum(2, {keepdim = true})\nlocal inputs = lt.cat({x, y}, 2):narrow(2, 2, 4)\n"
        .. "local data = lt.data.Dataset:extend 'Data' ()\n"
        .. "function data:get(i) return {inputs[i], y[i]} end\n"
        .. "getmetatable(data).__len = function() return 32 end" } },
    { "training mode in validation", "validation", "the module is in training mode during",
      "Net:validation_step", base { "function Net:validation_step(batch)",
        "function Net:validation_step(batch)\n  self:train()" } },

    -- What is kept from step to step.
    { "a list of losses with their graphs", "kept", "self.all grows with each step",
      "Net:training_step", base { "  return loss\nend\nfunction Net:val",
        "  self.all = self.all or {}\n  table.insert(self.all, loss)\n  return loss\nend\n"
        .. "function Net:val" } },
    { "a sum of losses with their graphs", "kept",
      "self.total keeps the graphs of all earlier steps",
      "self.total", base { "  return loss\nend\nfunction Net:val",
        "  self.total = (self.total or 0) + loss\n  return loss\nend\nfunction Net:val" } },
    { "a running mean of losses with their graphs", "kept", "self.mean keeps the graphs",
      "self.mean", base { "  return loss\nend\nfunction Net:val",
        "  self.mean = self.mean and self.mean * 0.9 + loss * 0.1 or loss\n  return loss\nend\n"
        .. "function Net:val" } },
    { "a sum of losses in a local variable", "kept",
      "a variable keeps the graphs of all earlier steps",
      "total = total + loss", base({ "function Net:init", "local total = 0\nfunction Net:init" },
        { "  return loss\nend\nfunction Net:val",
          "  total = total + loss\n  return loss\nend\nfunction Net:val" }) },
    { "a sum of losses in manual optimization", "kept", "self.total keeps the graphs",
      "self.total", manual("self:manual_backward(loss)",
        "self.total = (self.total or 0) + loss", "optimizer:step()", "optimizer:zero_grad()") },
    { "a list of losses in a local variable", "kept", "losses grows with each step",
      "Net:training_step", base({ "function Net:init", "local losses = {}\nfunction Net:init" },
        { "  return loss\nend\nfunction Net:val",
          "  losses[#losses + 1] = loss\n  return loss\nend\nfunction Net:val" }) },
    { "a state that keeps its graph", "learning", "continues into the graph of the first",
      "function Net:training_step", script = RECURRENT },
    { "== of tensors", "equality", "one is the result of argmax", "argmax(-1) ==",
      base { '  self:log("train_loss", loss)',
        '  self:log("right", logits:argmax(-1) == batch[2] and 1 or 0)' } },
  },
}
