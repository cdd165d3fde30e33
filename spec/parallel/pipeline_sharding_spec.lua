-- spec/parallel/pipeline_sharding_spec.lua: pipelines whose ranks with the same stage shard it, and
-- pipelines whose blocks are computed again, train as one process.
-- tags: slow, third
local net = require "spec.parallel.pipeline_net"

local prints <const> = net.prints

local SHARDED <const> = [[
local function sharded(o)
  local all = {sharding_stage = 1, stages = 2, split = {2}, microbatches = 2}
  for name, value in pairs(o or {}) do all[name] = value or nil end
  return all
end
]]

local RESUMES <const> = [[
  local wanted, w = fit("single_device", 1)
  local function cut(strategy, ranks, path)
    function Chain:on_train_batch_end(_, _, i)
      if i == 1 and self.current_epoch == 1 then self.trainer:save_checkpoint(path) end
    end
    fit(strategy, ranks)
    Chain.on_train_batch_end = nil
  end
  local function resumed(strategy, ranks, path)
    local a, t = fit(strategy, ranks, nil, nil, {ckpt_path = path})
    return is_equal(wanted, w, a, t)
  end
  cut(pipeline(sharded {state_dict_type = "sharded"}), 4, "parts")
  cut("single_device", 1, "whole")
  print(resumed("single_device", 1, "parts"), resumed(pipeline(sharded {split = {3}}), 4,
    "parts"), resumed(pipeline(sharded {split = false}), 4, "whole"))
]]

for stage = 2, 3 do
  describe(("sharding_stage = %d of a pipeline"):format(stage), function()
    local function sharded(script)
      return SHARDED:gsub("sharding_stage = 1", "sharding_stage = " .. stage) .. script
    end

    it("trains as one process, in each schedule, with a shared matrix and clipping", function()
      prints("same same same same\n", sharded [[
        local clip = {gradient_clip_val = 0.05}
        print(same(4, sharded {units = 1}, nil, clip),
          same(4, sharded {units = 1, schedule = "gpipe"}, nil, clip),
          same(4, sharded {units = 1, schedule = "interleaved", split = {1, 2, 3}}, nil, clip),
          same(4, sharded {units = 1, schedule = "zero_bubble"}, nil, clip))
      ]])
    end)

    it("does so where stages are cut by time, with accumulated gradients, of shards and whole",
      function()
        prints("same same same\n", sharded [[
          local window = {accumulate_grad_batches = 2}
          print(same(4, sharded {split = false, units = 1}),
            same(4, sharded {split = false, units = 1}, nil, window),
            same(4, sharded {units = 1, accumulate = "whole"}, nil, window))
        ]])
      end)

    it("does so with dropout, recomputed blocks, replicas, on the host, and a short last batch",
      function()
        prints("same same same same same\n", sharded [[
          local again = function(_, name) return name:find "^blocks%.%d$" end
          local o = {list = true, dropout = 0.25}
          local one = pipeline {microbatches = 4}
          local all = {units = 1, activation_checkpointing = again, microbatches = 2}
          print(same(4, sharded(all)),
            same(4, sharded {units = 1, data_parallel_size = 1, stages = 4, split = {1, 2, 3},
              microbatches = 4}, o, nil, one),
            same(8, sharded {units = 1, replicas = 2}),
            same(4, sharded {units = 1, offload = "cpu", schedule = "zero_bubble"}),
            (function() -- the last of 3 batches has a sample for one of two pipelines
              local few = x:narrow(1, 1, 17)
              function loader()
                return lt.data.DataLoader(lt.data.TensorDataset(few), {global_batch_size = 8})
              end
              return same(4, sharded {units = 1, schedule = "zero_bubble"})
            end)())
        ]])
      end)

    it("resumes from its checkpoints under other strategies, and from theirs", function()
      prints("true true true\n", sharded(RESUMES))
    end)
  end)
end

describe("sharding_stage = 2 of a pipeline", function()
  it("leaves a rank the gradients of its shards, and those of what several stages have", function()
    prints("embed.weight: true\nblocks: false\n", SHARDED .. [[
      local text
      function Chain:training_step(batch)
        local weight = self.blocks[1][1].weight
        if self.trainer.global_step == 1 and text == nil then
          text = "" -- the second microbatch: the first has run backward on one stage
        elseif text == "" then
          text = ("embed.weight: %s\nblocks: %s"):format(self.embed.weight.grad ~= nil,
            weight.grad ~= nil)
        end
        return (self(batch[1]) - 1):square():mean()
      end
      fit(pipeline(sharded {sharding_stage = 2, units = 1, stages = 1, data_parallel_size = 2,
        split = {}}), 2, nil, {max_epochs = 1, limit_val_batches = 0})
      print(text)
    ]])
  end)
end)

describe("sharding_stage = 3 of a pipeline", function()
  it("has the blocks of a stage one at a time, in forward and in backward", function()
    prints("here gone\ngone gone\n", SHARDED .. [[
      local first, between = {}, nil
      local function seen(weight) return (pcall(weight.sum, weight)) and "here" or "gone" end
      function Chain:forward(x)
        local h, blocks = self.embed(x), self.blocks
        for i, block in ipairs(blocks) do
          h = block(h)
          if i == 1 and self.training and h.requires_grad and #first == 0 then
            -- Backward of block 3 is over: other microbatches are under way.
            h:register_hook(function()
              first[1], first[2] = seen(blocks[1][1].weight), seen(blocks[3][1].weight)
            end)
          end
        end
        return self.head(h):matmul(self.embed.weight)
      end
      function Chain:on_train_batch_end()
        between = seen(self.blocks[1][1].weight) .. " " .. seen(self.blocks[2][1].weight)
      end
      fit(pipeline(sharded {sharding_stage = 3, units = 1, split = {3}, microbatches = 4}), 4,
        {list = true}, {max_epochs = 1, limit_val_batches = 0, limit_train_batches = 2})
      print(table.concat(first, " "))
      print(between)
    ]])
  end)
end)

describe("sharding_stage = 1 of a pipeline", function()
  it("trains as one process, in each schedule, with a shared matrix and clipping", function()
    prints("same same same same\n", SHARDED .. [[
      local clip = {gradient_clip_val = 0.05}
      print(same(4, sharded(), nil, clip), same(4, sharded {schedule = "gpipe"}, nil, clip),
        same(4, sharded {schedule = "interleaved", split = {1, 2, 3}}, nil, clip),
        same(4, sharded {schedule = "zero_bubble"}, nil, clip))
    ]])
  end)

  it("does so where stages are cut by time, and with accumulated gradients", function()
    prints("same same\n", SHARDED .. [[
      print(same(4, sharded {split = false}), same(4, sharded {split = false}, nil,
        {accumulate_grad_batches = 2}))
    ]])
  end)

  it("gives each rank half of the state of its stage", function()
    prints("true true\n", SHARDED .. [[
      local state
      function Chain:on_train_batch_end()
        state = 0
        for _, slots in pairs(self.trainer.optimizers[1].state) do
          state = state + slots.exp_avg:numel()
        end
      end
      function Chain:on_before_optimizer_step()
        self.stepped = 0
        for _, p in ipairs(self:parameters()) do
          if p.grad then self.stepped = self.stepped + p:numel() end
        end
      end
      local function share(o)
        local a = fit(pipeline(o), 4)
        return state / a.stepped
      end
      print(math.abs(share(sharded()) - 0.5) < 0.02, share(sharded {sharding_stage = 0}) == 1)
    ]])
  end)

  it("has nothing to divide on one pipeline, and all of a single stage", function()
    prints("same\nsame\nsame\nsame\n", SHARDED .. [[
      print(same(2, sharded()))
      for stage = 1, 3 do
        print(same(2, sharded {stages = 1, split = {}, sharding_stage = stage, units = 1}))
      end
    ]])
  end)

  it("steps f32 shards of parameters in 16 bits", function()
    prints("true bf16\n", SHARDED .. [[
      local Small = Chain:extend "Small"
      local dtype
      function Small:training_step(batch)
        return self(batch[1]):mean() * 0 + self.head.weight:sum()
      end
      function Small:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 4e-4}) end
      function Small:on_train_end() dtype = self.head.weight.dtype end
      lt.seed(1)
      local before = Small().head.weight:to "bf16":to "f32"
      local got = fit(pipeline(sharded()), 4, {class = Small}, {precision = "bf16-true"})
      local by = (before - got.head.weight:to "f32"):mean():item() / (10 * 4e-4)
      print(by > 0.8 and by < 1.2 or by, dtype)
    ]])
  end)

  it("resumes from its checkpoints under other strategies, and from theirs", function()
    prints("true true true\n", SHARDED .. RESUMES)
  end)

  it("loses its state with a fit that fails, and says so", function()
    net.fails("optim.AdamW: its state is incomplete: a fit under strategies.Pipeline failed",
      SHARDED .. [[
        local net, optimizer = Chain(), nil
        function net:configure_optimizers()
          optimizer = lt.optim.AdamW(self:parameters())
          return optimizer
        end
        function net:on_train_batch_end(_, _, i) if i == 1 then error "ended" end end
        lt.dist.launch(4, function()
          pcall(function()
            trainer {strategy = pipeline(sharded()), devices = 4, max_epochs = 1}:fit(net, loader())
          end)
          optimizer:state_dict()
        end)
      ]])
  end)

  it("refuses other stages, and optimizers that need whole parameters", function()
    net.fails("strategies.Pipeline: sharding_stage must be 0, 1, 2 or 3: got 4",
      "lt.strategies.Pipeline {sharding_stage = 4}")
    net.fails("strategies.Pipeline: .*Adafactor", SHARDED .. [[
      function Chain:configure_optimizers() return lt.optim.Adafactor(self:parameters()) end
      fit(pipeline(sharded()), 4)
    ]])
  end)
end)

describe("activation_checkpointing of a pipeline", function()
  it("trains as one process, in each schedule", function()
    prints("same same same same\n", [[
      local function again(o)
        o.stages, o.split = 2, o.split or {2}
        o.activation_checkpointing = function(_, name) return name:find "^blocks%.%d$" end
        return o
      end
      local o = {dropout = 0.25}
      local one = pipeline()
      print(same(2, again {}, o, nil, one), same(2, again {schedule = "gpipe"}, o, nil, one),
        same(2, again {schedule = "interleaved", split = {1, 2, 3}}, o, nil, one),
        same(4, again {schedule = "zero_bubble", sharding_stage = 1, microbatches = 2}, {}))
    ]])
  end)
end)
