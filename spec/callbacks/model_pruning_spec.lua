-- spec/callbacks/model_pruning_spec.lua: ModelPruning: what is pruned, when, and how it resumes.
local console = require "ltrain.core.console"
local lt = require "ltrain"
local support = require "spec.dist.support"
local tiny = require "spec.trainer.tiny"

local ModelPruning <const> = lt.callbacks.ModelPruning
local prune <const> = lt.nn.utils.prune

local function network()
  lt.seed(4)
  local net = lt.nn.Sequential(lt.nn.Linear(4, 8), lt.nn.ReLU(), lt.nn.Linear(8, 2))
  function net:training_step(x) return self(x):square():mean() end
  function net:validation_step(x) self:log("val", self(x):sum()) end
  function net:configure_optimizers()
    return lt.optim.Adam(self:parameters(), { lr = 0.01 })
  end
  return net
end

local function zeros(x) return x:eq(0):sum():item() end

local function batches()
  lt.seed(1)
  return { lt.randn(3, 4), lt.randn(3, 4) }
end

local function fit(callback, options, net, more)
  net = net or network()
  local o = { callbacks = { callback } }
  for name, value in pairs(options or {}) do o[name] = value end
  local trainer = tiny.trainer(o)
  trainer:fit(net, batches(), more)
  return net, trainer
end

describe("callbacks.ModelPruning", function()
  it("prunes part of what is left after each epoch, all layers together", function()
    local counts = {}
    local Watch = lt.Callback:extend "Watch"
    Watch.all_ranks = true
    function Watch.on_train_epoch_start(_, _, net)
      counts[#counts + 1] = zeros(net[1].weight) + zeros(net[3].weight)
    end
    local callback = ModelPruning("l1_unstructured", { parameter_names = { "weight" },
      amount = 0.5 })
    local net = fit(callback, { max_epochs = 3, callbacks = { callback, Watch() } })
    -- 48 elements; of those left half, as torch.nn.utils.prune.global_unstructured.
    assert.same({ 0, 24, 36 }, counts)
    assert.equal(42, zeros(net[1].weight) + zeros(net[3].weight))
    assert.is_false(prune.is_pruned(net))
    assert.same({ "0.weight", "0.bias", "2.weight", "2.bias" }, net:parameters().names)
  end)

  it("gives what is left its first values, unless it is not to", function()
    local first = network()
    local net = fit(ModelPruning("l1_unstructured", { amount = 0.25 }))
    local kept = net[1].weight:ne(0)
    assert.is_true(net[1].weight:equal(first[1].weight * kept:float()))
    net = fit(ModelPruning("l1_unstructured", { amount = 0.25,
      use_lottery_ticket_hypothesis = false }))
    assert.is_false(net[1].weight:equal(first[1].weight * net[1].weight:ne(0):float()))
    net = fit(ModelPruning("l1_unstructured", { amount = 1,
      use_lottery_ticket_hypothesis = function(epoch) return epoch == 0 end }))
    assert.equal(1, zeros(net[1].weight) + zeros(net[1].bias) + zeros(net[3].weight)
      + zeros(net[3].bias))
  end)

  it("prunes layers by themselves, by each method", function()
    local net = fit(ModelPruning("ln_structured", { use_global_unstructured = false,
      pruning_dim = 1, pruning_norm = 2, amount = 0.5, parameter_names = { "weight" } }))
    assert.equal(16, zeros(net[1].weight))
    assert.equal(8, zeros(net[3].weight))
    net = fit(ModelPruning("random_unstructured", { use_global_unstructured = false, amount = 4,
      parameter_names = { "weight" } }))
    assert.same({ 4, 4 }, { zeros(net[1].weight), zeros(net[3].weight) })
  end)

  it("takes pairs, functions of the epoch, a class, and a filter", function()
    local net, seen = network(), {}
    fit(ModelPruning("l1_unstructured", { parameters_to_prune = { { net[3], "weight" } },
      amount = function(epoch)
        seen[#seen + 1] = epoch
        return epoch == 1 and 3 or 0
      end, apply_pruning = function(epoch) return epoch < 2 end }), { max_epochs = 3 }, net)
    assert.same({ 0, 1, 2 }, seen)
    assert.same({ 0, 3 }, { zeros(net[1].weight), zeros(net[3].weight) })
    local Signs = prune.BasePruningMethod:extend "Signs"
    function Signs.compute_mask(_, t, mask) return mask * t:gt(0):to(mask.dtype) end
    local callback = ModelPruning(Signs, { use_lottery_ticket_hypothesis = false })
    function callback.filter_parameters_to_prune(_, list) return { list[1] } end
    net = fit(callback)
    assert.is_true(net[1].weight:ge(0):all():item())
    assert.is_false(net[3].weight:ge(0):all():item())
  end)

  it("prunes after validation, and reports how much", function()
    local say, lines = console.say, {}
    finally(function() console.say = say end)
    console.say = function(text) lines[#lines + 1] = text end
    do
      local net = network()
      tiny.trainer({ callbacks = { ModelPruning("l1_unstructured", { verbose = 2, amount = 0.5,
        prune_on_train_epoch_end = false }) } }):fit(net, batches(), batches())
      assert.equal(29, zeros(net[1].weight) + zeros(net[1].bias) + zeros(net[3].weight)
        + zeros(net[3].bias))
    end
    local text = table.concat(lines, "\n")
    assert.matches("L1Unstructured: pruned 29 of 58 %(50.00%%%), before 0 %(0.00%%%)", text)
    assert.matches("0.weight, amount 0.5: L1Unstructured: pruned", text)
  end)

  it("leaves plain parameters of any name", function()
    local net = network()
    net.scale = lt.parameter(lt.randn(4, 4))
    fit(ModelPruning("l1_unstructured", { parameters_to_prune = { { net, "scale" } } }), nil, net)
    assert.is_false(prune.is_pruned(net))
    assert.equal(8, zeros(net.scale))
  end)

  it("keeps the masks with make_pruning_permanent = false", function()
    local net, trainer = fit(ModelPruning("l1_unstructured", { make_pruning_permanent = false }))
    assert.is_true(prune.is_pruned(net))
    local path = tiny.folder()
    trainer:save_checkpoint(path)
    local other = network()
    tiny.trainer({ callbacks = { ModelPruning("l1_unstructured",
      { make_pruning_permanent = false }) } }):validate(other, batches(),
      { ckpt_path = path, verbose = false })
    assert.is_true(other[1].weight:equal(net[1].weight))
    os.remove(path)
  end)

  it("resumes as if it had not stopped, from a file of plain weights", function()
    local folder = tiny.folder()
    local Save = lt.Callback:extend "Save"
    Save.saves_checkpoints = true
    function Save.on_train_epoch_end(_, trainer)
      if trainer.current_epoch == 1 then trainer:save_checkpoint(folder) end
    end
    for _, lottery in ipairs { true, false } do
      local function pruning()
        return ModelPruning("l1_unstructured", { amount = 0.3,
          use_lottery_ticket_hypothesis = lottery })
      end
      local whole = fit(nil, { max_epochs = 4, callbacks = { pruning(), Save() } })
      local names = {}
      local saved = assert(lt.CheckpointIO():load(folder))
      for name in pairs(saved.state_dict) do names[#names + 1] = name end
      table.sort(names)
      assert.same({ "0.bias", "0.weight", "2.bias", "2.weight" }, names)
      local net = network()
      lt.seed(9)
      for _, p in ipairs(net:parameters()) do p:detach():zero_() end
      fit(pruning(), { max_epochs = 4 }, net, { ckpt_path = folder })
      assert.equal(lt.hash(whole:state_dict()), lt.hash(net:state_dict()))
    end
    os.remove(folder)
  end)

  it("prunes the same on all ranks", function()
    local out = support.ranks(2, [[
      lt.seed(3)
      local net = lt.nn.Linear(4, 8)
      function net:training_step(x) return self(x):square():mean() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      lt.Trainer{accelerator = "cpu", max_epochs = 2, logger = false, enable_checkpointing = false,
        enable_progress_bar = false, enable_model_summary = false, callbacks = {
          lt.callbacks.ModelPruning("random_unstructured")}}:fit(net, {lt.ones(2, 4)})
      local hashes = dist.all_gather(lt.hash(net:state_dict()))
      print("same " .. tostring(hashes[1] == hashes[2]), net.weight:eq(0):sum():item() > 10)
    ]])
    assert.matches("same true\ttrue", out)
  end)

  it("refuses what it cannot do", function()
    local function wrong(...) return tiny.error_of(ModelPruning, ...) end
    assert.matches("pruning_fn must be 'l1_unstructured', .* or a class below .*: got 3", wrong(3))
    assert.matches("got 'l2_unstructured'", wrong "l2_unstructured")
    assert.matches("use_global_unstructured needs a method whose PRUNING_TYPE is 'unstructured'",
      wrong("ln_structured", { pruning_dim = 1, pruning_norm = 2 }))
    assert.matches("'ln_structured' needs pruning_dim",
      wrong("ln_structured", { use_global_unstructured = false }))
    assert.matches("'ln_structured' needs pruning_norm",
      wrong("ln_structured", { use_global_unstructured = false, pruning_dim = 1 }))
    assert.matches("must be 'weight' and 'bias', or one of them: got 'gamma'",
      wrong("l1_unstructured", { parameter_names = { "gamma" } }))
    assert.matches("parameters_to_prune%[1%] must be a module of the model", tiny.error_of(fit,
      ModelPruning("l1_unstructured", { parameters_to_prune = { { network(), "weight" } } })))
    assert.matches("Linear has no reset_parameters", tiny.error_of(fit,
      ModelPruning("l1_unstructured", { resample_parameters = true })))
  end)
end)
