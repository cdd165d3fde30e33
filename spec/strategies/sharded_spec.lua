-- spec/strategies/sharded_spec.lua: Sharded: the state of a fit in parts, one a rank.
-- tags: slow, third
local net = require "spec.strategies.sharded_net"

local prints <const>, fails <const> = net.prints, net.fails

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
    assert.equal("same\n", (net.over("mpi", 2, [[
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

  it("those of lt.optim that need whole parameters", function()
    for _, name in ipairs { "Muon", "LBFGS", "Adafactor" } do
      fails(2, "strategies.Sharded: an object of class " .. name .. " computes with whole "
        .. "parameters, and a rank steps slices of them: take AdamW or another optimizer that "
        .. "treats each element independently, or write strategy = 'ddp'", ([[
          function Net:configure_optimizers() return lt.optim.%s({self.a.weight}) end
          fit "fsdp"
        ]]):format(name))
    end
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
