-- spec/strategies/sharded_units_spec.lua: which modules stage 3 of Sharded gathers, and where.
-- tags: half, slow
local lt = require "ltrain"
local net = require "spec.strategies.sharded_net"

local prints <const>, BLOCKS <const> = net.prints, net.BLOCKS

local nn = lt.nn

describe("register_forward_method", function()
  it("gathers a unit where the method is called, as in a call of the module", function()
    prints("0\n", 2, BLOCKS .. [[
      local Block = lt.Module:extend "Block"
      function Block:init()
        self.l = nn.Linear(12, 12)
        lt.register_forward_method(self, "encode")
      end
      function Block:forward(x) return self:encode(x, 2).h end
      function Block:encode(x, n) return {h = self.l(x):tanh() * n} end
      local Methods = Blocks:extend "Methods"
      function Methods:init(o)
        Blocks.init(self, o)
        self.blocks = nn.ModuleList {Block(), Block(), Block()}
      end
      function Methods:forward(x)
        x = self.first(x)
        for i, block in ipairs(self.blocks) do
          x = i == 1 and block(x) or block:encode(x, 1).h
        end
        return self.last(x)
      end
      print(apart(lt.strategies.Sharded {units = {Block}}, {class = Methods}))
    ]])
  end)

  it("gathers the parameters of root and units where hooks of one rank call it", function()
    prints("true true 2\n", 2, BLOCKS .. [[
      local net, seen = nil, {}
      local Generates = Blocks:extend "Generates"
      function Generates:init(o)
        Blocks.init(self, o)
        lt.register_forward_method(self, "generate")
        lt.register_forward_method(self.blocks[2][1], "row")
      end
      function nn.Linear:row(i)
        if i > self.out_features then error "no such row" end
        return self.weight:detach()[i]:sum():item()
      end
      function Generates:generate(n)
        local _ <close> = lt.no_grad()
        local y = lt.ones(2, 7)
        for _ = 1, n do y = lt.cat({self(y)}, 2):expand(2, 7) end
        return y:sum():item(), n
      end
      function Generates:on_train_epoch_end()
        if rank() == 1 then return end
        local value, n = self:generate(2 + self.current_epoch)
        pcall(function() self.blocks[2][1]:row(100) end)
        table.insert(seen, value + n + self.blocks[2][1]:row(1))
      end
      local o = {class = Generates}
      net = fit(lt.strategies.Sharded {units = 1}, o)
      local sharded = seen
      seen = {}
      local ddp = fit("ddp", o)
      print(lt.hash(net:state_dict()) == lt.hash(ddp:state_dict()),
        seen[1] == sharded[1] and seen[2] == sharded[2], #sharded)
    ]])
  end)

  it("has no effect elsewhere, and takes a method of a module by its name", function()
    local layer = nn.Linear(2, 3)
    function layer:twice(x) return self(x) * 2, "more" end
    lt.register_forward_method(layer, "twice")
    lt.register_forward_method(layer, "twice")
    local y, more = layer:twice(lt.ones(1, 2))
    assert.same({ 1, 3 }, y.shape)
    assert.equal("more", more)
    local copy = nn.deepcopy(layer)
    assert.is_true(lt.equal(y, (copy:twice(lt.ones(1, 2)))))
    for words, call in pairs {
      ["register_forward_method: Linear has no method 'generate'"] =
        function() lt.register_forward_method(layer, "generate") end,
      ["register_forward_method: needs a module: got"] =
        function() lt.register_forward_method(nn.Linear, "forward") end,
      ["register_forward_method: 'forward' needs none: parameters are gathered where Linear is "
        .. "called: write module(x)"] =
        function() lt.register_forward_method(layer, "forward") end,
    } do
      local ok, message = pcall(call)
      assert.is_false(ok)
      assert.matches(words, message, 1, true)
    end
  end)
end)

describe("a call of a module that has units in it", function()
  it("gathers the root's parameters too, in hooks of one rank", function()
    prints("true true 2\n", 2, BLOCKS .. [[
      local Body, seen = Blocks:extend "Body", {}
      local Outer = lt.Module:extend "Outer"
      function Outer:init() self.net, self.scale = Body(), lt.parameter(lt.ones(1)) end
      function Outer:forward(x) return self.net(x) * self.scale end
      Outer.training_step, Outer.configure_optimizers = Blocks.training_step,
        Blocks.configure_optimizers
      function Outer:on_train_epoch_end()
        if rank() == 1 then return end
        local _ <close> = lt.no_grad()
        local x = lt.ones(2, 7)
        pcall(function() self(lt.ones(2, 6)) end)
        table.insert(seen, self(x):sum():item() + self.net(x):sum():item())
      end
      local sharded = fit(lt.strategies.Sharded {units = 1}, {class = Outer})
      local values = seen
      seen = {}
      local ddp = fit("ddp", {class = Outer})
      print(lt.hash(sharded:state_dict()) == lt.hash(ddp:state_dict()),
        seen[1] == values[1] and seen[2] == values[2], #values)
    ]])
  end)
end)

describe("shard", function()
  it("makes a module a unit of its own, besides those of the strategy", function()
    prints("0 true true false\n", 2, BLOCKS .. [[
      local read = {}
      local Marked = Blocks:extend "Marked"
      function Marked:init(o)
        Blocks.init(self, o)
        lt.shard(self.first)
        lt.shard(self.last, {reshard_after_forward = false})
      end
      function Marked:training_step(batch)
        local y = self(batch[1])
        for _, name in ipairs {"first", "last"} do
          read[name] = pcall(function() return self[name].weight:sum() end)
        end
        read.block = pcall(function() return self.blocks[1][1].weight:sum() end)
        return (y - 1):square():mean()
      end
      local function strategy() return lt.strategies.Sharded {units = 10000} end
      local most = apart(strategy(), {class = Marked})
      fit(strategy(), {class = Marked})
      print(most, read.block, read.last, read.first)
    ]])
  end)

  it("refuses what is never called", function()
    local list = nn.ModuleList { nn.Linear(2, 2) }
    for words, module in pairs {
      ["shard: ModuleList has no forward, and is never called: shard the modules in it, or "
        .. "register what is called with lt.register_forward_method first"] = list,
      ["shard: needs a module: got"] = nn.Linear,
    } do
      local ok, message = pcall(lt.shard, module)
      assert.is_false(ok)
      assert.matches(words, message, 1, true)
    end
    assert.equal(list[1], lt.shard(list[1]))
  end)
end)

describe("units by a number of parameters", function()
  it("are modules that are called, not lists in lists", function()
    prints("0\n", 2, BLOCKS .. [[
      local Nested = Blocks:extend "Nested"
      function Nested:init(o)
        Blocks.init(self, o)
        self.blocks = nn.ModuleList()
        for i = 1, 2 do self.blocks:append(nn.ModuleList {nn.Linear(12, 4), nn.Linear(4, 12)}) end
      end
      function Nested:forward(x)
        x = self.first(x)
        for _, block in ipairs(self.blocks) do x = x + block[2](block[1](x):tanh()) end
        return self.last(x)
      end
      print(apart(lt.strategies.Sharded {units = 80}, {class = Nested}))
    ]])
  end)

  it("are gathered twice a step and reduced once, those in other units too", function()
    prints("0\ntrue true\n", 2, BLOCKS .. [[
      local traffic = require "ltrain.c".dist.traffic
      local Nested, sent = Blocks:extend "Nested", {}
      function Nested:init(o)
        Blocks.init(self, o)
        self.blocks = nn.ModuleList()
        for i = 1, 3 do
          self.blocks:append(nn.Sequential(nn.LayerNorm(12), nn.Linear(12, 12), nn.Linear(12, 12)))
        end
      end
      function Nested:forward(x)
        x = self.first(x)
        for _, block in ipairs(self.blocks) do x = x + block(x) end
        return self.last(x)
      end
      function Nested:on_train_batch_end() sent[#sent + 1] = traffic() end
      print(apart(lt.strategies.Sharded {units = 80}, {class = Nested}))
      local bytes = 0
      for _, p in ipairs(Nested():parameters()) do bytes = bytes + p:numel() * SIZE[p.dtype] end
      local function of(kind) return sent[3][kind].bytes - sent[2][kind].bytes end
      print(of "reduce_scatter" == bytes, of "all_gather" < 2 * bytes)
    ]])
  end)
end)
