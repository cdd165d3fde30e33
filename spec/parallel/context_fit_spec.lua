-- spec/parallel/context_fit_spec.lua: fits with context_parallel_size train what one rank trains.
-- tags: slow
local luassert = require "luassert"
local scripts = require("spec.dist.trained").with [[
local nn = lt.nn
local LM = lt.Module:extend "LM"
function LM:init(o)
  self.o = o or {}
  self.net = lt.models.gpt2 {vocab_size = 14, n_positions = 16, n_embd = 8, n_layer = 2, n_head = 2,
    dropout = self.o.dropout or 0}
  self:to "f64"
end
function LM:forward(x) return (self.net(x)) end
function LM:loss(batch)
  local run = self.o.checkpoint and nn.utils.checkpoint or function(f, x) return f(x) end
  local logits = run(function(x) return self(x) end, batch[1])
  return nn.functional.cross_entropy(logits:flatten(1, 2), batch[2]:flatten())
end
function LM:training_step(batch)
  local loss = self:loss(batch)
  self:log("loss", loss, {on_step = true, on_epoch = true, sync_dist = true})
  return loss
end
function LM:validation_step(batch) self:log("val_loss", self:loss(batch)) end
function LM:predict_step(batch) return self(batch[1]) end
function LM:configure_optimizers() return lt.optim.Adam(self:parameters(), {lr = 0.01}) end
local ids = (lt.arange(16 * 17) * 5 % 14):reshape(16, 17)
local function loader(size)
  return lt.data.DataLoader(lt.data.TensorDataset(ids:narrow(2, 1, 16), ids:narrow(2, 2, 16)),
    {global_batch_size = size or 8, shuffle = true})
end
local MP = lt.strategies.ModelParallelStrategy
-- A net that was fitted, and its metrics.
local function fit(ranks, strategy, o, options)
  lt.seed(2)
  local net, all = LM(o), {devices = ranks, strategy = strategy, max_epochs = 2,
    gradient_clip_val = 0.5}
  for name, value in pairs(options or {}) do all[name] = value end
  local t = trainer(all)
  t:fit(net, loader(), loader())
  return net, t
end
-- How far weights and metrics are from those of one rank.
local function apart(ranks, strategy, o, options)
  local wanted, one = fit(1, "single_device", o, options)
  local got, t = fit(ranks, strategy, o, options)
  local most, other = 0, got:state_dict()
  for name, value in pairs(wanted:state_dict()) do
    most = math.max(most, (value - other[name]):abs():max():item())
  end
  local metrics = 0
  for _, name in ipairs {"loss_epoch", "val_loss"} do
    metrics = math.max(metrics, math.abs(one.callback_metrics[name] - t.callback_metrics[name]))
  end
  return most < 1e-9, metrics < 1e-9
end
]]

local function prints(wanted, script)
  local out = scripts.output(nil, script)
  luassert.equal(wanted, (out:gsub("\t", " ")))
end

describe("context_parallel_size", function()
  it("trains GPT-2 to the weights and metrics of one rank", function()
    prints("true true\n", [[
      print(apart(2, MP {context_parallel_size = 2, tensor_parallel_size = 1}))
    ]])
  end)

  it("does so beside data parallel, with accumulated gradients", function()
    prints("true true\n", [[
      print(apart(4, MP {context_parallel_size = 2, data_parallel_size = 2}, nil,
        {accumulate_grad_batches = 2}))
    ]])
  end)

  it("does so beside tensor parallel", function()
    prints("true true\n", [[
      function LM:configure_model()
        if self.device_mesh then lt.parallelize(self.net, self.device_mesh) end
      end
      print(apart(4, MP {context_parallel_size = 2, tensor_parallel_size = 2}))
    ]])
  end)

  it("does so with heads that are exchanged", function()
    prints("true true\n", [[
      print(apart(2, MP {context_parallel_size = 2, context_parallel_attention = "ulysses",
        tensor_parallel_size = 1}))
    ]])
  end)

  it("does so with segments that are recomputed", function()
    prints("true true\n", [[
      print(apart(2, MP {context_parallel_size = 2, tensor_parallel_size = 1}, {checkpoint = true}))
    ]])
  end)

  it("gives steps their part of each sequence, and predictions whole ones", function()
    prints("8 16 16\n", [[
      local seen
      local Seen = LM:extend "Seen"
      function Seen:training_step(batch)
        seen = batch[1].shape[2]
        return self:loss(batch)
      end
      local net, t = Seen(), trainer {devices = 2, max_epochs = 1,
        strategy = MP {context_parallel_size = 2, tensor_parallel_size = 1}}
      t:fit(net, loader())
      local y = t:predict(net, loader())
      print(seen, y[1].shape[2], ids:narrow(2, 1, 16).shape[2])
    ]])
  end)

  it("drops other elements on each rank, and the same in each fit", function()
    prints("true false\n", [[
      local MASKS = {}
      local Drop = LM:extend "Drop"
      function Drop:training_step(batch)
        local mask = nn.functional.dropout(lt.ones(64), 0.5)
        local all = lt.dist.all_gather(mask)
        MASKS[#MASKS + 1] = (all[1] - all[2]):abs():sum():item() == 0
        return self:loss(batch)
      end
      local function run()
        lt.seed(5)
        local net = Drop {dropout = 0.2}
        trainer {devices = 2, strategy = MP {context_parallel_size = 2, tensor_parallel_size = 1}}
          :fit(net, loader())
        return lt.hash(net:state_dict())
      end
      print(run() == run(), MASKS[1])
    ]])
  end)

  it("refuses sequences that do not divide", function()
    local status, _, err = scripts.run(nil, [[
      local short = lt.zeros(4, 10, {dtype = "i64"})
      trainer {devices = 4, strategy = MP {context_parallel_size = 4, tensor_parallel_size = 1}}
        :fit(LM(), {{short, short}})
    ]])
    luassert.equal(1, status, err)
    luassert.matches("10 positions %(dim 2 of %[4, 10%]%) do not divide into 8 chunks for 4 ranks",
      err)
  end)
end)
