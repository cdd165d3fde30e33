-- spec/cuda/graph_fit_spec.lua: Trainer{cuda_graph = true}: fits whose training_step and backward
-- are launched as CUDA graphs give the bits of those without.
local both = require "spec.cuda.both"
local counts = require "spec.cuda.counts"
local lt = require "ltrain"
local nn = lt.nn

local Net <const> = lt.Module:extend "GraphNet"

function Net:init(options)
  self.options, self.hooks, self.rows, self.made = options or {}, {}, {}, 0
  self.layers = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3),
    nn.Linear(16, 3))
end

function Net:training_step(batch)
  _G.graph_steps = (_G.graph_steps or 0) + 1
  local logits = self.layers(batch[1])
  local loss = nn.functional.cross_entropy(logits, batch[2]:flatten())
  self:log("loss", loss, { on_epoch = true })
  self:log("top", logits:max(), { prog_bar = true })
  if self.options.step then self.options.step(self, loss) end
  return { loss = loss, logits = logits }
end

local function count(self, name) self.hooks[name] = (self.hooks[name] or 0) + 1 end

function Net:on_before_zero_grad() count(self, "zero_grad") end
function Net:on_before_backward() count(self, "before_backward") end
function Net:on_after_backward() count(self, "after_backward") end
function Net:on_before_optimizer_step() count(self, "step") end
function Net:on_train_batch_end(outputs)
  self.rows[#self.rows + 1] = outputs.loss
  self.rows[#self.rows + 1] = outputs.logits
  self.rows[#self.rows + 1] = self.trainer.callback_metrics.loss_step
end

function Net:configure_optimizers()
  local optimizer = lt.optim.Adam(self:parameters(), { lr = 0.02 })
  local scheduler = lt.optim.StepLR(optimizer, 3, { gamma = 0.8 })
  return { optimizer = optimizer, lr_scheduler = { scheduler = scheduler, interval = "step" } }
end

local warned

local function fit(options, net_options)
  lt.seed(8)
  local samples = lt.data.TensorDataset(lt.randn { 75, 6 }, lt.randint(0, 3, { 75 }))
  local data = lt.data.DataLoader(samples, { batch_size = 8, shuffle = true })
  local net = Net(net_options)
  local all = { accelerator = "cuda", devices = 1, max_epochs = 2, logger = false,
    enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false }
  for name, value in pairs(options) do all[name] = value end
  local trainer = lt.Trainer(all)
  warned = {}
  function trainer:warn(text) warned[#warned + 1] = text end
  _G.graph_steps = 0
  trainer:fit(net, data)
  for _, p in ipairs(net:parameters()) do net.rows[#net.rows + 1] = p end
  for _, value in pairs { trainer.callback_metrics.loss_epoch } do
    net.rows[#net.rows + 1] = lt.tensor(value)
  end
  net.rows[#net.rows + 1] = net.layers[2].running_mean
  return net, _G.graph_steps
end

local function compare(options, net_options, ran)
  local want, all = fit(options, net_options)
  options.cuda_graph = true
  local got, steps = fit(options, net_options)
  assert.same({}, warned)
  assert.same(want.hooks, got.hooks)
  assert.equal(#want.rows, #got.rows)
  for k = 1, #want.rows do both.same(got.rows[k], want.rows[k], ("value %d"):format(k)) end
  assert.equal(20, all)
  assert.equal(ran, steps)
end

describe("cuda_graph of the Trainer", function()
  both.it("gives the same bits with dropout, batch norm, a scheduler, logs, hooks", function()
    compare({}, nil, 3 + 2) -- the last batches are smaller
  end)

  both.it("gives them with clipping and accumulation", function()
    compare({ gradient_clip_val = 0.1 }, nil, 5)
    -- The first adds to gradients of a batch that ran; then one of each place in a window.
    compare({ accumulate_grad_batches = 3 }, nil, 2 + 1 + 3 + 2)
  end)

  for _, precision in ipairs { "bf16-mixed", "16-mixed" } do
    both.it("gives them with precision = " .. precision, function()
      compare({ precision = precision }, nil, 5)
    end)
  end

  -- A fit of whole batches of another module; `hooks(net)` gives it hooks.
  local function fit_hooked(cuda_graph, max_epochs, hooks)
    lt.seed(2)
    local net = Net()
    hooks(net)
    local data = lt.data.TensorDataset(lt.randn { 64, 6 }, lt.randint(0, 3, { 64 }))
    local trainer = lt.Trainer { accelerator = "cuda", devices = 1, max_epochs = max_epochs,
      logger = false, enable_checkpointing = false, enable_progress_bar = false,
      enable_model_summary = false, cuda_graph = cuda_graph }
    trainer:fit(net, lt.data.DataLoader(data, { batch_size = 8 }))
    return net:parameters()
  end

  both.it("launches less", function()
    if not counts then return pending "only the fake runtime counts" end
    local function launches(cuda_graph)
      local seen
      fit_hooked(cuda_graph, 1, function(net)
        function net:on_train_batch_start(_, index)
          local n = counts()
          if index == 7 then seen = n.launches end
        end
      end)
      return seen
    end
    local eager, graphs = launches(false), launches(true)
    assert.is_true(graphs < eager, ("%d of %d"):format(graphs, eager))
  end)

  local function refused(step, why)
    local want = fit({}, { step = step })
    local got = fit({ cuda_graph = true }, { step = step })
    assert.matches(why, table.concat(warned, "\n"))
    assert.equal(1, #warned)
    for k = 1, #want.rows do both.same(got.rows[k], want.rows[k], ("value %d"):format(k)) end
  end

  both.it("runs training_step as it is where a launch would do something else", function()
    refused(function(_, loss) loss:item() end, "graph_fit_spec.lua:%d+: .*cannot give values")
    refused(function(net) net.made = net.made + 1 end, "training_step changes self.made")
    refused(function(net) net:log("n", 1) end, "self:log of 'n': a launch logs tensors")
  end)

  both.it("raises the errors of training_step as they are", function()
    assert.error_matches(function()
      fit({ cuda_graph = true }, { step = function()
        if _G.graph_steps == 3 then error "of the script" end
      end })
    end, "of the script")
  end)

  both.it("sees modules that are frozen meanwhile", function()
    local function frozen(cuda_graph)
      return fit_hooked(cuda_graph, 2, function(net)
        function net:on_train_epoch_start()
          self.layers[1].weight.requires_grad = self.trainer.current_epoch == 0
        end
      end)
    end
    local want, got = frozen(false), frozen(true)
    for k = 1, #want do both.same(got[k], want[k], ("parameter %d"):format(k)) end
  end)

  both.it("has no effect with scales of float8, which is said", function()
    local net <const> = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 3))
    function net:training_step(batch)
      return (nn.functional.cross_entropy(self(batch[1]), batch[2]))
    end
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
    local trainer = lt.Trainer { accelerator = "cuda", devices = 1, max_steps = 1, logger = false,
      enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
      cuda_graph = true, precision = "fp8-mixed" }
    local said = {}
    function trainer:warn(text) said[#said + 1] = text end
    trainer:fit(net, lt.data.DataLoader(lt.data.TensorDataset(lt.randn { 16, 16 },
      lt.randint(0, 3, { 16 })), { batch_size = 16 }))
    assert.matches("cuda_graph: has no effect: precision = 'fp8%-mixed' measures",
      table.concat(said, "\n"))
  end)

  it("has no effect on the CPU, which is said", function()
    local net = fit { accelerator = "cpu", cuda_graph = true }
    assert.matches("cuda_graph: has no effect: the fit runs on cpu", warned[1])
    assert.equal("cpu", net.layers[1].weight.device)
  end)
end)
