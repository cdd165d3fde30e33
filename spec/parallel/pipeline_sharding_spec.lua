-- spec/parallel/pipeline_sharding_spec.lua: pipelines whose ranks with the same stage divide the
-- state of its optimizers, and pipelines whose blocks are computed again, train as one process.
-- tags: slow
local net = require "spec.parallel.pipeline_net"

local prints <const> = net.prints

local SHARDED <const> = [[
local function sharded(o)
  local all = {sharding_stage = 1, stages = 2, split = {2}, microbatches = 2}
  for name, value in pairs(o or {}) do all[name] = value or nil end
  return all
end
]]

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

  it("has nothing to divide on one pipeline", function()
    prints("same\n", SHARDED .. "print(same(2, sharded()))")
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
    prints("true true true\n", SHARDED .. [[
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
    ]])
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

  it("refuses what divides gradients, and optimizers that need whole parameters", function()
    net.fails("strategies.Pipeline: sharding_stage must be 0 or 1, as microbatches add up whole "
      .. "gradients: got 2", "lt.strategies.Pipeline {sharding_stage = 2}")
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
