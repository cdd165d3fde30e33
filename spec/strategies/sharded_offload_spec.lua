-- spec/strategies/sharded_offload_spec.lua: Sharded{offload = ...}: shards, their gradients and the
-- state of optimizers on the host, beside DDP.
-- tags: slow
local net = require "spec.strategies.sharded_net"

local prints <const> = net.prints

-- Ranks that compute on devices of their own, in f64.
local ON_DEVICES <const> = net.BLOCKS .. [[
local device = {device = function(_, rank) return "fake:" .. rank end}
local function with(options)
  local all = {accelerator = device, precision = "64-true"}
  for name, value in pairs(options or {}) do all[name] = value end
  return all
end
local function close(strategy, o, options) return apart(strategy, o, with(options)) < 1e-9 end
]]

-- fn(options of Sharded as Lua), for the stages in their variants.
local function each_variant(fn)
  for _, variant in ipairs { "stage = 1", "stage = 2", "stage = 2, accumulate = 'whole'",
    "stage = 3", "stage = 3, keep_below = 13" } do
    fn(variant .. ", units = 1, offload = 'cpu'")
  end
end

describe("offload = 'cpu'", function()
  it("trains to what DDP gives, with shards on the host and products on devices", function()
    each_variant(function(variant)
      prints("true true true\n", 2, ON_DEVICES .. ([[
        local strategy = lt.strategies.Sharded {%s}
        function Blocks:on_train_batch_end()
          for _, optimizer in ipairs(self.trainer.optimizers) do
            for tensor, slots in pairs(optimizer.state) do
              if self.trainer.strategy ~= strategy then break end
              assert(tensor.device == "cpu" and slots.exp_avg.device == "cpu", tensor.device)
            end
          end
          assert(self.first.weight.device == "fake:" .. rank())
        end
        print(close(strategy), close(strategy, nil, {gradient_clip_val = 0.05}),
          close(strategy, nil, {accumulate_grad_batches = 4}))
      ]]):format(variant))
    end)
  end)
end)

describe("a checkpoint of shards on the host", function()
  it("resumes in mid-window, in one file or in parts, also under another strategy", function()
    for stage = 2, 3 do
      prints("true true true true\n", 2, ON_DEVICES .. ([[
        local function sharded(kind)
          return lt.strategies.Sharded {stage = %d, units = 1, offload = "cpu",
            state_dict_type = kind}
        end
        local function options() return with {accumulate_grad_batches = 4} end
        local wanted = fit("ddp", {class = Blocks}, options()):state_dict()
        local Cut = Blocks:extend("Cut")
        function Cut:on_train_batch_end(_, _, i)
          if i == 1 and self.current_epoch == 1 then self.trainer:save_checkpoint "cut" end
        end
        local results = {}
        for _, kind in ipairs {"full", "sharded"} do
          fit(sharded(kind), {class = Cut}, options())
          for _, strategy in ipairs {sharded(), "ddp"} do
            local got = fit(strategy, {class = Blocks}, options(), {ckpt_path = "cut"}):state_dict()
            local most = 0
            for key, value in pairs(wanted) do
              most = math.max(most, (value - got[key]):abs():max():item())
            end
            results[#results + 1] = most < 1e-9
          end
          os.execute "rm -rf cut"
        end
        print(table.unpack(results))
      ]]):format(stage))
    end
  end)

  it("is no more needed by a fit that goes on with the optimizer of another", function()
    prints("0\n", 2, ON_DEVICES .. [[
      local function twice(strategy)
        lt.seed(1)
        local net = Blocks()
        local optimizer = lt.optim.Adam(net:parameters(), {lr = 0.01})
        function net:configure_optimizers() return optimizer end
        for _ = 1, 2 do
          trainer(with {strategy = strategy(), max_epochs = 1}):fit(net, loader())
        end
        return net:state_dict()
      end
      local a = twice(function() return lt.strategies.Sharded {units = 1, offload = "cpu"} end)
      local b, most = twice(function() return "ddp" end), 0
      for key, value in pairs(a) do most = math.max(most, (value - b[key]):abs():max():item()) end
      print(most)
    ]])
  end)
end)

describe("offload", function()
  it("says what it can be", function()
    net.fails(2, "strategies.Sharded: offload must be 'cpu': got 'gpu'",
      "lt.strategies.Sharded {offload = 'gpu'}")
  end)
end)
