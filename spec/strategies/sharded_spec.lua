-- spec/strategies/sharded_spec.lua: Sharded: the state of a fit in parts, one a rank.
-- tags: slow
local trained = require "spec.dist.trained"

-- Sizes that nothing divides, a parameter that nobody uses, two groups.
local NET <const> = [[
local nn = lt.nn
local rank = lt.dist.rank
local Net = lt.Module:extend("Net")
function Net:init(o)
  self.o = o or {}
  self.a, self.b, self.c = nn.Linear(7, 13), nn.Linear(13, 5), nn.Linear(5, 1)
  self.unused = lt.parameter(lt.ones(3))
end
function Net:forward(x)
  local h = self.a(x):tanh()
  local y = self.c(self.b(h):tanh())
  return y
end
function Net:training_step(batch) return (self(batch[1]) - 1):square():mean() end
function Net:configure_optimizers()
  local b, c = self.b, self.c
  return lt.optim[self.o.optimizer or "Adam"]({{params = self.a:parameters()},
    {params = {b.weight, b.bias, c.weight, c.bias, self.unused}, lr = 0.02, weight_decay = 0.1}},
    {lr = 0.01, momentum = self.o.momentum})
end
lt.seed(5)
local x = lt.randn(72, 7)
local function loader(o)
  local all = {batch_size = 4}
  for name, value in pairs(o or {}) do all[name] = value end
  return lt.data.DataLoader(lt.data.TensorDataset(x), all)
end
-- A net that was fitted: options of the net, of the Trainer, of fit, of the loader.
local function fit(strategy, o, options, fit_options, loader_options)
  lt.seed(1)
  local net, all = (o and o.class or Net)(o), {strategy = strategy, max_epochs = 2}
  for name, value in pairs(options or {}) do all[name] = value end
  local t = trainer(all)
  t:fit(net, loader(loader_options), nil, fit_options)
  return net, t
end
-- Weights, and what the optimizers keep, as one text.
local function bits(net, t)
  local parts = {lt.hash(net:state_dict())}
  for i, optimizer in ipairs(t.optimizers) do parts[i + 1] = lt.hash(optimizer:state_dict()) end
  return table.concat(parts, " ")
end
local function same(o, options)
  local wanted, got = bits(fit("ddp", o, options)), bits(fit("zero1", o, options))
  return wanted == got and "same" or "other"
end
-- Bytes that the optimizers of a Trainer hold here.
local SIZE = {f64 = 8, f32 = 4}
local function held(t)
  local bytes = 0
  for _, optimizer in ipairs(t.optimizers) do
    for _, slots in pairs(optimizer.state) do
      for _, value in pairs(slots) do
        if lt.is_tensor(value) then bytes = bytes + value:numel() * SIZE[value.dtype] end
      end
    end
  end
  return bytes
end
local function error_of(fn, ...)
  local ok, message = pcall(fn, ...)
  assert(not ok, "no error")
  return tostring(message)
end
]]

local scripts <const> = trained.with(NET)

local function prints(wanted, n, script)
  local out, err = scripts.output(n, script)
  assert.equal(wanted, (out:gsub("\t", " ")))
  return err
end

local function fails(n, words, script)
  local status, _, err = scripts.run(n, script)
  assert.equal(1, status, err)
  assert.matches(words, err)
  return err
end

describe("stage 1 trains to the bits of DDP", function()
  it("on 3 ranks with odd sizes, two groups, clipping and accumulation", function()
    prints("same same same same same\n", 3, [[
      print(same(), same {optimizer = "AdamW"}, same(nil, {gradient_clip_val = 0.05}),
        same(nil, {accumulate_grad_batches = 4}),
        same(nil, {gradient_clip_val = 0.01, gradient_clip_algorithm = "value"}))
    ]])
  end)

  it("with the other optimizers of single elements", function()
    prints("same same same same\n", 2, [[
      print(same {optimizer = "RMSprop"}, same {optimizer = "NAdam"}, same {optimizer = "Lion"},
        same {optimizer = "Adagrad"})
    ]])
  end)

  it("with momentum, and with an optimizer that keeps nothing", function()
    prints("same same\n", 2, [[
      Net.configure_optimizers = function(self)
        return lt.optim.SGD(self:parameters(), {lr = 0.1, momentum = self.o.momentum})
      end
      print(same {momentum = 0.9}, same {momentum = 0})
    ]])
  end)

  it("in buckets of any size, and in f64", function()
    prints("same same same\n", 3, [[
      local wanted = bits(fit "ddp")
      for _, mb in ipairs {1e-5, 3e-4} do
        local got = bits(fit({"zero1", bucket_cap_mb = mb}))
        io.write(got == wanted and "same " or "other ")
      end
      function Net:configure_model() self:to "f64" end
      function Net:training_step(batch) return (self(batch[1]:to "f64") - 1):square():mean() end
      print(same(nil, {gradient_clip_val = 1000}))
    ]])
  end)

  it("where gradients are missing on some ranks", function()
    prints("same same\n", 3, [[
      -- Rank 0 leaves b's weight out, rank 1 gives a batch no loss, all leave the bias out.
      function Net:training_step(batch, i)
        if rank() == 1 and i % 2 == 0 then return nil end
        local h = self.a(batch[1]):tanh()
        local weight = rank() == 0 and self.b.weight:detach() or self.b.weight
        return (self.c((h:matmul(weight:t())):tanh()) - 1):square():mean()
      end
      print(same(), same(nil, {accumulate_grad_batches = 3}))
    ]])
  end)

  it("with frozen parameters that are unfrozen, and a group that comes later", function()
    prints("same same\n", 3, [[
      function Net:on_train_epoch_start()
        self.a.weight.requires_grad = self.current_epoch == 1
      end
      io.write(same(), " ")
      function Net:configure_optimizers() return lt.optim.Adam(self.b:parameters(), {lr = 0.01}) end
      function Net:on_train_epoch_start()
        if self.current_epoch == 1 then
          self:optimizers():add_param_group {params = self.a:parameters(), lr = 0.03}
        end
      end
      print(same())
    ]])
  end)

  it("with more ranks than elements of a parameter, or than parameters", function()
    prints("same\n", 4, [[
      local One = Net:extend("One")
      function One:init()
        self.w, self.s = lt.parameter(lt.ones(1)), lt.parameter(lt.tensor(2.0))
      end
      function One:training_step(batch) return (batch[1] * self.w + self.s):square():mean() end
      function One:configure_optimizers() return lt.optim.Adam({self.w, self.s}) end
      print(same {class = One})
    ]])
  end)

  it("with an optimizer that has a state, and another in its place in mid-fit", function()
    prints("true\n", 2, [[
      local function texts(strategy)
        local net, first, second = nil, nil, nil
        local Own = Net:extend("Own")
        function Own:configure_optimizers()
          first = first or lt.optim.Adam(self:parameters(), {lr = 0.01})
          return first
        end
        lt.seed(1)
        net = Own()
        for round = 1, 2 do
          function net:on_train_batch_start(_, i)
            if round == 2 and i == 3 then
              second = lt.optim.SGD(self:parameters(), {lr = 0.01, momentum = 0.9})
              self.trainer.optimizers = {second}
            end
          end
          trainer({strategy = strategy}):fit(net, loader())
        end
        return bits(net, {optimizers = {first, second}})
      end
      print(texts "ddp" == texts "zero1")
    ]])
  end)

  it("on 1 rank", function()
    prints("same\n", 1, [[ print(same(nil, {gradient_clip_val = 0.05})) ]])
  end)

  it("under mpirun", function()
    local missing = require "ltrain.clusters.mpirun".missing()
    if missing then
      pending(missing)
      return
    end
    assert.equal("same\n", (scripts.over("mpi", 2, [[
      print(same(nil, {gradient_clip_val = 0.05}))
    ]])))
  end)

  it("where ranks run out of data", function()
    prints("same\n", 3, [[
      x = x:narrow(1, 1, 67) -- the last step has samples for one rank
      print(same(nil, {gradient_clip_val = 0.05}))
    ]])
  end)

  it("in deterministic = 'world'", function()
    prints("same\n", 2, [[
      function Net:configure_model() self:to "f64" end
      function Net:training_step(batch) return (self(batch[1]:to "f64") - 1):square():mean() end
      print(same(nil, {deterministic = "world", gradient_clip_val = 0.05}))
    ]])
  end)

  it("in manual optimization with two optimizers", function()
    prints("same\n", 2, [[
      Net.automatic_optimization = false
      function Net:configure_optimizers()
        return {lt.optim.Adam(self.a:parameters(), {lr = 0.01}),
          lt.optim.SGD(self.b:parameters(), {lr = 0.1, momentum = 0.9})}
      end
      function Net:training_step(batch, i)
        local first, second = table.unpack(self:optimizers())
        first:zero_grad()
        self:manual_backward((self(batch[1]) - 1):square():mean())
        self:clip_gradients(first, 0.05)
        first:step()
        if i % 2 == 0 then return end
        second:zero_grad()
        self:manual_backward((self(batch[1]) + 1):square():mean())
        second:step()
      end
      print(same())
    ]])
  end)
end)

-- Nets of blocks, and what a fit of one gives beside DDP's.
local BLOCKS <const> = [[
local Blocks = lt.Module:extend("Blocks")
function Blocks:init(o)
  self.o = o or {}
  self.first, self.last = nn.Linear(7, 12), nn.Linear(12, 1)
  self.blocks = nn.ModuleList()
  for i = 1, 3 do
    local n = o and o.width or 5 + i
    self.blocks:append(nn.Sequential(nn.Linear(12, n), nn.Tanh(), nn.Linear(n, 12)))
  end
  self.unused = lt.parameter(lt.ones(3))
end
function Blocks:forward(x)
  x = self.first(x)
  for _, block in ipairs(self.blocks) do x = x + block(x) end
  return self.last(x)
end
function Blocks:training_step(batch) return (self(batch[1]) - 1):square():mean() end
function Blocks:validation_step(batch) self:log("val_loss", self(batch[1]):square():mean()) end
function Blocks:predict_step(batch) return self(batch[1]) end
function Blocks:configure_optimizers()
  return lt.optim.Adam(self:parameters(), {lr = 0.01, weight_decay = 0.1})
end
-- The largest difference of weights from those of a fit under DDP, and of the optimizer's state.
local function apart(strategy, o, options)
  o = o or {}
  o.class = o.class or Blocks
  local net, t = fit(strategy, o, options)
  local ddp, d = fit("ddp", o, options)
  local most = 0
  local function compare(a, b)
    for key, value in pairs(a) do
      if lt.is_tensor(value) then most = math.max(most, (value - b[key]):abs():max():item())
      elseif type(value) == "table" then compare(value, b[key]) end
    end
  end
  compare(net:state_dict(), ddp:state_dict())
  compare(t.optimizers[1]:state_dict().state, d.optimizers[1]:state_dict().state)
  return most
end
]]

-- fn(options of Sharded as Lua) for stages 2 and 3 in their variants.
local function each_variant(fn)
  for _, variant in ipairs { "stage = 2", "stage = 2, accumulate = 'whole'", "stage = 3",
    "stage = 3, reshard_after_forward = false", "stage = 3, keep_below = 13" } do
    fn(variant .. ", units = 1")
  end
end

describe("stages 2 and 3", function()
  it("train to the bits of DDP, on 2 and 3 ranks", function()
    each_variant(function(variant)
      for ranks = 2, 3 do
        prints("0 0\n", ranks, BLOCKS .. ([[
          print(apart(lt.strategies.Sharded {%s}),
            apart(lt.strategies.Sharded {%s}, nil, {gradient_clip_val = 0.05}))
        ]]):format(variant, variant))
      end
    end)
  end)

  it("add up shards of the gradients of a window", function()
    each_variant(function(variant)
      prints("true\n", 2, BLOCKS .. ([[
        print(apart(lt.strategies.Sharded {%s}, nil, {accumulate_grad_batches = 4}) < 1e-6)
      ]]):format(variant))
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
        .. "forward of its module, or within strategy:gather_parameters()", 1, true) ~= nil)
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

describe("stage 1", function()
  it("holds of the optimizers' state 1 / N of the bytes on each rank", function()
    prints("true true\n", 3, [[
      local total, most
      function Net:on_train_batch_end()
        most = lt.dist.all_reduce(held(self.trainer), {op = "max"})
      end
      fit "ddp"
      total = most
      fit "zero1"
      print(most <= total / 3 * 1.05, most * 3 >= total)
    ]])
  end)

  it("gives hooks and clipping the gradients of DDP, and their norm to the bit", function()
    prints("true 72\n", 3, [[
      -- Half of the parameters in f64.
      local Mixed = Net:extend("Mixed")
      function Mixed:configure_model() self.b:to "f64" end
      function Mixed:forward(x)
        local h = self.b(self.a(x):tanh():to "f64"):tanh():to "f32"
        local y = self.c(h)
        return y
      end
      local seen
      local function note(value) seen[#seen + 1] = lt.hash(value) end
      function Mixed:on_before_optimizer_step(optimizer)
        note(optimizer:grad_norm(2))
        note(optimizer:grad_norm(math.huge))
        note(nn.clip_grad_norm_(self:parameters(), 0.05))
        note(self.a.weight.grad)
        note(optimizer:clip_gradients(0.02))
        note(self.b.weight.grad)
      end
      local function texts(strategy)
        seen = {}
        fit(strategy, {class = Mixed}, {max_steps = 12})
        return table.concat(seen, " "), #seen
      end
      local wanted, count = texts "ddp"
      print(texts "zero1" == wanted, count)
    ]])
  end)

  it("loses the state with the ranks of a fit that fails, and says so until one is loaded",
    function()
      prints("true true true same\n", 2, [[
        local Own, kept, fails = Net:extend("Own"), nil, true
        function Own:configure_optimizers()
          kept = kept or lt.optim.Adam(self:parameters(), {lr = 0.01})
          return kept
        end
        function Own:on_train_batch_end(_, _, i)
          if i == 2 then self.trainer:save_checkpoint "cut" end
          if i == 3 and fails then error "as planned" end
        end
        lt.seed(1)
        local net = Own()
        local function resume(strategy, path)
          trainer({strategy = strategy, max_epochs = 2}):fit(net, loader(), nil,
            {ckpt_path = path})
        end
        local message = error_of(resume, "zero1")
        io.write(tostring(message:find("as planned", 1, true) ~= nil), " ")
        fails = false
        for _, strategy in ipairs {"zero1", "ddp"} do
          message = error_of(resume, strategy)
          io.write(tostring(message:find("optim.Adam: its state is incomplete: a fit under "
            .. "strategies.Sharded failed, and the other ranks ended with their parts of it: "
            .. "resume from a checkpoint with ckpt_path, or create a new optimizer", 1, true)
            ~= nil), " ")
        end
        resume("zero1", "cut")
        local Once = Net:extend("Once")
        function Once:configure_optimizers()
          return lt.optim.Adam(self:parameters(), {lr = 0.01})
        end
        local whole, t = fit("ddp", {class = Once})
        print(bits(net, {optimizers = {kept}}) == bits(whole, t) and "same" or "other")
      ]])
    end)

  it("keeps a state of one number a parameter beside one of a number an element", function()
    prints("same\n", 2, [[
      local Counted = lt.optim.Optimizer:extend("Counted")
      Counted.options, Counted.elementwise = {lr = {type = "number", default = 0.1}}, true
      function Counted:update(group)
        local params, grads, states = self:active(group, function(p)
          return {count = lt.zeros(1), sum = lt.zeros_like(p)}
        end)
        for i, p in ipairs(params) do
          states[i].count:add_(1)
          states[i].sum:add_(grads[i])
          p:sub_(states[i].sum * group.lr / states[i].count)
        end
      end
      -- Parameters of 6, 2 and 1 elements: slices of 3 and 1, and none.
      local Small = Net:extend("Small")
      function Small:init()
        self.l, self.s = nn.Linear(3, 2), lt.parameter(lt.ones(1))
      end
      function Small:training_step(batch)
        return (self.l(batch[1]:narrow(2, 1, 3)) * self.s - 1):square():mean()
      end
      function Small:configure_optimizers() return Counted(self:parameters()) end
      local function resumed(strategy)
        local _, first = fit(strategy, {class = Small}, {max_steps = 3})
        first:save_checkpoint "cut"
        return bits(fit(strategy, {class = Small}, nil, {ckpt_path = "cut"}))
      end
      local wanted = bits(fit("ddp", {class = Small}))
      print(resumed "zero1" == wanted and resumed "ddp" == wanted and "same" or "other")
    ]])
  end)

  it("compares what ranks hold alike: parameters", function()
    local err = fails(2, "ranks hold different values after optimizer step 2, compared to rank 0:\n"
      .. "  rank 1: unused %(changed by add at", [[
      function Net:on_train_batch_start(_, i)
        if i == 1 and rank() == 1 then lt.no_grad(function() self.unused:add_(1) end) end
      end
      fit("zero1", nil, {replica_check_every_n_steps = 1, max_steps = 8})
    ]])
    assert.is_nil(err:find("state of", 1, true))
  end)

  it("names the parameters whose gradients are not finite, on all ranks", function()
    fails(3, "optimizer_step: the gradients of c.weight are not finite", [[
      function Net:training_step(batch, i)
        local h = self.b(self.a(batch[1]):tanh()):tanh():detach()
        if i == 2 and rank() == 2 then h = h * math.huge end
        return self.c(h):mean()
      end
      fit "zero1"
    ]])
    prints("same\n", 3, [[
      function Net:training_step(batch, i)
        local h = self(batch[1])
        if i == 2 and rank() == 2 then h = h * math.huge end
        return h:square():mean()
      end
      print(same(nil, {nonfinite = "skip", gradient_clip_val = 1}))
    ]])
  end)

  it("takes options beside the name", function()
    prints("3.0 Sharded\n", 2, [[
      local t = trainer {strategy = {"zero1", bucket_cap_mb = 3.0}}
      print(t.strategy.bucket_cap_mb, getmetatable(t.strategy).__name)
    ]])
    prints("trained\n", 2, [[ -- with a logger, that records the options
      fit({"zero1", bucket_cap_mb = 3.0}, nil, {logger = lt.loggers.CSVLogger {save_dir = "."}})
      print "trained"
    ]])
    fails(2, "strategies.Sharded: unknown option 'period'", [[
      trainer {strategy = {"zero1", period = 3}}
    ]])
    fails(2, "Trainer: strategy = 'zero': must be one of auto, .*; did you mean 'zero1'%?", [[
      trainer {strategy = "zero"}
    ]])
  end)
end)

describe("strategies.Sharded refuses", function()
  it("an optimizer with a step of its own", function()
    fails(2, "strategies.Sharded: an object of class Own overrides step, which updates whole", [[
      local Own = lt.optim.SGD:extend("Own")
      function Own:step() end
      function Net:configure_optimizers() return Own(self:parameters()) end
      fit "zero1"
    ]])
  end)

  it("one that does not say that it steps elements alone, or inherits the update", function()
    fails(2, "strategies.Sharded: .* Layerwise: a rank steps slices of the parameters: set "
      .. "Layerwise.elementwise = true", [[
      local Mine, Layerwise = lt.optim.Adam:extend("Mine"), lt.optim.Adam:extend("Layerwise")
      function Layerwise:update(group) lt.optim.Adam.update(self, group) end
      function Net:configure_optimizers() return Mine(self:parameters()) end
      fit "zero1"
      function Net:configure_optimizers() return Layerwise(self:parameters()) end
      fit "zero1"
    ]])
  end)

  it("one that was given an update of its own, unless it says so", function()
    fails(2, "an object of class SGD: .*: set optimizer.elementwise = true", [[
      function Net:configure_optimizers()
        local optimizer = lt.optim.SGD(self:parameters())
        optimizer.elementwise = self.o.elementwise
        function optimizer:update(group) return lt.optim.SGD.update(self, group) end
        return optimizer
      end
      fit("zero1", {elementwise = true})
      fit "zero1"
    ]])
  end)

  it("configure_ddp of a module", function()
    fails(2, "strategies.Sharded: configure_ddp of the module is not used", [[
      function Net:configure_ddp() return lt.dist.ddp(self) end
      fit "zero1"
    ]])
  end)

  it("other parameters on other ranks", function()
    fails(2, "configure_optimizers: ranks gave .*Adam other parameters: rank 0 has .* rank 1", [[
      function Net:configure_optimizers()
        local list = {self.a.weight, self.b.weight}
        if rank() == 1 then list = {self.b.weight, self.a.weight} end
        return lt.optim.Adam(list)
      end
      fit "zero1"
    ]])
  end)

  it("to give a part of the state for the whole", function()
    prints("true 7\n", 2, [[
      local message
      function Net:on_train_batch_end()
        local optimizer = self:optimizers()
        message = error_of(optimizer.state_dict, optimizer)
      end
      local _, t = fit "zero1"
      local kept = t.optimizers[1]:state_dict().state
      print(message:find("optim.Adam: state_dict: under strategies.Sharded each rank has a part", 1,
        true) ~= nil, kept["a.weight"].exp_avg.shape[2])
    ]])
  end)
end)

describe("shards", function()
  it("are cut from the first element to the last, in order", function()
    local c = require "ltrain.c"
    local lt = require "ltrain"
    local parameter = lt.arange(4):to "f32"
    for _, cuts in ipairs { { 0, 5 }, { 1, 4 }, { 0, 2, 4 }, { 4 } } do
      local given = lt.tensor({ cuts }, { dtype = "i64" })
      assert.has_error(function() c.dist.gather_shards(nil, { parameter }, given, nil, "these") end)
      assert.has_error(function()
        c.dist.reduce_shards(nil, { parameter }, given, { lt.empty(4) }, "these")
      end)
    end
    local whole, sum = lt.tensor({ { 0, 4 } }, { dtype = "i64" }), lt.empty(4)
    parameter.grad = lt.arange(4):to "f32"
    c.dist.wait(c.dist.reduce_shards(nil, { parameter }, whole, { sum }, "these", 0.5))
    assert.same({ 0, 0.5, 1, 1.5 }, sum:tolist())
    assert.is_nil(parameter.grad)
  end)
end)
