-- spec/strategies/sharded_replicas_spec.lua: replicas of Sharded: groups of ranks of which each has
-- all shards.
-- tags: slow, third
local net = require "spec.strategies.sharded_net"
local over = require "spec.dist.over"

local prints <const>, fails <const>, BLOCKS <const> = net.prints, net.fails, net.BLOCKS

-- A strategy of options as Lua, and one under which elements of the state are counted.
local SCRIPT <const> = BLOCKS .. [[
local function elements(t)
  local n = 0
  for _, slots in pairs(t.optimizers[1].state) do n = n + slots.exp_avg:numel() end
  return n
end
]]

describe("two replicas of two ranks", function()
  it("train to the bits of DDP on 4 ranks, in each stage", function()
    for _, variant in ipairs { "stage = 1", "stage = 2", "stage = 3",
      "stage = 3, reshard_after_forward = false", "stage = 2, accumulate = 'whole'" } do
      prints("0 0 true\n", 4, SCRIPT .. ([[
        local function strategy()
          return lt.strategies.Sharded {replicas = 2, units = 1, %s}
        end
        print(apart(strategy()), apart(strategy(), nil, {gradient_clip_val = 0.05}),
          apart(strategy(), nil, {accumulate_grad_batches = 4}) < 1e-6)
      ]]):format(variant))
    end
  end)

  it("have the state in halves, and ranks that take other branches", function()
    prints("0 true true\n", 4, SCRIPT .. [[
      x = x:narrow(1, 1, 61)
      local total, most, least
      local Branches = Blocks:extend("Branches")
      function Branches:forward(x)
        x = self.first(x)
        for i, block in ipairs(self.blocks) do
          if rank() ~= 3 or i == 2 then x = x + block(x) end
        end
        return self.last(x)
      end
      function Branches:training_step(batch, i)
        if i == 1 and rank() == 1 then return nil end
        return (self(batch[1]) - 1):square():mean()
      end
      function Branches:on_train_batch_end()
        local n = elements(self.trainer)
        total = 0
        for _, p in ipairs(self:parameters()) do total = total + p:numel() end
        most = lt.dist.all_reduce(n, {op = "max"})
      end
      local strategy = lt.strategies.Sharded {replicas = 2, units = 1}
      local net = fit(strategy, {class = Branches})
      local used = total - 3 -- of the unused parameter there is no state
      local half = most
      local difference = apart(lt.strategies.Sharded {replicas = 2, units = 1},
        {class = Branches})
      print(difference, half >= used / 2, half <= used / 2 + 20)
    ]])
  end)

  it("are built from the meta device, and validate in mid-fit", function()
    prints("true true\n", 4, SCRIPT .. [[
      local Meta = Blocks:extend("Meta")
      function Meta:init(o) self.o = o end
      function Meta:configure_model()
        if self.first then return end
        local _ <close> = lt.device "meta"
        Blocks.init(self, self.o)
      end
      local function values(strategy)
        lt.seed(1)
        local net = Meta()
        local t = trainer {strategy = strategy, max_epochs = 2, val_check_interval = 3}
        t:fit(net, loader(), loader())
        return lt.hash(net:state_dict()), t.callback_metrics.val_loss
      end
      local a, b = values(lt.strategies.Sharded {replicas = 2, units = 1})
      local d, e = values "ddp"
      print(a == d, b == e)
    ]])
  end)
end)

describe("checkpoints of replicas", function()
  it("resume on other numbers of ranks and replicas, full and sharded", function()
    prints("true true true true\n", nil, SCRIPT .. [[
      local function go(ranks, strategy, steps, path)
        lt.seed(1)
        local net = Blocks()
        local t = trainer {strategy = strategy, devices = ranks, max_epochs = 3, max_steps = steps}
        t:fit(net, lt.data.DataLoader(lt.data.TensorDataset(x), {global_batch_size = 12}), nil,
          {ckpt_path = path})
        return net:state_dict(), t
      end
      local function hybrid(replicas, kind)
        return lt.strategies.Sharded {replicas = replicas, units = 1, state_dict_type = kind}
      end
      local wanted = go(1, "single_device", 9)
      local results = {}
      for _, kind in ipairs {"full", "sharded"} do
        select(2, go(4, hybrid(2, kind), 3)):save_checkpoint "a.ckpt"
        select(2, go(6, hybrid(3, kind), 6, "a.ckpt")):save_checkpoint "b.ckpt"
        for _, last in ipairs {{2, hybrid(1, kind)}, {1, "single_device"}} do
          local most = 0
          for name, value in pairs((go(last[1], last[2], 9, "b.ckpt"))) do
            most = math.max(most, (value - wanted[name]):abs():max():item())
          end
          results[#results + 1] = most < 1e-6
        end
        os.execute "rm -rf a.ckpt b.ckpt"
      end
      print(table.unpack(results))
    ]])
  end)

  it("have the gradients of an incomplete window once", function()
    prints("true true\n", 4, SCRIPT .. [[
      local options = {accumulate_grad_batches = 3}
      local wanted = fit("ddp", {class = Blocks}, options):state_dict()
      local Cut = Blocks:extend("Cut")
      function Cut:on_train_batch_end(_, _, i)
        if i == 1 and self.current_epoch == 0 then self.trainer:save_checkpoint "cut" end
      end
      local results = {}
      fit(lt.strategies.Sharded {units = 1, replicas = 2}, {class = Cut}, options)
      for i, strategy in ipairs {lt.strategies.Sharded {units = 1, replicas = 2}, "ddp"} do
        local got = fit(strategy, {class = Blocks}, options, {ckpt_path = "cut"}):state_dict()
        local most = 0
        for key, value in pairs(wanted) do
          most = math.max(most, (value - got[key]):abs():max():item())
        end
        results[i] = most < 1e-6
      end
      print(table.unpack(results))
    ]])
  end)
end)

describe("replicas", function()
  it("must divide the number of ranks, and fit the device_mesh", function()
    for words, made in pairs {
      ["strategies.Sharded: replicas = 3 must divide the number of ranks: got 4"] =
        "Sharded {replicas = 3}",
      ["strategies.FSDPStrategy: device_mesh = {2, 4} is of 8 ranks: got 4"] =
        "FSDPStrategy {sharding_strategy = 'HYBRID_SHARD', device_mesh = {2, 4}}",
    } do
      fails(4, words, "fit(lt.strategies." .. made .. ")")
    end
  end)

  over({ "mpi", "two hosts" }, "of machines are the ranks of each", function(way)
    local hosts = way == "mpi" and 1 or 2
    assert.equal("true\ttrue\n", (net.over(way, 4, SCRIPT .. ([[
      local n, total
      local Counted = Blocks:extend "Counted"
      function Counted:on_train_batch_end()
        n, total = elements(self.trainer), 0
        for _, p in ipairs(self:parameters()) do total = total + p:numel() end
      end
      local function strategy()
        return lt.strategies.FSDPStrategy {units = 1, sharding_strategy = "HYBRID_SHARD"}
      end
      local most = apart(strategy(), {class = Counted})
      fit(strategy(), {class = Counted})
      print(most < 1e-6, math.abs(n - (total - 3) / 4 * %d) < 20)
    ]]):format(hosts))))
  end)

  it("of machines are one where there is one", function()
    prints("0 0\n", 2, SCRIPT .. [[
      local fsdp = lt.strategies.FSDPStrategy
      print(apart(fsdp {sharding_strategy = "HYBRID_SHARD"}),
        apart(fsdp {sharding_strategy = "_HYBRID_SHARD_ZERO2", device_mesh = {2, 1}}))
    ]])
  end)
end)
