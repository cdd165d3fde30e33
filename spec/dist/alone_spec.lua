-- spec/dist/alone_spec.lua: lt.dist outside of any launch: a world of one, where all calls work.
local lt = require "ltrain"
local dist = lt.dist
local error_of = dofile((os.getenv("LT_ROOT") or ".") .. "/spec/error_of.lua")

describe("a world of one", function()
  it("is rank 0 of 1, over itself", function()
    assert.equal(0, dist.rank())
    assert.equal(1, dist.world_size())
    local world = dist.world()
    assert.equal("self", world.backend)
    assert.same({ 0, 1, 0, 1, 0, 1 }, { world.rank, world.ranks, world.local_rank,
      world.local_ranks, world.node_rank, world.nodes })
    assert.same({ world.pid }, world.pids)
    assert.equal(1, #world.hosts)
    assert.equal(require("ltrain.c").runtime.get_threads(), world.threads)
    assert.equal("binary tree", world.reduction_order)
  end)

  it("says what names of PyTorch and Horovod are here", function()
    for name, words in pairs {
      allreduce_async = "write lt.horovod.allreduce_async",
      get_world_size = "write lt.dist.world_size()",
      new_group = "write lt.dist.split(color)",
      init_process_group = "ranks are joined where the script begins",
      all_reduc = "did you mean 'all_reduce'?",
    } do
      local message = error_of(function() return dist[name] end)
      assert.equal(("dist: there is no '%s'; %s"):format(name, words),
        (message:gsub("^.-:%d+: ", "")))
    end
  end)

  it("gives new tensors, except all_reduce_", function()
    local x = lt.tensor({ 1, 2 })
    for _, name in ipairs{ "all_reduce", "broadcast", "reduce_scatter", "scatter" } do
      dist[name](x):fill_(9)
      assert.same({ 1, 2 }, x:tolist(), name)
    end
    assert.equal(x, dist.all_reduce_(x))
  end)

  it("gives every collective on values its meaning", function()
    assert.equal(3, dist.all_reduce(3))
    assert.equal("integer", math.type(dist.all_reduce(3)))
    assert.equal(3.0, dist.all_reduce(3, { op = "mean" }))
    assert.same({ { 1, a = "x" } }, dist.all_gather{ 1, a = "x" })
    assert.same({ "x" }, dist.gather "x")
    assert.equal("x", dist.scatter{ "x" })
    assert.is_nil(dist.broadcast(nil))
    local t = {}
    assert.equal(t, dist.broadcast(t))
  end)

  it("has handles and groups", function()
    local handle = dist.all_reduce(lt.ones{ 2 }, { async = true })
    assert.is_true(handle:test())
    local y = handle:wait()
    assert.same({ 1, 1 }, y:tolist())
    assert.equal(y, handle:wait())
    assert.is_true(handle:test())
    local group = dist.split(4, { key = 2 })
    assert.same({ 0, 1, { 0 } }, { group:rank(), group:world_size(), group:ranks() })
    assert.equal(5, group:all_reduce(5))
    assert.equal(5, dist.all_reduce(5, { group = group }))
    assert.equal(0, group:split(0):rank())
    assert.is_nil(dist.split(-1))
  end)

  it("is a mesh of one", function()
    local mesh = dist.mesh({ 1, 1 }, { "replicate", "tensor" })
    assert.equal("mesh(replicate = 1, tensor = 1)", tostring(mesh))
    assert.same({ 1, 0 }, { mesh:size(), mesh:rank "tensor" })
    assert.equal(1, mesh:group("tensor"):all_reduce(1))
    assert.matches("dist.mesh: 2 x 3 = 6 ranks: there are 1", error_of(dist.mesh, { 2, 3 },
      { "a", "b" }))
    assert.matches("needs a name for each size: got 2 sizes and 1 names", error_of(dist.mesh,
      { 1, 1 }, { "a" }))
    assert.matches("two dims have the name 'a'", error_of(dist.mesh, { 1, 1 }, { "a", "a" }))
    assert.matches("Mesh.rank: there is no dim 'tensors'.*did you mean 'tensor'",
      error_of(mesh.rank, mesh, "tensors"))
  end)

  it("runs what is for rank zero here", function()
    assert.same({ 1, nil, 3, n = 3 }, table.pack(dist.on_rank_zero(function(a)
      return a, nil, 3
    end, 1)))
    assert.same({ 4, 5 }, { dist.rank_zero_first(function() return 4, 5 end) })
    assert.equal(6, dist.long(function() return 6 end))
    assert.matches("alone_spec.lua:%d+: boom", error_of(dist.on_rank_zero, function()
      error "boom"
    end))
    assert.matches("on_rank_zero: result%[1%] is a function", error_of(dist.on_rank_zero,
      function() return print end))
  end)

  it("lets functions of rank zero yield", function()
    for _, name in ipairs{ "on_rank_zero", "rank_zero_first", "long" } do
      local f = coroutine.wrap(function()
        return dist[name](function() return coroutine.yield "asked" end)
      end)
      assert.equal("asked", f())
      assert.equal("answered", f "answered")
    end
  end)

  it("launches one rank without a process", function()
    local pid = dist.world().pid
    assert.same({ 0, pid }, { dist.launch(1, function(rank) return rank, dist.world().pid end) })
    assert.matches("called in a launch", error_of(dist.launch, 1, function()
      dist.launch(1, print)
    end))
    assert.equal("again", dist.launch(1, function() return "again" end))
  end)
end)

describe("wrong use of lt.dist", function()
  local x = lt.tensor({ 1, 2, 3 })
  local function says(pattern, fn, ...)
    local message = error_of(function(...) fn(...) end, ...)
    assert.matches(pattern, message)
    assert.matches("alone_spec%.lua:%d+: ", message)
  end

  it("is reported with the nearest word", function()
    says("unknown option 'opp'; did you mean 'op'", dist.all_reduce, x, { opp = "sum" })
    says("op must be .*did you mean 'sum'", dist.all_reduce, x, { op = "summ" })
    says("unknown option 'form'; did you mean 'from'", dist.broadcast, x, { form = 0 })
    says("no 'brodcast'; did you mean 'broadcast'", function() return dist.brodcast end)
    says("unknown option 'timeuot'; did you mean 'timeout'", dist.launch, 2, print,
      { timeuot = 3 })
  end)

  it("is reported with what was given", function()
    says("needs a tensor or a number: got 'x'", dist.all_reduce, "x")
    says("needs a tensor: got 3", dist.all_reduce_, 3)
    says("needs a tensor: got a table", dist.reduce_scatter, {})
    says("cat = true needs tensors: got 3", dist.all_gather, 3, { cat = true })
    says("needs a dim to concatenate along", dist.all_gather, lt.tensor(1), { cat = true })
    says("from must be below 1, the number of ranks: got 1", dist.broadcast, x, { from = 1 })
    says("from must be at least 0: got %-1", dist.broadcast, x, { from = -1 })
    says("send: to must be another rank: this is rank 0", dist.send, 1, 0)
    says("scatter: needs a tensor, or a list .* 1 ranks: got a list of 2", dist.scatter, { 1, 2 })
    says("group must be a group", dist.all_reduce, x, { group = lt.nn.Linear(1, 1) })
    says("all_reduce: group: this is a method", function()
      local g = dist.split(0)
      g:all_reduce(x, { group = g })
    end)
    says("color must be at least %-1: got %-2", dist.split, -2)
    says("long: needs a function: got 3", dist.long, 3)
    says("n must be at least 1: got 0", dist.launch, 0, print)
    says("dist.launch: needs a function: got nil", dist.launch, 2)
  end)

  it("in place is what in-place writes refuse", function()
    local w = lt.ones({ 2 }, { requires_grad = true })
    says("all_reduce_: in%-place write into a leaf", dist.all_reduce_, w)
    says("all_reduce_: cannot write into %[3, 2%]", dist.all_reduce_, lt.ones{ 2 }:expand(3, 2))
    says("all_reduce_: .*view of something with history", dist.all_reduce_, (w * 1):view(2, 1))
    lt.no_grad(function() dist.all_reduce_(w) end)
    says("all_reduce: only sum and mean have gradients", dist.all_reduce, w, { op = "max" })
    assert.is_false(dist.all_reduce(w, { op = "max", sync_grads = false }).requires_grad)
  end)

  it("is reported when ints have no mean", function()
    says("mean", dist.all_reduce, lt.tensor({ 1, 2 }, { dtype = "i64" }), { op = "mean" })
  end)
end)
