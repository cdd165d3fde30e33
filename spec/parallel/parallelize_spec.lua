-- spec/parallel/parallelize_spec.lua: lt.parallelize: what it divides, and what it refuses.
-- tags: slow
local scripts = require "spec.parallel.small_models"

-- What rank 0 of two prints; lines of errors without the place.
local function prints(wanted, script)
  assert.equal(wanted, (scripts.output(nil, ([[
    local function error_of(fn, ...)
      local ok, message = pcall(fn, ...)
      assert(not ok, "no error")
      return (tostring(message):gsub("^%%S+:%%d+: ", ""))
    end
    local nn = lt.nn
    dist.launch(2, function()
      local mesh = dist.mesh({2}, {"tensor_parallel"})
      local function print(...) if dist.rank() == 0 then _G.print(...) end end
      local function refused(module, plan) print(error_of(lt.parallelize, module, mesh, plan)) end
      %s
    end)
  ]]):format(script))))
end

describe("lt.parallelize", function()
  it("leaves each rank its part of a weight, under its name", function()
    prints("4 4\t2 4\t4\t4 2\t3 4\n", [[
      local a, b, e = nn.Linear(4, 4), nn.Linear(4, 4), nn.Embedding(6, 4)
      local whole = a.weight:detach():clone()
      local net = nn.Sequential(e, a, b)
      assert(rawequal(net, lt.parallelize(net, mesh, {["0"] = P.RowwiseParallel(),
        ["1"] = P.ColwiseParallel(), ["2"] = P.RowwiseParallel()})))
      local function shape(x) return table.concat(x.shape, " ") end
      print(shape(whole), shape(a.weight), shape(b.bias), shape(b.weight), shape(e.weight))
      assert(lt.equal(a.weight, whole:narrow(1, dist.rank() * 2 + 1, 2)))
    ]])
  end)

  it("takes patterns, one style for the module itself, and lists of styles", function()
    prints("2 2 2\t8\t4\n", [[
      local layers = nn.ModuleList()
      for i = 1, 3 do layers:append(nn.Linear(4, 4)) end
      lt.parallelize(layers, mesh, {["*"] = P.ColwiseParallel()})
      local sizes = {}
      for i, layer in ipairs(layers) do sizes[i] = layer.weight.shape[1] end
      local one = lt.parallelize(nn.Linear(4, 16), mesh, P.ColwiseParallel())
      local two = lt.parallelize(nn.Linear(4, 4), mesh, {[""] = {
        P.ColwiseParallel {output_layouts = P.Shard(-1)},
        P.PrepareModuleOutput {output_layouts = P.Shard(-1),
          desired_output_layouts = P.Replicate()}}})
      print(table.concat(sizes, " "), one(lt.ones(1, 4)).shape[2], two(lt.ones(1, 4)).shape[2])
    ]])
  end)

  it("loads whole tensors, of which a rank takes its part", function()
    prints("true\ttrue\ttrue\n", [[
      lt.seed(3)
      local net, other = nn.Linear(4, 4), nn.Linear(4, 4)
      local x = lt.randn(2, 4)
      local wanted, state = other(x), other:state_dict()
      lt.parallelize(net, mesh, P.ColwiseParallel {output_layouts = P.Replicate()})
      net:load_state_dict(state)
      local loaded = lt.allclose(net(x), wanted)
      net:load_state_dict(net:state_dict())
      local again = lt.allclose(net(x), wanted)
      net:load_state_dict(state, {assign = true})
      print(loaded, again, lt.allclose(net(x), wanted))
    ]])
  end)

  it("gives parameters of the meta device the values of one rank", function()
    prints("true\ttrue\n", [[
      lt.seed(3)
      local whole = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 4))
      lt.seed(3)
      local net = nn.Sequential(nn.Linear(4, 6, {device = "meta"}),
        nn.Linear(6, 4, {device = "meta"}))
      lt.parallelize(net, mesh, {["0"] = P.ColwiseParallel(), ["1"] = P.RowwiseParallel()})
      assert(net[1].weight.is_meta and net[1].weight.shape[1] == 3)
      net:materialize()
      local x = lt.randn(2, 4)
      print(lt.equal(net[1].bias, whole[1].bias:narrow(1, 3 * dist.rank() + 1, 3)),
        lt.allclose(net(x), whole(x)))
    ]])
  end)

  it("refuses what does not divide, by its name", function()
    local function few(what)
      return what .. " are too few for 2 ranks: the last one would have none"
    end
    prints(table.concat({ few "parallelize: 0: 1 outputs", few "parallelize: 1: 1 inputs",
      few "parallelize: 2: 1 ids",
      "parallelize: 3: 3 heads (num_heads) do not divide among 2 ranks",
      "parallelize: 4: 9 outputs do not divide among 2 ranks in 3 blocks\n" }, "\n"), [[
      local net = nn.Sequential(nn.Linear(4, 1), nn.Linear(1, 4), nn.Embedding(1, 4),
        nn.MultiheadAttention(6, 3), nn.Linear(4, 9))
      refused(net, {["0"] = P.ColwiseParallel()})
      refused(net, {["1"] = P.RowwiseParallel()})
      refused(net, {["2"] = P.RowwiseParallel()})
      refused(net, {["3"] = P.AttentionParallel()})
      refused(net, {["4"] = P.ColwiseParallel {blocks = 3}})
    ]])
  end)

  it("refuses plans that name no layer, another kind of layer, or one twice", function()
    prints(table.concat({
      "parallelize: the plan names '1x', and Sequential has no such module; did you mean '1'?",
      "parallelize: 1: ColwiseParallel is for linear layers and embeddings: got LayerNorm",
      "parallelize: '*' and '0' of the plan both name 0: give it a list of styles",
      "parallelize: '0': needs a style, such as lt.parallel.ColwiseParallel(): got 3",
      "parallelize: needs a plan: a table of styles by names of modules; Sequential has no "
        .. "tensor_parallel_plan: got nil",
      "parallelize: the plan names no module of Sequential, which ranks are to divide: give it "
        .. "styles by names, such as {fc = lt.parallel.ColwiseParallel()}\n" }, "\n"), [[
      local net = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
      refused(net, {["1x"] = P.ColwiseParallel()})
      refused(net, {["1"] = P.ColwiseParallel()})
      refused(net, {["0"] = P.ColwiseParallel(), ["*"] = P.RowwiseParallel()})
      refused(net, {["0"] = 3})
      refused(net)
      refused(net, {})
    ]])
  end)

  it("refuses a weight that another module has too, unless the plan names both alike", function()
    prints("parallelize: 1.weight is the weight of 0 too, which the plan divides: name both\n"
      .. "parallelize: 0 and 1 share a weight, and divide it along different dims\n"
      .. "parallelize: 0.bias is divided already\n", [[
      local net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
      net[2].weight = net[1].weight
      refused(net, {["0"] = P.ColwiseParallel()})
      refused(net, {["0"] = P.ColwiseParallel(), ["1"] = P.RowwiseParallel()})
      local plan = {["*"] = P.ColwiseParallel()}
      lt.parallelize(net, mesh, plan)
      assert(rawequal(net[1].weight, net[2].weight))
      refused(net, plan)
    ]])
  end)

  it("ends when ranks have different plans", function()
    prints("parallelize: ranks have different plans: rank 0 has : ColwiseParallel{blocks = 1, "
      .. "input_layouts = Replicate(), output_layouts = Shard(-1), sum_gradients = true}; rank 1 "
      .. "has : RowwiseParallel{output_layouts = Replicate()}\n", [[
      refused(nn.Linear(4, 4), dist.rank() == 0 and P.ColwiseParallel() or P.RowwiseParallel())
    ]])
  end)

  it("refuses ids that are none, on all ranks", function()
    prints("embedding: index 4 is out of 0..1 (dim 1 of [2, 4]) (in Embedding)\n", [[
      local table = lt.parallelize(nn.Embedding(4, 4), mesh, P.RowwiseParallel())
      print(error_of(function() table(lt.tensor({1, 4}, {dtype = "i64"})) end))
    ]])
  end)

  it("needs a mesh with one dim, or one that is called tensor_parallel", function()
    prints("parallelize: the mesh must be one of lt.dist.mesh, self.device_mesh of "
      .. "strategies.ModelParallelStrategy, or a group of ranks: got nil\n"
      .. "Mesh.group: there is no dim 'tensor_parallel': this mesh has a, b\n", [[
      local plan = P.ColwiseParallel()
      print(error_of(lt.parallelize, nn.Linear(4, 4), nil, plan))
      print(error_of(lt.parallelize, nn.Linear(4, 4), dist.mesh({2, 1}, {"a", "b"}), plan))
    ]])
  end)
end)

describe("clip_grad_norm_ of parts", function()
  it("is that of whole parameters", function()
    prints("true\ttrue\ttrue\n", [[
      local found = {}
      for i, o in ipairs {{}, {norm_type = math.huge}, {norm_type = 3}} do
        local norms, grads = {}, {}
        for k = 1, 2 do
          lt.seed(7)
          local net = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 4)):to "f64"
          if k == 2 then
            lt.parallelize(net, mesh, {["0"] = P.ColwiseParallel(), ["1"] = P.RowwiseParallel()})
          end
          net(lt.ones(3, 4):to "f64"):square():sum():backward()
          norms[k] = nn.utils.clip_grad_norm_(net:parameters(), 0.5, o)
          grads[k] = net[2].bias.grad
        end
        found[i] = lt.allclose(norms[1], norms[2], {rtol = 1e-12})
          and lt.allclose(grads[1], grads[2], {rtol = 1e-6})
      end
      print(table.unpack(found))
    ]])
  end)
end)

describe("lt.parallel.loss_parallel", function()
  it("is the cross-entropy of all classes, with its gradient", function()
    prints("true\ttrue\ttrue\ttrue\n", [[
      lt.seed(4)
      local all = lt.randn(5, 6):to "f64"
      local target = lt.tensor({0, 5, -100, 2, 3}, {dtype = "i64"})
      local loss, found = P.loss_parallel(mesh), {}
      for i, o in ipairs {{}, {reduction = "sum"}, {label_smoothing = 0.1},
        {reduction = "none", label_smoothing = 0.3}} do
        local whole = all:clone():requires_grad_(true)
        local part = all:narrow(2, 3 * dist.rank() + 1, 3):clone():requires_grad_(true)
        local wanted, got = lt.cross_entropy(whole, target, o), loss(part, target, o)
        wanted:sum():backward()
        got:sum():backward()
        found[i] = lt.allclose(got, wanted, {rtol = 1e-12})
          and lt.allclose(part.grad, whole.grad:narrow(2, 3 * dist.rank() + 1, 3), {rtol = 1e-10})
      end
      print(table.unpack(found))
    ]])
  end)

  it("refuses other targets, and classes that are none", function()
    prints("parallel.loss_parallel: needs logits [N, C / R, ...] and targets [N, ...] of ids: got "
      .. "a tensor [2, 3] and a tensor [2, 3]\ntrue\n", [[
      local loss = P.loss_parallel(mesh)
      print(error_of(loss, lt.zeros(2, 3), lt.zeros(2, 3)))
      print(error_of(loss, lt.zeros(1, 3), lt.tensor({6}, {dtype = "i64"})):find "index" ~= nil)
    ]])
  end)
end)

describe("dropout on cut features", function()
  it("is that of one rank", function()
    prints("true\n", [[
      local x, dropout = lt.randn(3, 4), nn.Dropout(0.5)
      lt.seed(9)
      local wanted = dropout(x):narrow(2, 2 * dist.rank() + 1, 2)
      lt.parallelize(dropout, mesh, P.SequenceParallel {sequence_dim = -1})
      lt.seed(9)
      print(lt.equal(dropout(x:narrow(2, 2 * dist.rank() + 1, 2)), wanted))
    ]])
  end)
end)
