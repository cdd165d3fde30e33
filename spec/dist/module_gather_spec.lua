-- spec/dist/module_gather_spec.lua: self:all_gather in hooks of a module.
-- tags: slow
local logged = require "spec.dist.logged"
local support = require "spec.dist.support"

-- One training step on n ranks, in which rank r calls body(self, r); what it prints.
local function step(n, body)
  return logged.output(n, ([[
    lt.seed(4)
    function Net:training_step(batch)
      local r = rank()
      %s
      return self:loss(batch)
    end
    trainer({max_steps = 1}):fit(Net(), loader(8, 8 // n))
  ]]):format(body))
end

describe("self:all_gather", function()
  it("gives [ranks, ...] of tensors and [ranks] of numbers", function()
    assert.equal("2 3\t0 0 0 1 1 1\t10 11\ti64\n", (step(2, [[
      local all = self:all_gather(lt.full({3}, r + 0.0))
      local ids = self:all_gather(10 + r)
      say(table.concat(all.shape, " "), ("%d %d %d %d %d %d"):format(
        table.unpack(all:reshape{6}:tolist())), table.concat(ids:tolist(), " "), ids.dtype)
    ]])))
  end)

  it("joins what differs in length with cat = true, on 1 rank too", function()
    local body <const> = [[
      local all = self:all_gather(lt.full({r + 1, 2}, r + 0.0), {cat = true})
      say(table.concat(all.shape, " "), all:sum():item())
    ]]
    assert.equal("6 2\t16.0\n", (step(3, body)))
    assert.equal("1 2\t0.0\n", (step(1, body)))
  end)

  it("raises on unequal lengths without it, with the sizes and the remedy", function()
    local status, _, err = logged.run(2, [[
      function Net:training_step(batch)
        self:all_gather(lt.ones(3 + rank(), 2))
        return self:loss(batch)
      end
      trainer({max_steps = 1}):fit(Net(), loader(8))
    ]])
    assert.equal(1, status)
    assert.matches("all_gather: first sizes differ between ranks: 3, 4 %(concatenate them with "
      .. "{cat = "
      .. "true}%)", err)
  end)

  it("takes nested tables, of which other leaves stay", function()
    assert.equal("2 2\t0 1\tmine\t5 6\t3\n", (step(2, [[
      local all = self:all_gather {x = {lt.full({2}, r), {deep = r}}, name = "mine",
        b = lt.tensor({5 + r}, {dtype = "i64"})}
      local joined = self:all_gather({lt.ones(1 + r)}, {cat = true})
      say(table.concat(all.x[1].shape, " "), table.concat(all.x[2].deep:tolist(), " "), all.name,
        table.concat(all.b:reshape{2}:tolist(), " "), joined[1].shape[1])
    ]])))
  end)

  it("names the first place where tables differ, on all ranks", function()
    local status, _, err = logged.run(2, [[
      function Net:training_step(batch)
        local x = {a = 1, b = lt.ones(2)}
        if rank() == 1 then x.b = lt.ones({2}, {dtype = "f64"}) end
        self:all_gather(x)
        return self:loss(batch)
      end
      trainer({max_steps = 1}):fit(Net(), loader(8))
    ]])
    assert.equal(1, status)
    assert.matches("all_gather: ranks passed different tables: rank 0 has b, f32 %[2%]; rank 1 "
      .. "has b, "
      .. "f64 %[2%]", err)
    status, _, err = logged.run(2, [[
      function Net:training_step(batch)
        self:all_gather {lt.ones(2 + rank())}
        return self:loss(batch)
      end
      trainer({max_steps = 1}):fit(Net(), loader(8))
    ]])
    assert.equal(1, status)
    assert.matches("all_gather: sizes differ: rank 0 has 0, f32 %[2%]; rank 1 has 0, f32 %[3%] "
      .. "%(concatenate them with {cat = true}%)", err)
  end)
end)

describe("self:all_gather and gradients", function()
  it("passes none by default", function()
    assert.equal("false false\n", (step(2, [[
      local y = self.w * 2
      say(tostring(self:all_gather(y).requires_grad) .. " "
        .. tostring(self:all_gather({y})[1].requires_grad))
    ]])))
  end)

  it("passes them with sync_grads = true: tensors, cat and tables", function()
    -- The loss on both ranks: the sum of squares of all rows, w r + 1 each. Each rank's gradient is
    -- that of both losses: 2 * 2 * y * dy/dw.
    local wanted <const> = "4\t4\t8\t4\n"
    assert.equal(wanted, (logged.output(2, [[
      local function grads(make)
        local w = lt.tensor({1.0}, {requires_grad = true})
        local loss = make(w)
        loss:backward()
        return lt.dist.all_gather(w.grad:item())
      end
      local o = {sync_grads = true}
      lt.dist.launch(2, function(r)
        local net = Net()
        local single = grads(function(w) return net:all_gather(w * 1, o):pow(2):sum() end)
        local nested = grads(function(w)
          local all = net:all_gather({a = {w * 1}, n = r}, o)
          return (all.a[1] * all.a[1]):sum()
        end)
        local joined = grads(function(w)
          local rows = (w * 1):expand(r + 1)
          local all = net:all_gather({rows}, {sync_grads = true, cat = true})[1]
          return (all * all):sum()
        end)
        say(("%g\t%g\t%g\t%g"):format(single[1], nested[2], joined[2], joined[1]))
      end)
    ]])))
  end)
end)

describe("values of all ranks", function()
  it("are not mixed up with what another rank exchanges just then", function()
    assert.matches("ranks disagree: rank 1 gathers other values", support.fails [[
      local gather_values = require "ltrain.dist.gather_values"
      dist.launch(2, function(rank)
        if rank == 0 then gather_values(1) else dist.all_gather {7} end
      end)
    ]])
  end)
end)
