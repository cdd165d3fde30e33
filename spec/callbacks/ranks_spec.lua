-- spec/callbacks/ranks_spec.lua: callbacks that change what is trained, on two ranks: weights are
-- those of one rank with the whole batches.
-- tags: threads
local support = require "spec.dist.support"

-- A fit of 3 epochs over 6 samples in batches of 2 of all ranks; prints weights of a net with batch
-- norm where `norm`, and the learning rates.
local function weights(n, callback, more)
  local body = ([[
    local n = lt.dist.world_size()
    lt.seed(2)
    local net = lt.nn.Sequential()
    net.backbone, net.head = lt.nn.Linear(1, 2), lt.nn.Linear(2, 1)
    function net:forward(x)
      local y = self.head(self.backbone(x))
      return y
    end
    function net:training_step(batch) return (self(batch[1]) - batch[1] * 2):square():mean() end
    function net:validation_step(batch)
      self:log("val", (self(batch[1]) - batch[1] * 2):square():mean())
    end
    function net:configure_optimizers()
      local list = {}
      for _, p in ipairs(self:parameters()) do if p.requires_grad then list[#list + 1] = p end end
      return lt.optim.SGD(list, {lr = 0.05})
    end
    local data = lt.data.TensorDataset(lt.arange(6):reshape{6, 1}:to "f32" / 6)
    local loader = lt.data.DataLoader(data, {batch_size = 2 // n})
    local t = lt.Trainer{max_epochs = 3, logger = false, enable_checkpointing = false,
      enable_progress_bar = false, enable_model_summary = false, callbacks = {%s}, %s}
    t:fit(net, loader, loader)
    local parts = {}
    for _, p in ipairs(net:parameters()) do
      for _, v in ipairs(p:reshape{-1}:tolist()) do parts[#parts + 1] = ("%%.5f"):format(v) end
    end
    parts[#parts + 1] = ("%%.5f %%d"):format(t.callback_metrics.val, t.global_step)
    local text = table.concat(parts, " ")
    for _, other in ipairs(lt.dist.all_gather(text)) do assert(other == text, other) end
    if lt.dist.rank() == 0 then print("w " .. text) end
  ]]):format(callback, more or "")
  local out = n == 1 and support.passes(body) or support.ranks(n, body)
  return assert(out:match "w [%-%d. ]+", out)
end

describe("two ranks have the weights of one", function()
  for name, callback in pairs {
    BackboneFinetuning = "lt.callbacks.BackboneFinetuning{unfreeze_backbone_at_epoch = 1}",
    EMAWeightAveraging = "lt.callbacks.EMAWeightAveraging{decay = 0.5}",
    GradientAccumulationScheduler = "lt.callbacks.GradientAccumulationScheduler{[1] = 3}",
    StochasticWeightAveraging =
      "lt.callbacks.StochasticWeightAveraging{swa_lrs = 0.02, swa_epoch_start = 1}",
  } do
    it("with " .. name, function()
      assert.equal(weights(1, callback), weights(2, callback))
    end)
  end

  it("and LearningRateFinder says that it is for one", function()
    local out = support.fails(([[dist.launch(2, function()
      local net = lt.nn.Linear(1, 1)
      net.lr = 0.1
      function net:training_step(x) return self(x):square():mean() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      lt.Trainer{max_epochs = 1, logger = false, enable_checkpointing = false,
        enable_progress_bar = false, callbacks = {lt.callbacks.LearningRateFinder()}}
        :fit(net, {lt.ones(2, 1)})
    end)]]))
    assert.matches("it runs on one rank: find the rate with devices = 1 first", out)
  end)
end)
