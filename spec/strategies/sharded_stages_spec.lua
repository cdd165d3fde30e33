-- spec/strategies/sharded_stages_spec.lua: stages 2 and 3 of Sharded: gradients and parameters in
-- parts, one a rank.
-- tags: sampled, slow, third
local net = require "spec.strategies.sharded_net"
local turns = require "spec.turns"

local prints <const>, fails <const> = net.prints, net.fails
local BLOCKS <const> = net.BLOCKS

-- fn(options of Sharded as Lua) for stages 2 and 3 in `n` of their variants (1), or in all.
local function each_variant(fn, n)
  local variants = { "stage = 2", "stage = 3", "stage = 2, accumulate = 'whole'",
    "stage = 3, reshard_after_forward = false", "stage = 3, keep_below = 13" }
  for i, variant in ipairs(variants) do variants[i] = variant .. ", units = 1" end
  turns(variants, n or 1, fn)
end

describe("stages 2 and 3", function()
  it("train to the bits of DDP, on 2 and 3 ranks", function()
    each_variant(function(variant)
      turns({ 2, 3 }, 1, function(ranks)
        prints("0 0\n", ranks, BLOCKS .. ([[
          print(apart(lt.strategies.Sharded {%s}),
            apart(lt.strategies.Sharded {%s}, nil, {gradient_clip_val = 0.05}))
        ]]):format(variant, variant))
      end)
    end, 3)
  end)

  it("add up shards of the gradients of a window", function()
    each_variant(function(variant)
      prints("true\n", 2, BLOCKS .. ([[
        print(apart(lt.strategies.Sharded {%s}, nil, {accumulate_grad_batches = 4}) < 1e-6)
      ]]):format(variant))
    end)
  end)

  it("reduce gradients by ddp_comm_hook", function()
    turns({ 1, 2, 3 }, 1, function(stage)
      prints("0 true true\n", 2, BLOCKS .. ([[
        local count = 0
        local function hook(row)
          count = count + 1
          return lt.dist.all_reduce(row)
        end
        local function sharded(hook)
          return lt.strategies.Sharded {stage = %d, units = 1, ddp_comm_hook = hook}
        end
        local rough = apart(sharded "bf16")
        print(apart(sharded(hook)), count > 0, rough > 0 and rough < 0.1)
      ]]):format(stage))
    end)
  end)

  it("train where ranks run out of data, skip batches, and take other branches", function()
    each_variant(function(variant)
      prints("0\n", 3, BLOCKS .. ([[
        x = x:narrow(1, 1, 61)
        local Branches = Blocks:extend("Branches")
        function Branches:forward(x)
          x = self.first(x)
          for i, block in ipairs(self.blocks) do
            if x:sum():item() > 0 or i == 2 then x = x + block(x) + block(x * 2) end
          end
          return self.last(x)
        end
        function Branches:training_step(batch, i)
          if i == 1 and rank() == 1 then return nil end
          self(batch[1])
          return (self(batch[1]) - 1):square():mean()
        end
        print(apart(lt.strategies.Sharded {%s}, {class = Branches}))
      ]]):format(variant))
    end)
  end)

  it("go through collectives in backward, also of ranks without a loss", function()
    each_variant(function(variant)
      prints("true\n", 2, BLOCKS .. ([[
        local Contrast = Blocks:extend("Contrast")
        function Contrast:training_step(batch, i)
          local y = self(batch[1])
          local all = self:all_gather(y, {sync_grads = true, cat = true})
          if i == 1 and rank() == 1 then return nil end
          return (y - all:mean()):square():mean() + (self(batch[1] * 2) - 1):square():mean()
        end
        print(apart(lt.strategies.Sharded {%s}, {class = Contrast}) < 1e-6)
      ]]):format(variant))
    end)
  end)

  it("train where backward has collectives: all_gather, synchronized batch norm", function()
    for _, variant in ipairs { "stage = 2", "stage = 3", "stage = 3, replicas = 2" } do
      prints("true\n", 4, BLOCKS .. ([[
        local Gathers = Blocks:extend "Gathers"
        function Gathers:init(o)
          Blocks.init(self, o)
          self.norm = nn.BatchNorm1d(12)
        end
        function Gathers:forward(x)
          local y = self.norm(self.first(x))
          for i, block in ipairs(self.blocks) do
            if i == 2 or rank() == 1 then y = y + block(y) end
          end
          return self.last(y)
        end
        function Gathers:training_step(batch, i)
          local y = self(batch[1])
          local all = self:all_gather(y, {sync_grads = true, cat = true})
          local loss = (y - 1 - all:mean()):square():mean()
          if rank() < 2 and i == 1 then return {loss = loss, weight = rank()} end
          return loss
        end
        print(apart(lt.strategies.Sharded {units = 1, %s}, {class = Gathers},
          {sync_batchnorm = true, max_epochs = 3}) < 1e-5)
      ]]):format(variant))
    end
  end)

  it("train with checkpointed blocks, shared and frozen weights", function()
    each_variant(function(variant)
      prints("true\n", 2, BLOCKS .. ([[
        local Tied = Blocks:extend("Tied")
        function Tied:init(o)
          Blocks.init(self, {width = 6})
          self.blocks[3][1].weight = self.blocks[2][1].weight
          self.blocks[3][3] = self.blocks[1][3]
          self.blocks[2]:freeze()
          self.blocks[1][1].weight.requires_grad = false
        end
        function Tied:forward(x)
          x = lt.nn.functional.linear(x, self.first.weight)
          for _, block in ipairs(self.blocks) do
            x = x + lt.nn.utils.checkpoint(function(y) return block(y) end, x)
          end
          return self.last(x)
        end
        print(apart(lt.strategies.Sharded {%s}, {class = Tied}) < 1e-6)
      ]]):format(variant))
    end)
  end)

  it("validate in mid-fit and predict with the weights of the moment", function()
    each_variant(function(variant)
      prints("true true\n", 2, BLOCKS .. ([[
        local function values(strategy)
          lt.seed(1)
          local net = Blocks()
          local t = trainer {strategy = strategy, max_epochs = 2, val_check_interval = 3}
          t:fit(net, loader(), loader())
          local value = t.callback_metrics.val_loss
          return value, lt.cat(t:predict(net, loader()), 1),
            t:validate(net, loader(), {verbose = false})[1].val_loss
        end
        local a, b, c = values(lt.strategies.Sharded {%s})
        local d, e, f = values "ddp"
        print(a == d and c == f, lt.equal(b, e))
      ]]):format(variant))
    end)
  end)
end)

describe("stages 2 and 3 in manual optimization", function()
  it("take several optimizers, whose gradients are clipped", function()
    each_variant(function(variant)
      prints("true\n", 2, BLOCKS .. ([[
        local Three = Blocks:extend "Three"
        Three.automatic_optimization = false
        function Three:configure_optimizers()
          return {lt.optim.Adam(self.first:parameters(), {lr = 0.01}),
            lt.optim.SGD(self.blocks:parameters(), {lr = 0.05, momentum = 0.9}),
            lt.optim.AdamW(self.last:parameters(), {lr = 0.02})}
        end
        function Three:training_step(batch)
          for k, optimizer in ipairs(self:optimizers()) do
            self:zero_grad()
            self:manual_backward((self(batch[1]) - k):square():mean())
            self:clip_gradients(optimizer, 0.05)
            optimizer:step()
          end
        end
        print(apart(lt.strategies.Sharded {%s}, {class = Three}) < 1e-6)
      ]]):format(variant))
    end)
  end)
end)

describe("clip_grad_norm_ and clip_grad_value_ of gradients that are divided", function()
  it("name what clips them", function()
    for call, name in pairs { ["nn.clip_grad_norm_(self:parameters(), 1)"] = "clip_grad_norm_",
      ["nn.utils.clip_grad_value_(self:parameters(), 1)"] = "clip_grad_value_" } do
      for stage = 2, 3 do
        fails(2, name .. ": the gradients of these parameters are divided among the ranks "
          .. "%(strategies.Sharded, stages 2 and 3%): write gradient_clip_val in the Trainer, or "
          .. "self:clip_gradients%(optimizer, value%)", BLOCKS .. ([[
            function Blocks:on_before_optimizer_step() %s end
            fit({"sharded", stage = %d}, {class = Blocks})
          ]]):format(call, stage))
      end
    end
    prints("true\n", 2, BLOCKS .. [[
      local net = fit("fsdp", {class = Blocks}) -- and afterwards they are whole again
      net.first.weight.grad = lt.ones(12, 7)
      print(nn.clip_grad_norm_(net:parameters(), 1):item() > 9)
    ]])
  end)
end)

describe("activation_checkpointing", function()
  it("computes the same from less memory", function()
    each_variant(function(variant)
      prints("0\n", 2, BLOCKS .. ([[
        local calls = 0
        function nn.Tanh:forward(x)
          calls = calls + 1
          return x:tanh()
        end
        local most = apart(lt.strategies.Sharded {%s,
          activation_checkpointing = {nn.Sequential}})
        assert(calls == 3 * 18 * 3, calls) -- twice with checkpoints, once under DDP
        print(most)
      ]]):format(variant))
    end)
  end)
end)

describe("a checkpoint of stages 2 and 3 in mid-window", function()
  it("has the gradients that were added up, and resumes with another strategy", function()
    prints("true true true true\n", 2, BLOCKS .. [[
      local options = {accumulate_grad_batches = 4}
      local wanted = fit("ddp", {class = Blocks}, options):state_dict()
      local Cut = Blocks:extend("Cut")
      function Cut:on_train_batch_end(_, _, i)
        if i == 1 and self.current_epoch == 0 then self.trainer:save_checkpoint "cut" end
      end
      local results = {}
      for stage = 2, 3 do
        fit(lt.strategies.Sharded {units = 1, stage = stage}, {class = Cut}, options)
        for _, strategy in ipairs {lt.strategies.Sharded {units = 1, stage = stage}, "ddp"} do
          local got = fit(strategy, {class = Blocks}, options, {ckpt_path = "cut"}):state_dict()
          local most = 0
          for key, value in pairs(wanted) do
            most = math.max(most, (value - got[key]):abs():max():item())
          end
          results[#results + 1] = most < 1e-6
        end
      end
      print(table.unpack(results))
    ]])
  end)
end)

describe("stage 3", function()
  it("averages weights as DDP does", function()
    prints("0 0 0\n", 2, BLOCKS .. [[
      local function averaged(name, o)
        local nets = {}
        for i, strategy in ipairs {lt.strategies.Sharded {units = 1}, "ddp"} do
          local net = fit(strategy, {class = Blocks}, {max_epochs = 3,
            callbacks = {lt.callbacks[name](o)}})
          nets[i] = net:state_dict()
        end
        local most = 0
        for key, value in pairs(nets[1]) do
          most = math.max(most, (value - nets[2][key]):abs():max():item())
        end
        return most
      end
      print(averaged("EMAWeightAveraging", {decay = 0.9}), averaged("WeightAveraging"),
        averaged("StochasticWeightAveraging", {swa_lrs = 0.01, swa_epoch_start = 1}))
    ]])
  end)

  it("follows results in tables, whatever their fields are", function()
    prints("0\n", 2, BLOCKS .. [[
      local Block = lt.Module:extend("Block")
      function Block:init() self.l = nn.Linear(12, 12) end
      function Block:forward(o) return {h = self.l(o.h):tanh(), n = o.n + 1} end
      local Tables = Blocks:extend("Tables")
      function Tables:init(o)
        Blocks.init(self, o)
        self.blocks = nn.ModuleList {Block(), Block()}
      end
      function Tables:forward(x)
        local o = {h = self.first(x), n = 1}
        for _, block in ipairs(self.blocks) do o = block(o) end
        return self.last(o.h)
      end
      print(apart(lt.strategies.Sharded {units = {Block}}, {class = Tables}))
    ]])
  end)

  it("follows several results", function()
    prints("0\n", 2, BLOCKS .. [[
      local Block = lt.Module:extend("Block")
      function Block:init() self.l = nn.Linear(12, 12) end
      function Block:forward(x) return 2, self.l(x):tanh() end
      local Several = Blocks:extend("Several")
      function Several:init(o)
        Blocks.init(self, o)
        self.blocks = nn.ModuleList {Block(), Block()}
      end
      function Several:forward(x)
        x = self.first(x)
        for _, block in ipairs(self.blocks) do
          local n, y = block(x)
          x = x + n * y
        end
        return self.last(x)
      end
      print(apart(lt.strategies.Sharded {units = {Block}}, {class = Several}))
    ]])
  end)

  it("takes gradients of gradients where parameters stay, and says so where they do not", function()
    local penalized <const> = BLOCKS .. [[
      local Penalized = Blocks:extend("Penalized")
      function Penalized:training_step(batch)
        local x = batch[1]:clone():requires_grad_()
        local y = self(x)
        local slope = lt.grad(y:sum(), x, {create_graph = true})
        return (y - 1):square():mean() + slope:square():mean()
      end
    ]]
    prints("true\n", 2, penalized .. [[
      print(apart(lt.strategies.Sharded {units = 1, reshard_after_forward = false},
        {class = Penalized}) < 1e-6)
    ]])
    fails(2, "strategies.Sharded: create_graph: gradients of gradients need the parameters of "
      .. "unit blocks.2.2 after its backward: write reshard_after_forward = false", penalized .. [[
      fit(lt.strategies.Sharded {units = 1}, {class = Penalized})
    ]])
  end)

  it("has a part of the parameters on each rank between steps, and says so", function()
    prints("0.0 true\n", 2, BLOCKS .. [[
      local texts = {}
      function Blocks:on_train_batch_end()
        texts[1] = error_of(function() return self.blocks[1][1].weight:sum() end)
        local _ <close> = lt.no_grad()
        local _ <close> = self.trainer.strategy:gather_parameters()
        self.blocks[1][1].bias:fill_(0)
      end
      local net = fit(lt.strategies.Sharded {units = 1}, {class = Blocks})
      print(net.blocks[1][1].bias:abs():max():item(), texts[1]:find(
        "parameter 'blocks.0.0.weight' is sharded, and this rank has a part of it: use it in the "
        .. "forward of its module, in a method that lt.register_forward_method names, or within "
        .. "strategy:gather_parameters()", 1, true) ~= nil)
    ]])
  end)

  it("builds on the meta device what no rank has whole, with the weights of one rank", function()
    prints("true true\n", 4, [[
      local runtime = require "ltrain.c".runtime
      local Wide = lt.Module:extend("Wide")
      local is_meta, most
      function Wide:init(o) self.o = o or {} end
      function Wide:configure_model()
        local _ <close> = is_meta and lt.device "meta" or nil
        self.blocks = self.blocks or nn.Sequential()
        for i = #self.blocks + 1, 8 do self.blocks:append(nn.Linear(128, 128)) end
        self.norm = self.norm or nn.BatchNorm1d(128)
      end
      function Wide:training_step(batch)
        most = most or runtime.memory().peak_bytes
        return self.norm(self.blocks(batch[1])):square():mean()
      end
      function Wide:configure_optimizers() return lt.optim.Adam(self:parameters()) end
      x = lt.randn(16, 128)
      local function weights(strategy, meta)
        is_meta, most = meta, nil
        runtime.reset_peak_memory()
        return lt.hash(fit(strategy, {class = Wide}, {max_epochs = 1}):state_dict())
      end
      local before = runtime.memory().live_bytes
      local meta = weights(lt.strategies.Sharded {units = 1}, true)
      local unit = 128 * 128 * 4
      io.write(most - before < 8 * unit / 4 + 3 * unit and "true" or (most - before) / unit, " ")
      print(meta == weights "ddp" and meta == weights("ddp", true))
    ]])
  end)

  it("resumes on the meta device without the whole model or state on a rank", function()
    for _, kind in ipairs { "full", "sharded" } do
      prints("true true\n", 4, ([[
        local runtime = require "ltrain.c".runtime
        local Wide = lt.Module:extend("Wide")
        local most
        function Wide:configure_model()
          if self.blocks then return end
          local _ <close> = lt.device "meta"
          self.blocks = nn.Sequential()
          for i = 1, 16 do self.blocks:append(nn.Linear(256, 256)) end
        end
        function Wide:training_step(batch) return self.blocks(batch[1]):square():mean() end
        function Wide:configure_optimizers() return lt.optim.Adam(self:parameters()) end
        function Wide:on_fit_start() most = runtime.memory().peak_bytes end -- the weights are there
        x = lt.randn(16, 256)
        local function go(epochs, path)
          local net = Wide()
          lt.seed(3)
          local t = trainer {strategy = lt.strategies.Sharded {units = 1, state_dict_type = "%s"},
            max_epochs = epochs}
          t:fit(net, loader(), nil, {ckpt_path = path})
          return lt.hash(net:state_dict()), t
        end
        local wanted = go(2)
        select(2, go(1)):save_checkpoint "cut"
        collectgarbage()
        collectgarbage()
        runtime.reset_peak_memory()
        local before, unit = runtime.memory().live_bytes, 256 * 257 * 4
        local found = go(2, "cut")
        most = most - before
        -- a quarter of 16 units, and one
        print(found == wanted, most < 7 * unit or most / unit)
      ]]):format(kind))
    end
  end)

  it("copies a rank's part of a state once when it is loaded", function()
    prints("true true\n", 2, [[
      local runtime = require "ltrain.c".runtime
      local Wide, most, same = lt.Module:extend("Wide")
      function Wide:init()
        self.layers = nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 256))
      end
      function Wide:training_step(batch) return self.layers(batch[1]):square():mean() end
      function Wide:configure_optimizers() return lt.optim.Adam(self:parameters()) end
      function Wide:on_train_batch_end(_, _, index)
        if index ~= 1 then return end
        local strategy, optimizer = self.trainer.strategy, self.trainer.optimizers[1]
        local saved = lt.dist.broadcast(strategy:optimizer_state(optimizer))
        collectgarbage()
        collectgarbage()
        runtime.reset_peak_memory()
        local before = runtime.memory().live_bytes
        optimizer:load_state_dict(saved)
        most = runtime.memory().peak_bytes - before
        local again = lt.dist.broadcast(strategy:optimizer_state(optimizer))
        same = saved.state["layers.0.weight"].exp_avg:equal(
          again.state["layers.0.weight"].exp_avg)
      end
      x = lt.randn(16, 256)
      fit(lt.strategies.Sharded {stage = 1}, {class = Wide}, {max_epochs = 1})
      local part = 2 * 2 * 256 * 257 * 4 / 2 -- two moments of two layers, on two ranks
      print(same, most < 1.3 * part or most / part)
    ]])
  end)

  it("divides the memory of parameters, gradients and state", function()
    prints("true\n", 4, [[
      local Wide = lt.Module:extend("Wide")
      function Wide:init()
        self.blocks = nn.Sequential()
        for i = 1, 8 do self.blocks:append(nn.Linear(256, 256, {bias = false})) end
      end
      function Wide:training_step(batch) return self.blocks(batch[1]):square():mean() end
      function Wide:configure_optimizers() return lt.optim.Adam(self:parameters()) end
      local most = 0
      local runtime = require "ltrain.c".runtime
      function Wide:on_train_batch_start() runtime.reset_peak_memory() end
      function Wide:on_train_batch_end() most = math.max(most, runtime.memory().peak_bytes) end
      x = lt.randn(16, 256)
      local function peak(strategy)
        most = 0
        fit(strategy, {class = Wide}, {max_epochs = 1})
        return most
      end
      local unit = 256 * 256 * 4
      -- 16 bytes a parameter over 4 ranks, and two units with their gradients.
      local least, bytes = 8 * 4 * unit / 4, peak(lt.strategies.Sharded {units = 1})
      print(bytes > least and bytes < least + 5 * unit or bytes / unit)
    ]])
  end)

  it("ends the scope of precision with each forward", function()
    prints("f32\n", 2, [[
      local dtype
      function Net:configure_model() end
      function Net:on_train_batch_end() dtype = lt.matmul(lt.ones(2, 2), lt.ones(2, 2)).dtype end
      fit("fsdp", nil, {precision = "bf16-mixed", max_epochs = 1})
      print(dtype)
    ]])
  end)

  it("computes with new parameters after each step of manual optimization", function()
    prints("0\n", 2, BLOCKS .. [[
      local Manual = Blocks:extend("Manual")
      Manual.automatic_optimization = false
      function Manual:training_step(batch)
        local optimizer = self:optimizers()
        for k = 1, 2 do
          optimizer:zero_grad()
          self:manual_backward((self(batch[1]) - k):square():mean())
          optimizer:step()
        end
      end
      print(apart(lt.strategies.Sharded {units = 1}, {class = Manual}))
    ]])
  end)
end)

describe("a gradient that is not finite on one rank", function()
  it("stops all in each stage, and names the rank, the batch of the window and the operation",
    function()
      for _, variant in ipairs { "stage = 2", "stage = 2, accumulate = 'whole'", "stage = 3" } do
        for window, place in pairs { [1] = "epoch 0, batch 1, step 1): rank 1: the derivative",
          [3] = "epoch 0, batch 2, step 0): rank 1: in batch 1: the derivative" } do
          fails(2, "optimizer_step: the gradients of .* are not finite %("
            .. place:gsub("%p", "%%%0") .. " of sqrt at script.lua:%d+ made the "
            .. "first inf", BLOCKS .. ([[
              local Broken = Blocks:extend "Broken"
              function Broken:training_step(batch, i)
                local y = self(batch[1])
                local loss = y:square():mean()
                if i == 1 and rank() == 1 then loss = loss + (y * 0):sqrt():mean() end
                return loss
              end
              fit(lt.strategies.Sharded {%s}, {class = Broken}, {accumulate_grad_batches = %d})
            ]]):format(variant, window))
        end
      end
    end)
end)

describe("stages that divide what a callback reads", function()
  it("refuse it by name", function()
    for callback, reads in pairs { ["LayerMonitor()"] = "gradients",
      ["ModelPruning 'l1_unstructured'"] = "parameters" } do
      local name = callback:match "%a+"
      fails(2, "strategies.Sharded: the callback " .. name .. " reads whole " .. reads
        .. ", which stage 3 divides: remove it, or write strategy = 'zero1'", BLOCKS .. ([[
          fit("fsdp", {class = Blocks}, {callbacks = {lt.callbacks.%s}})
        ]]):format(callback))
    end
  end)
end)

describe("a run that failed under stage 3", function()
  it("leaves parameters that say so", function()
    prints("true\n", 2, BLOCKS .. [[
      local net = Blocks()
      function net:on_train_batch_end() error "as planned" end
      pcall(function()
        trainer {strategy = lt.strategies.Sharded {units = 1}, max_epochs = 1}:fit(net, loader())
      end)
      local message = error_of(function() return net.first.weight:sum() end)
      print(message:find("parameter 'first.weight' is incomplete: a run under strategies.Sharded "
        .. "failed", 1, true) ~= nil)
    ]])
  end)
end)

describe("stage 3 with precision = 'bf16-mixed'", function()
  -- The second is that of layers whose weights are [in, out].
  local FORWARDS <const> = { "self.l(x):tanh()",
    "nn.functional.linear(x, self.l.weight:transpose(1, 2)):tanh()" }

  it("trains to the bits of DDP", function()
    for _, forward in ipairs(FORWARDS) do
      prints("0 0\n", 2, BLOCKS .. ([[
        local Block = lt.Module:extend("Block")
        function Block:init() self.l = nn.Linear(12, 12) end
        function Block:forward(x) return (%s) end
        local Halves = Blocks:extend("Halves")
        function Halves:init(o)
          Blocks.init(self, o)
          self.blocks = nn.ModuleList {Block(), Block()}
        end
        function Halves:training_step(batch)
          self.blocks[1](self.first(batch[1]))
          return Blocks.training_step(self, batch)
        end
        local function differ(checkpointed)
          return apart(lt.strategies.Sharded {units = {Block},
            activation_checkpointing = checkpointed}, {class = Halves}, {precision = "bf16-mixed"})
        end
        print(differ(), differ {Block})
      ]]):format(forward))
    end
  end)

  it("keeps no bf16 copies of the weights for backward", function()
    for _, forward in ipairs(FORWARDS) do
      prints("true\n", 2, BLOCKS .. ([[
        local memory = require "ltrain.c".runtime.memory
        local Block = lt.Module:extend("Block")
        function Block:init() self.l = nn.Linear(256, 256) end
        function Block:forward(x) return (%s) end
        local Deep = Blocks:extend("Deep")
        function Deep:init(o)
          Blocks.init(self, o)
          self.first, self.last = nn.Linear(7, 256), nn.Linear(256, 1)
          self.blocks = nn.ModuleList()
          for i = 1, 24 do self.blocks:append(Block()) end
        end
        local most
        function Deep:training_step(batch)
          collectgarbage()
          local before = memory().live_bytes
          local loss = Blocks.training_step(self, batch)
          collectgarbage()
          most = most or memory().live_bytes - before
          return loss
        end
        fit(lt.strategies.Sharded {units = {Block}}, {class = Deep},
          {max_epochs = 1, precision = "bf16-mixed"})
        print(most < 24 * 256 * 256 * 2 / 2)
      ]]):format(forward))
    end
  end)
end)
