-- spec/strategies/sharding_options_spec.lua: FSDPStrategy and DeepSpeedStrategy: options of
-- Lightning's that have a meaning here, and the words for the others.
local lt = require "ltrain"

local strategies = lt.strategies

local function refused(words, class, options)
  local ok, message = pcall(class, options)
  assert.is_false(ok)
  assert.matches(words, message, 1, true)
end

local function notes(strategy) return table.concat(strategy.notes or {}, "; ") end

describe("FSDPStrategy", function()
  it("takes the names of PyTorch's strategies", function()
    local full = strategies.FSDPStrategy()
    assert.same({ 3, true }, { full.stage, full.reshard_after_forward })
    local kept = strategies.FSDPStrategy { sharding_strategy = "SHARD_GRAD_OP" }
    assert.same({ 3, false }, { kept.stage, kept.reshard_after_forward })
    refused("sharding_strategy = 'NO_SHARD': write strategy = 'ddp'", strategies.FSDPStrategy,
      { sharding_strategy = "NO_SHARD" })
    refused("must be 'FULL_SHARD', 'SHARD_GRAD_OP', 'HYBRID_SHARD' or '_HYBRID_SHARD_ZERO2'",
      strategies.FSDPStrategy, { sharding_strategy = "FULL" })
  end)

  it("takes HYBRID_SHARD for replicas, and device_mesh for their number", function()
    local hybrid = strategies.FSDPStrategy { sharding_strategy = "HYBRID_SHARD" }
    assert.same({ "machines", true }, { hybrid.replicas, hybrid.reshard_after_forward })
    local kept = strategies.FSDPStrategy { sharding_strategy = "_HYBRID_SHARD_ZERO2",
      device_mesh = { 2, 4 } }
    assert.same({ 2, false }, { kept.replicas, kept.reshard_after_forward })
    refused("device_mesh needs sharding_strategy = 'HYBRID_SHARD': got 'FULL_SHARD'",
      strategies.FSDPStrategy, { device_mesh = { 2, 4 } })
    refused("device_mesh must be {replicas, ranks of each}, two numbers", strategies.FSDPStrategy,
      { sharding_strategy = "HYBRID_SHARD", device_mesh = { 2 } })
    for _, value in ipairs { 0, "hosts" } do
      refused("replicas must be a number of groups of ranks, or 'machines': got " .. value,
        strategies.Sharded, { replicas = value })
    end
    refused("reshard_after_forward = 4: true or false; for shards within groups of ranks write "
      .. "replicas = N", strategies.Sharded, { reshard_after_forward = 4 })
  end)

  it("takes auto_wrap_policy for units, and one name of a thing at a time", function()
    local classes = { lt.nn.Linear }
    assert.equal(classes, strategies.FSDPStrategy { auto_wrap_policy = classes }.units)
    refused("auto_wrap_policy and units are one option: give one", strategies.FSDPStrategy,
      { auto_wrap_policy = classes, units = 5 })
    refused("units must be a list of classes of modules: got 3", strategies.FSDPStrategy,
      { units = { 3 } })
  end)

  it("takes cpu_offload for offload", function()
    assert.equal("cpu", strategies.FSDPStrategy { cpu_offload = true }.offload)
    assert.equal(nil, strategies.FSDPStrategy { cpu_offload = false }.offload)
    refused("cpu_offload and offload are one option: give one", strategies.FSDPStrategy,
      { cpu_offload = true, offload = { path = "/fast" } })
  end)

  it("says what has no effect, and refuses what would be missed", function()
    assert.matches("use_orig_params = true has no effect: parameters are always tensors",
      notes(strategies.FSDPStrategy { use_orig_params = true }))
    refused("mixed_precision is not an option here: write precision", strategies.FSDPStrategy,
      { mixed_precision = {} })
  end)
end)

describe("DeepSpeedStrategy", function()
  it("takes the stage of an option, else of its config, else 2", function()
    assert.equal(2, strategies.DeepSpeedStrategy().stage)
    local config = { zero_optimization = { stage = 3, stage3_param_persistence_threshold = 7 } }
    local made = strategies.DeepSpeedStrategy { config = config }
    assert.same({ 3, 7 }, { made.stage, made.keep_below })
    assert.equal(1, strategies.DeepSpeedStrategy { config = config, stage = 1 }.stage)
    refused("stage must be 1, 2 or 3: got 4", strategies.DeepSpeedStrategy, { stage = 4 })
    refused("stage of the config must be at most 3: got 5", strategies.DeepSpeedStrategy,
      { config = { zero_optimization = { stage = 5 } } })
    refused("stage 0 divides nothing: write strategy = 'ddp'", strategies.DeepSpeedStrategy,
      { config = { zero_optimization = { stage = 0 } } })
  end)

  it("reads a config file, and says which of it is the Trainer's", function()
    local path = os.tmpname()
    local function write(text)
      local file = assert(io.open(path, "w"))
      file:write(text)
      file:close()
    end
    write [[{"zero_optimization": {"stage": 1}, "gradient_clipping": 1.0,
      "fp16": {"enabled": false},
      "bf16": {"enabled": true}, "aio": {}}]]
    local made = strategies.DeepSpeedStrategy { config = path }
    assert.equal(1, made.stage)
    assert.equal("config: aio has no effect; config: bf16 has no effect: it is precision = "
      .. "'bf16-mixed' of the Trainer; config: gradient_clipping has no effect: it is "
      .. "gradient_clip_val of the Trainer", notes(made))
    write "[1"
    refused("config: " .. path .. ": ", strategies.DeepSpeedStrategy, { config = path })
    os.remove(path)
    refused("cannot open " .. path, strategies.DeepSpeedStrategy, { config = path })
  end)

  it("takes where parameters and the state of optimizers are for offload", function()
    local function offload(options) return strategies.DeepSpeedStrategy(options).offload end
    assert.equal(nil, offload())
    assert.equal("cpu", offload { offload_optimizer = true })
    assert.same({ path = "/local_nvme" }, offload { stage = 3, offload_parameters = true,
      offload_params_device = "nvme", offload_optimizer = true })
    assert.same({ path = "/fast" }, offload { nvme_path = "/fast", stage = 3,
      remote_device = "nvme" })
    local zero = { stage = 3, offload_optimizer = { device = "cpu", pin_memory = true } }
    local config = { zero_optimization = zero }
    assert.equal("cpu", offload { config = config })
    assert.equal(nil, offload { config = config, offload_optimizer = false })
    zero.offload_param = { device = "nvme", nvme_path = "/fast" }
    assert.same({ path = "/fast" }, offload { config = config })
    assert.same({ path = "/own" }, offload { config = config, nvme_path = "/own" })
    zero.offload_optimizer.device = "tape"
    refused("device of offload_optimizer of the config must be", strategies.DeepSpeedStrategy,
      { config = config })
    refused("offload_optimizer and offload are one option: give one", strategies.DeepSpeedStrategy,
      { offload_optimizer = true, offload = "cpu" })
  end)

  it("says which options of offloading have no effect", function()
    assert.matches("offload_parameters has no effect: under stage 2 parameters are whole",
      notes(strategies.DeepSpeedStrategy { offload_parameters = true }))
    assert.matches("offload: under stage 3 parameters, gradients and the state of optimizers are "
      .. "in one place", notes(strategies.DeepSpeedStrategy { stage = 3,
        offload_optimizer = true }))
    assert.matches("config: offload_param.buffer_count has no effect: files are mapped",
      notes(strategies.DeepSpeedStrategy { config = { zero_optimization = { stage = 3,
        offload_param = { device = "none", buffer_count = 5 } } } }))
    assert.matches("queue_depth = 8 has no effect: files are mapped",
      notes(strategies.DeepSpeedStrategy { queue_depth = 8 }))
  end)

  it("reports sizes of buffers", function()
    assert.matches("reduce_bucket_size = 5 has no effect: buffers have the size of a unit",
      notes(strategies.DeepSpeedStrategy { reduce_bucket_size = 5 }))
  end)
end)

describe("Trainer{strategy = name of a stage}", function()
  it("is a stage of Sharded", function()
    for name, wanted in pairs { zero1 = 1, sharded = 3, ddp_sharded = 2, ddp_sharded_spawn = 2,
      fsdp = 3, deepspeed = 2, deepspeed_stage_1 = 1, deepspeed_stage_2 = 2,
      deepspeed_stage_3 = 3 } do
      local trainer = lt.Trainer { strategy = name, devices = 2, logger = false }
      assert.equal(wanted, trainer.strategy.stage, name)
    end
  end)

  it("says where what is divided is kept", function()
    for name, wanted in pairs { fsdp = { 3 }, fsdp_cpu_offload = { 3, "cpu" },
      deepspeed_stage_2_offload = { 2, "cpu" }, deepspeed_stage_3_offload = { 3, "cpu" },
      deepspeed_stage_3_offload_nvme = { 3, { path = "/local_nvme" } } } do
      local strategy = lt.Trainer { strategy = name, devices = 2, logger = false }.strategy
      assert.same(wanted, { strategy.stage, strategy.offload }, name)
    end
    local alone = lt.Trainer { strategy = "fsdp_cpu_offload", devices = 1, logger = false }
    assert.matches("offload has no effect: one rank divides nothing", notes(alone.strategy))
    local own = lt.Trainer { devices = 2, logger = false,
      strategy = { "deepspeed_stage_3_offload_nvme", nvme_path = "/fast" } }.strategy
    assert.same({ path = "/fast" }, own.offload)
  end)
end)
