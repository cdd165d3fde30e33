-- spec/apps/check/bugs.lua: scripts with one bug each, and what `ltrain check` must say of it.
--
-- A row: what is wrong; the name of the check; a text that the report must have; the line, given as
-- a text that only this line of the script has; changes to the base script, {what it has, what is
-- there instead}; or `script`, all of it.

local bases = require "spec.apps.check.bases"

local base <const>, regression <const> = bases.classifier, bases.regression

local RANKS <const> = [[
local lt = require "ltrain"
local dist = lt.dist
local net = lt.nn.Linear(4, 1)
function net:training_step(batch)
  local loss = self(batch):square():mean()
  if self.global_rank == 0 then
    self:log("loss", loss)
  end
  return loss
end
function net:on_train_epoch_end()
  local seen = dist.all_reduce(lt.ones(1))
  if dist.rank() == 0 then
    print(seen:item())
  end
end
function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.01}) end
return {model = net, data = {train = {lt.randn(8, 4), lt.randn(8, 4)}}}
]]

local function ranks(...) return { text = RANKS, changes = { ... } } end

return {
  rows = {
    -- The text of the script.
    { "an operator of Python", "syntax", "remedy: write ~=", "if x ~= nil",
      base { "lt.seed(1)", "lt.seed(1)\nif x != nil then end" }, line = "if x != nil" },
    { "a missing end", "syntax", "remedy: close the 'function' of that line", nil,
      base { "  return logits\nend", "  return logits" }, line = false },
    { "an unknown global", "global", "nothing is called 'prnt'; remedy: write print", "prnt(",
      base { "  return logits\nend", "  if not logits then prnt(x) end\n  return logits\nend" } },
    { "a method of a text with a dot", "text", "format of a string is called with a dot",
      ".format(x",
      base { "  return logits\nend",
             "  print((\"%d\").format(x:size(1), 2))\n  return logits\nend" } },
    { "a method of a text that is not called", "text", "find is not called", "name.find",
      base { "  return logits\nend",
             "  local name = \"a\"\n  if name.find then print(name) end\n  return logits\nend" } },
    { "a number that is compared with a text", "text", "a number never equals a string", "== \"1\"",
      base { "  return logits\nend",
             "  if math.random(2) == \"1\" then print(1) end\n  return logits\nend" } },
    { "a misspelt name in a condition", "global", "nothing is called 'hiden'", "if not hiden",
      base { "  return logits\nend", "  if not hiden then print(1) end\n  return logits\nend" } },
    { "None of Python", "global", "nothing is called 'None'; remedy: write nil", "None",
      base { "lt.Trainer{max_epochs = 2}", "lt.Trainer{max_epochs = 2, logger = None}" } },
    { "a local that is declared below", "global", "only declared in line", "helper(logits)",
      base({ "  return logits\nend\n", "  logits = logits or helper(logits)\n"
        .. "  return logits\nend\n" },
        { "local x = lt.randn(64, 8)", "local function helper(v) return v end\n"
          .. "local x = helper(lt.randn(64, 8))" }) },
    { "self without a colon", "global", "nothing is called 'self'", "self.trainer.max_epochs",
      base { "function Net:forward(x)", "function Net.steps()\n  return self.trainer.max_epochs\n"
        .. "end\nfunction Net:forward(x)" } },
    { "a layer that is misspelt, in a function that is not called", "library_name",
      "lt.nn has no 'Linaer'; remedy: write lt.nn.Linear", "nn.Linaer",
      base { "function Net:forward(x)", "function Net:grow()\n  self.third = nn.Linaer(4, 4)\nend\n"
        .. "function Net:forward(x)" } },
    { "a name that is elsewhere", "library_name", "lt.nn has no 'Parameter'; remedy: write "
      .. "lt.parameter(x)", "nn.Parameter",
      base { "function Net:forward(x)", "function Net:grow()\n  self.w = nn.Parameter(lt.zeros(2))"
        .. "\nend\nfunction Net:forward(x)" } },
    { "an optimizer that is misspelt", "library_name", "lt.optim has no 'Adamm'", "lt.optim.Adamm",
      base { "function Net:forward(x)", "function Net:other()\n  return lt.optim.Adamm()\nend\n"
        .. "function Net:forward(x)" } },
    { "batch[0]", "index", "batch[0] is nil: positions count from 1", "self(batch[0])",
      base { "function Net:forward(x)", "function Net:predict_step(batch)\n  local y = "
        .. "self(batch[0])\n  return y\nend\nfunction Net:forward(x)" } },
    { "shape[-1]", "index", "shape[-1] is nil: sizes count from 1; remedy: write x:size(-1)",
      "x.shape[-1]", base { "function Net:forward(x)", "function Net:last(x)\n  return "
        .. "x.shape[-1]\nend\nfunction Net:forward(x)" } },
    { "an option of a class that nothing reads", "hyper_parameter", "nothing reads 'depht'",
      "depht = 2", base { "Net{width = 16}", "Net{width = 16, depht = 2}" } },
    { "a flag that nothing reads", "hyper_parameter", "lt.args: nothing reads 'momentum'",
      "momentum = 0.9", base({ "lt.seed(1)", "local args = lt.args{\n  lr = 1e-3,\n"
        .. "  momentum = 0.9,\n}" }, { "{lr = 1e-3}", "{lr = args.lr}" }) },
    { "a saved hyper-parameter that nothing reads", "hyper_parameter",
      "save_hyperparameters: nothing reads 'droput'", "droput = 0.1",
      base { "  self.first = nn", "  self:save_hyperparameters{droput = 0.1}\n"
        .. "  self.first = nn" } },

    -- Ranks.
    { "a collective on rank 0", "collective", "the other ranks wait for it forever",
      "dist.all_reduce(lt", ranks { "  local seen = dist.all_reduce(lt.ones(1))\n"
        .. "  if dist.rank() == 0 then\n", "  if dist.rank() == 0 then\n"
        .. "    local seen = dist.all_reduce(lt.ones(1))\n" } },
    { "sync_dist on rank 0", "collective", "self:log with sync_dist is called only where",
      "sync_dist", ranks { '("loss", loss)', '("loss", loss, {sync_dist = true})' } },
    { "an early return of other ranks", "collective", "ranks for which the condition of line",
      "dist.all_reduce(lt", ranks { "  local seen", "  if dist.rank() ~= 0 then return end\n"
        .. "  local seen" } },
    { "a collective in a function that rank 0 calls", "collective", "which calls lt.dist.barrier",
      "    wait_for()", ranks({ "function net:on", "local function wait_for() dist.barrier() end\n"
        .. "function net:on" }, { "    print(seen:item())", "    wait_for()" }) },
    { "a collective behind `and`", "collective", "is called only where", "dist.barrier",
      ranks { "  local seen", "  local done = self.trainer.is_global_zero and dist.barrier()\n"
        .. "  print(done)\n  local seen" } },

    -- Hooks, options, steps.
    { "a hook that is misspelt", "fit", "did you mean 'validation_step'?", nil,
      base { "Net:validation_step", "Net:validaton_step" }, line = "Net:validaton_step" },
    { "an option of the Trainer that is misspelt", "load", "did you mean 'max_epochs'?",
      "max_epoch =", base { "max_epochs = 2", "max_epoch = 2" } },
    { "an option of an optimizer that is misspelt", "fit", "did you mean 'weight_decay'?",
      "weigth_decay", base { "{lr = 1e-3}", "{lr = 1e-3, weigth_decay = 0.1}" } },
    { "a loss that is not returned", "fit", "nothing was returned", nil,
      base { '  self:log("train_loss", loss)\n  return loss', '  self:log("train_loss", loss)' },
      line = "Net:training_step" },
    { "a loss without a gradient", "fit", "depends on no parameter that requires grad", nil,
      base { "  self:log(\"train_loss\", loss)\n", "  loss = loss:detach()\n" },
      line = "return loss" },
    { "shapes that do not fit", "fit", "linear", "self.second(hidden)",
      base { "self.second = nn.Linear(o.width, 4)", "self.second = nn.Linear(12, 4)" } },
    { "an error in validation", "fit", "attempt to index", "self.accuracy",
      base { '  self:log("val_loss", loss)', '  self:log("val_loss", loss)\n'
        .. '  self.accuracy:update(1, 2)' } },
    { "labels that are floats", "fit", "ids must be integers", "lt.cross_entropy(logits",
      base { "local y = lt.randint(0, 4, {64})", "local y = lt.randint(0, 4, {64}):float()" } },

    -- Optimizers.
    { "a learning rate of 0", "optimizer", "the learning rate of group 1 is 0", nil,
      base { "{lr = 1e-3}", "{lr = 0}" }, line = "Net:configure_optimizers" },
    { "an optimizer of another model", "optimizer", "4 parameters of the optimizer are not of the",
      nil, base { "lt.optim.Adam(self:parameters()", "lt.optim.Adam(Net{width = 16}:parameters()" },
      line = "Net:configure_optimizers" },
    { "a layer that the optimizer does not hold", "optimizer", "no optimizer has first.weight",
      nil, base { "lt.optim.Adam(self:parameters()", "lt.optim.Adam(self.second:parameters()" },
      line = "Net:configure_optimizers" },
    { "a learning rate that is far too large", "step", "one optimizer step (lr = 1000)", nil,
      regression { "{lr = 0.01}", "{lr = 1e3}" }, line = "net:configure_optimizers" },

    -- Gradients and activations.
    { "a layer that the loss does not use", "gradient", "no gradient reaches spare.weight",
      "self.spare", base { "  self.second = nn", "  self.spare = nn.Linear(8, 8)\n"
        .. "  self.second = nn" } },
    { "a graph that is cut", "gradient", "no gradient reaches first.weight", "self.first = nn",
      base { "self.second(hidden)", "self.second(hidden:detach())" } },
    { "weights that are far too large", "activations", "activations explode", "self.first = nn",
      base { "  self.second = nn", "  nn.init.normal_(self.first.weight, 0, 1e5)\n"
        .. "  self.second = nn" } },
    { "a logarithm of negative numbers", "activations",
      "log has made the first values that are not finite", "self.first(x):log()",
      base { "self.first(x):relu()", "self.first(x):log()" } },
    { "gradients that vanish", "gradient", "gradients vanish", "self.deep = nn",
      base({ "  self.second = nn", "  self.deep = nn.Sequential()\n  for k = 1, 40 do\n"
        .. "    self.deep[k] = k % 2 == 0 and nn.Sigmoid() or nn.Linear(o.width, o.width)\n  end\n"
        .. "  self.second = nn" }, { "self.second(hidden)", "self.second(self.deep(hidden))" }),
      more = 1 },

    -- Samples and losses.
    { "a softmax over the batch", "leak", "its output for sample 1 changes with sample 2: they "
      .. "meet in softmax", "softmax(1)",
      base { "self.first(x):relu()", "self.first(x):softmax(1)" } },
    { "a mean over the batch", "leak", "they meet in mean", ":mean(1",
      base { "self.first(x):relu()", "self.first(x - x:mean(1, {keepdim = true})):relu()" } },
    { "attention over the batch", "leak", "changes with sample 2", "local scores",
      base { "  local logits = self", "  local scores = hidden:matmul(hidden:t())\n"
        .. "  hidden = scores:softmax(-1):matmul(hidden)\n  local logits = self" } },
    { "an LSTM that gets samples for steps", "leak",
      "its output for sample 2 changes with sample 1: they meet in lstm_layer", "self.lstm(steps)",
      script = [[
local lt = require "ltrain"
local Net = lt.Module:extend("Net")
function Net:init() self.lstm, self.head = lt.nn.LSTM(4, 8), lt.nn.Linear(8, 3) end
function Net:forward(x)
  local steps = x:transpose(1, 2)
  local out = self.lstm(steps)
  local logits = self.head(out:select(1, -1))
  return logits
end
function Net:training_step(batch) return lt.cross_entropy(self(batch[1]), batch[2]) end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 1e-3}) end
local data = lt.data.TensorDataset(lt.randn(64, 5, 4), lt.randint(0, 3, {64}))
return {model = Net(), data = lt.data.DataLoader(data, {batch_size = 8, shuffle = true})}
]] },
    { "a metric that a scheduler watches and nothing logs", "fit",
      "nothing called 'val_acc' was logged", nil,
      base { "  return lt.optim.Adam(self:parameters(), {lr = 1e-3})",
        "  local adam = lt.optim.Adam(self:parameters(), {lr = 1e-3})\n  local lower = "
        .. "lt.optim.ReduceLROnPlateau(adam)\n  return {optimizer = adam, lr_scheduler = {"
        .. "scheduler = lower, monitor = \"val_acc\"}}" }, line = false },
    { "a loss that ignores its input", "input", "whatever batch[1] [2, 8] contains", nil,
      base { "self(batch[1])\n  local loss = lt.cross_entropy(logits", "self(lt.ones(2, 8))\n"
        .. "  local loss = lt.cross_entropy(logits" }, line = "Net:training_step" },
    { "a loss that ignores the batch", "input", "whatever the batch contains", nil,
      base { "  local loss = lt.cross_entropy(logits, batch[2])", "  local loss = "
        .. "self.first.weight:square():mean() + self.second.weight:sum() * 0 + logits:sum() * 0" },
      line = "Net:training_step" },
    { "softmax before cross_entropy", "loss", "cross_entropy of the result of softmax [2, 4]",
      "lt.cross_entropy(logits", base { "  return logits", "  return (logits:softmax(-1))" } },
    { "softmax as a last layer", "loss", "it applies softmax itself", "lt.cross_entropy(logits",
      base { "self.second = nn.Linear(o.width, 4)", "self.second = nn.Sequential("
        .. "nn.Linear(o.width, 4), nn.Softmax(-1))" } },
    { "relu before cross_entropy", "loss", "logits below 0 are cut off", "lt.cross_entropy(logits",
      base { "  return logits", "  return (logits:relu())" } },
    { "sigmoid before binary_cross_entropy_with_logits", "loss", "it applies sigmoid itself",
      "with_logits", regression { "lt.mse_loss(y, batch[2])",
        "lt.binary_cross_entropy_with_logits(y:sigmoid(), batch[2]:gt(0):float())" } },
    { "probabilities for nll_loss", "loss", "nll_loss takes log-probabilities", "lt.nll_loss",
      base { 'lt.cross_entropy(logits, batch[2])\n  self:log("tr',
        'lt.nll_loss(logits:softmax(-1), batch[2])\n  self:log("tr' } },
    { "predictions [B, 1] against targets [B]", "loss", "each sample against each other",
      "(y - batch[2])", regression({ "lt.mse_loss(y, batch[2])", "(y - batch[2]):square():mean()" },
        { "x:sum(2, {keepdim = true})", "x:sum(2)" }) },

    -- Data.
    { "labels that count from 1", "targets", "batch[2] of the data set are 1..4, and there are 4",
      "lt.cross_entropy(logits", base({ "local y = lt.randint(0, 4, {64})",
        "local y = lt.cat({lt.tensor({1, 2}), lt.randint(1, 5, {62})}, 1):clamp{max = 4}\n"
        .. "y[1], y[2], y[3] = 1, 2, 4" }, { "shuffle = true", "shuffle = false" }) },
    { "ids that the embedding does not have", "targets", "batch[1] of the data set are 0..",
      "self.table(ids)", script = [[
local lt = require "ltrain"
local net = lt.nn.Sequential()
net.table = lt.nn.Embedding(10, 4)
function net:training_step(batch)
  local ids = batch[1]
  return self.table(ids):square():mean()
end
function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.01}) end
local data = lt.data.TensorDataset(lt.arange(0, 12))
return {model = net, data = {train = lt.data.DataLoader(data, {batch_size = 4})}}
]] },
    { "NaN in the data", "data", "1 of 128 values are not finite (1 NaN)", "TensorDataset(x",
      regression { "local data", "x[5][2] = 0 / 0\nlocal data" }, more = 1 },
    { "samples sorted by class", "targets", "are sorted by class (4 classes)", nil,
      base({ "local y = lt.randint(0, 4, {64})", "local y = lt.arange(0, 64):floor_divide(16)" },
        { ", shuffle = true", "" }), line = "train = lt.data.DataLoader" },
    { "validation on the training data", "overlap", "64 of the 64 validation samples are training",
      nil, base { "DataLoader(val", "DataLoader(train" }, line = "train = lt.data.DataLoader" },
    { "validation data that were cut from the training data", "overlap",
      "16 of the 16 validation samples", nil,
      base { "local val = lt.data.TensorDataset(lt.randn(16, 8), lt.randint(0, 4, {16}))",
        "local val = lt.data.TensorDataset(x[{{1, 16}}], y[{{1, 16}}])" },
      line = "train = lt.data.DataLoader" },
    { "a batch that cannot be learnt", "learning", "a batch of two samples is not learnt", nil,
      regression { "x:sum(2, {keepdim = true})", "x:sum(2, {keepdim = true}) * 1e6" },
      line = "net:training_step" },

    -- How the step is written.
    { "a layer that is made in the step", "gradient", "weights [16, 16] are made in the step",
      "local fresh", base { "  local logits = self.second(hidden)", "  local fresh = "
        .. "nn.Linear(16, 16)\n  local logits = self.second(fresh(hidden):relu())" } },
    { "a layer that is no field", "gradient", "weights [8, 8] are in no field of the module",
      "local outside", base({ "function Net:init", "local outside = nn.Linear(8, 8)\n"
        .. "function Net:init" }, { "self.first(x)", "self.first(outside(x):relu())" }) },
    { "a loss with a minus", "loss", "the loss is minus a cross_entropy", "loss = -loss",
      base { "  self:log(\"train", "  loss = -loss\n  self:log(\"train" } },
    { "inputs that are far too large", "loss", "at the start, where guessing would be 1.39",
      "lt.cross_entropy(logits", base { "lt.randn(64, 8)", "lt.randn(64, 8) * 1e6" },
      more = 2 },
    { "inputs that are all 0", "data", "tensor 1 [64, 8]: all values are 0", "TensorDataset(x",
      base { "lt.randn(64, 8)", "lt.zeros(64, 8)" } },
    { "labels that are all the same", "targets", "the 64 training samples have one label, 0",
      "TensorDataset(x", base { "lt.randint(0, 4, {64})", "lt.zeros({64}, {dtype = 'i64'})" } },
    { "labels among the inputs", "data", "column 3 of tensor 1 of the training data is tensor 2",
      "TensorDataset(x", base { "local train =", "x[{lt.all, 3}] = y:float()\nlocal train =" } },
    { "a metric that is watched the wrong way round", "monitor", "treats the largest 'val_loss' as "
      .. "the best", "monitor =", base { "max_epochs = 2}", "max_epochs = 2, callbacks = {\n"
        .. "  lt.callbacks.ModelCheckpoint{monitor = \"val_loss\", mode = \"max\"},\n}}" } },
    { "numbers for binary labels", "loss", "takes targets in 0..1: got [2, 1] with", "with_logits",
      regression { "lt.mse_loss", "lt.binary_cross_entropy_with_logits" } },
    { "tanh before cross_entropy", "loss", "logits in -1..1 cannot express",
      "lt.cross_entropy(logits", base { "  return logits", "  return (logits:tanh())" } },
    { "manual optimization without a step", "training", "calls neither backward nor the step",
      "Net:training_step", base { "  self.first = nn", "  self.automatic_optimization = false\n"
        .. "  self.first = nn" } },
    { "manual optimization without zero_grad", "training", "never zero_grad()",
      "net:training_step", regression({ "function net:training_step",
        "net.automatic_optimization = false\nfunction net:training_step" }, {
        "  return lt.mse_loss(y, batch[2])",
        "  self:manual_backward(lt.mse_loss(y, batch[2]))\n  self:optimizers():step()" }) },
    { "evaluation mode in training_step", "training", "leaves the module in evaluation mode",
      "Net:training_step", base { "  local logits = self(batch[1])\n", "  self:eval()\n"
        .. "  local logits = self(batch[1])\n" } },
    { "a forgotten local", "global", "hidden is a global, and only this function uses",
      "  hidden",
      base { "  local hidden", "  hidden" } },

    -- Callbacks.
    { "a callback that watches what nothing logs", "monitor", "EarlyStopping monitors 'val_los', "
      .. "which is not logged; there is: train_loss, val_loss", "monitor =",
      base { "max_epochs = 2}", "max_epochs = 2, callbacks = {\n"
        .. "  lt.callbacks.EarlyStopping{monitor = \"val_los\"},\n}}" } },
    { "a checkpoint of a metric without validation", "monitor",
      "ModelCheckpoint monitors 'val_acc'",
      "monitor =", base { "max_epochs = 2}", "max_epochs = 2, callbacks = {\n"
        .. "  lt.callbacks.ModelCheckpoint{monitor = \"val_acc\", mode = \"max\"},\n}}" } },
    { "a loop without a Trainer and without backward", "gradient",
      "none of the optimizer's 2 parameters has a gradient", "optimizer:step()", script = [[
local lt = require "ltrain"
local net = lt.nn.Linear(2, 1)
local optimizer = lt.optim.SGD(net:parameters(), {lr = 0.1})
for _ = 1, 100 do
  local loss = net(lt.randn(4, 2)):square():mean()
  optimizer:zero_grad()
  optimizer:step()
  print(loss:item())
end
]] },
    { "a script that returns no module", "returned", "nothing to fit: it returned 3", nil,
      script = "return 3\n", line = false },
    { "a script that raises an error", "load", "boom", "error 'boom'",
      script = "local x = 1\nif x then error 'boom' end\n" },
  },
}
