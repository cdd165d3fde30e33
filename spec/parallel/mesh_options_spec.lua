-- spec/parallel/mesh_options_spec.lua: replicas, offload and activation_checkpointing of
-- ModelParallelStrategy: fits are those of one rank.
-- tags: sixth, slow
local child = require "spec.cli.child"
local scripts = require "spec.parallel.small_models"

local FIT <const> = scripts.SAME

local function prints(wanted, script, folder)
  assert.equal(wanted, (scripts.output(nil, ("local folder = %q "):format(folder or "") .. FIT
    .. script)))
end

local function refuses(text, script)
  local status, _, err = scripts.run(nil, FIT .. script)
  assert.equal(1, status)
  assert.matches(text, err)
  assert.truthy(select(2, err:gsub("\n", "\n")) <= 2, err) -- one sentence
end

for stage = 1, 3 do
  describe(("replicas of stage %d of a mesh"):format(stage), function()
    it("train as one rank", function()
      prints("same\nsame\n", ([[
        print(is_same("gpt2", 8, nil, {stage = %d, sharding = {replicas = 2}}))
        print(is_same("llama", 4, {accumulate_grad_batches = 2}, {stage = %d, batch = 4,
          sharding = {replicas = 2, tensor_parallel_size = 1, data_parallel_size = 4},
          tensor_parallel_size = 1}))
      ]]):format(stage, stage))
    end)

    it("train beside context parallel", function()
      prints("same\n", ([[
        print(is_same("gpt2", 8, nil, {stage = %d, class = Alone, context_parallel_size = 2,
          sharding = {replicas = 2}}))
      ]]):format(stage))
    end)
  end)

  describe(("offload of stage %d of a mesh"):format(stage), function()
    it("trains as one rank, with shards on the host and products on devices", function()
      prints("same\nsame\n", ([[
        local device = {device = function(_, rank) return "fake:" .. rank end}
        local Placed = Net:extend "Placed"
        function Placed:on_train_batch_end()
          if dist.world_size() == 1 then return end
          for tensor, slots in pairs(self.trainer.optimizers[1].state) do
            assert(tensor.device == "cpu" and slots.exp_avg.device == "cpu", tensor.device)
          end
          assert(self.device == "fake:" .. dist.rank())
        end
        for _, o in ipairs {{}, {accumulate_grad_batches = 2}} do
          o.accelerator = device
          print(is_same("gpt2", 4, o, {stage = %d, class = Placed, sharding = {offload = "cpu"},
            batch = o.accumulate_grad_batches and 4}))
        end
      ]]):format(stage))
    end)
  end)
end

describe("replicas of a mesh", function()
  it("have each shard once in each, and checkpoints once", function()
    local folder = child.folder()
    prints("true\nsame\nsame\n", [[
      local seen = {}
      local Counted = Net:extend "Counted"
      function Counted:on_train_batch_end(_, _, i)
        local n, cut, whole = 0, 0, 0
        for _, slots in pairs(self.trainer.optimizers[1].state) do n = n + slots.exp_avg:numel() end
        for _, p in ipairs(self:parameters()) do whole = whole + p:numel() end
        seen[self.trainer.strategy.replicas] = n / whole
        if i == 1 and self.current_epoch == 0 then
          self.trainer:save_checkpoint(folder .. "/cut")
        end
      end
      local more = {stage = 2, class = Counted, state_dict_type = "sharded"}
      fit("gpt2", 8, nil, more)
      more.sharding = {replicas = 2}
      local wanted = fit("gpt2", 8, nil, more)
      print(math.abs(seen[1] - 1 / 4) < 0.03 and math.abs(seen[2] - 1 / 2) < 0.03)
      for _, case in ipairs {{8, {stage = 3, sharding = {replicas = 4}}}, {1, {}}} do
        case[2].ckpt_path = folder .. "/cut"
        local got = fit("gpt2", case[1], nil, case[2])
        print(got == wanted and "same" or got .. "\n" .. wanted)
      end
    ]], folder)
    child.remove(folder)
  end)

  it("must divide the ranks that have the same parts, and have a stage", function()
    for words, options in pairs {
      ["replicas = 3 must divide the number of ranks with the same parts: got 4"] =
        "{data_parallel_size = 4, tensor_parallel_size = 2, stage = 3, replicas = 3}",
      ["replicas = 4 must divide the number of ranks with the same experts: got 2"] =
        "{data_parallel_size = 2, expert_parallel_size = 4, stage = 3, replicas = 4}",
      ["replicas is of what a stage divides: write stage = 1, 2 or 3"] =
        "{data_parallel_size = 4, tensor_parallel_size = 2, replicas = 2}",
      ["offload is of what a stage divides"] =
        "{data_parallel_size = 4, tensor_parallel_size = 2, offload = 'cpu'}",
      ["offload_activations is of the modules that activation_checkpointing names"] =
        "{offload_activations = true}",
    } do
      refuses("strategies.ModelParallelStrategy: " .. words, ([[
        trainer {devices = 8, strategy = lt.strategies.ModelParallelStrategy %s}
      ]]):format(options))
    end
  end)
end)

describe("activation_checkpointing on a mesh", function()
  it("trains as one rank, and computes forward again", function()
    prints("same\t2.0\nsame\t2.0\nsame\t2.0\nsame\t2.0\n", [[
      local Block = getmetatable(make("gpt2", 0).transformer.h[1])
      local forward, times = Block.forward, {0, 0}
      function Block.forward(...)
        local ways = dist.world_size() > 1 and 2 or 1
        times[ways] = times[ways] + 1
        return forward(...)
      end
      for _, more in ipairs {{}, {stage = 3}, {stage = 2, sharding = {offload_activations = true}},
        {class = Alone, context_parallel_size = 2}} do
        more.sharding = more.sharding or {}
        more.sharding.activation_checkpointing = {Block}
        times = {0, 0} -- of one rank, and of the first of several
        local ranks = more.context_parallel_size and 8 or 4
        print(is_same("gpt2", ranks, {limit_val_batches = 0}, more), times[2] / times[1])
      end
    ]])
  end)

  it("ends with the fit", function()
    prints("true\n", [[
      local Block = getmetatable(make("gpt2", 0).transformer.h[1])
      local more = {stage = 3, sharding = {activation_checkpointing = {Block}}}
      local _, net = fit("gpt2", 4, nil, more)
      print(rawget(net.net.transformer.h[1], "forward") == nil)
    ]])
  end)
end)
