-- spec/cuda/graph_spec.lua: lt.cuda.graph: functions that are captured and launched as a whole give
-- what they give when they run.
local both = require "spec.cuda.both"
local counts = require "spec.cuda.counts"
local lt = require "ltrain"
local nn = lt.nn

local cuda <const> = lt.cuda
local STEPS <const> = 20

local function random(...) return lt.randn { ... }:cuda() end

-- Steps of a network; `wrap` makes the function of a step the one that is called.
local function train(wrap, options)
  lt.seed(3)
  local net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 8),
    nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 3)):cuda()
  local optimizer = lt.optim[options.optimizer or "Adam"](net:parameters(),
    { lr = 0.05, weight_decay = 0.01 })
  local scheduler = lt.optim.StepLR(optimizer, 3, { gamma = 0.7 })
  local step = wrap(function(batch)
    optimizer:zero_grad()
    local loss = nn.functional.cross_entropy(net(batch.x), batch.y)
    loss:backward()
    optimizer:clip_gradients(0.5)
    optimizer:step()
    return loss, { norm = net[1].weight.grad:norm() }
  end)
  local all = {}
  for k = 1, STEPS do
    local n = options.last and k == STEPS and 3 or 7
    local loss, more = step { x = random(n, 6), y = lt.randint(0, 3, { n }):cuda() }
    scheduler:step()
    all[2 * k - 1], all[2 * k] = loss, more.norm
  end
  for _, parameter in ipairs(net:parameters()) do all[#all + 1] = parameter end
  all[#all + 1] = lt.rand({ 4 }, { device = "cuda" }) -- random numbers go on where they would be
  return all, step
end

local function plain(fn) return fn end

local function same(got, want)
  assert.equal(#want, #got)
  for k = 1, #want do both.same(got[k], want[k], ("value %d"):format(k)) end
end

describe("lt.cuda.graph", function()
  for _, name in ipairs { "Adam", "AdamW", "SGD", "RMSprop" } do
    both.it(("trains with %s, dropout, clipping and a scheduler to the same bits"):format(name),
      function()
        local want = train(plain, { optimizer = name })
        local got, step = train(cuda.graph, { optimizer = name })
        same(got, want)
        assert.same({ 2, 1, STEPS - 3 }, { step.called, step.captured, step.launched })
      end)
  end

  -- Operations that draw, each with grids beside those that have the key.
  local draws = {
    rand = function() return lt.rand({ 5, 3 }, { device = "cuda", dtype = "f64" }) end,
    randn = function() return lt.randn({ 9 }, { device = "cuda" }) end,
    randint = function() return lt.randint(0, 9, { 7 }, { device = "cuda" }) end,
    bernoulli = function(x) return x:sigmoid():bernoulli() end,
    multinomial = function(x) return x:exp():multinomial(4) end,
    randperm = function() return lt.randperm(33, { device = "cuda" }) end,
    ["attention of f32"] = function(_, q)
      return lt.scaled_dot_product_attention(q, q, q, { dropout_p = 0.4 })
    end,
    ["attention of bf16"] = function(_, q)
      q = q:to "bf16"
      return lt.scaled_dot_product_attention(q, q, q, { dropout_p = 0.4, causal = true })
    end,
  }
  for name, draw in require("ltrain.core.tree").pairs(draws) do
    both.it("draws the numbers of each call: " .. name, function()
      local function run(wrap)
        lt.seed(11)
        local all, fn = {}, wrap(draw)
        for k = 1, 8 do
          all[2 * k - 1] = fn(random(3, 12), random(1, 2, 8, 16))
          all[2 * k] = lt.rand({ 2 }, { device = "cuda" })
        end
        return all
      end
      same(run(cuda.graph), run(plain))
    end)
  end

  both.it("repeats dropout of attention in backward", function()
    for _, dtype in ipairs { "f32", "bf16" } do
      local function run(wrap)
        lt.seed(12)
        local all, w = {}, lt.parameter(random(16, 16))
        local fn = wrap(function(q)
          w.grad = nil
          local k = q:matmul(w):to(dtype)
          local y = lt.scaled_dot_product_attention(k, k, k, { dropout_p = 0.3 })
          y:to("f32"):square():sum():backward()
          return w.grad
        end)
        for i = 1, 6 do all[i] = fn(random(1, 2, 8, 16)):clone() end
        return all
      end
      same(run(cuda.graph), run(plain))
    end
  end)

  both.it("runs the function for a last batch of another size", function()
    local want = train(plain, { last = true })
    local got, step = train(cuda.graph, { last = true })
    same(got, want)
    assert.same({ 3, 1 }, { step.called, step.captured })
  end)

  both.it("issues one launch for all of it", function()
    if not counts then return pending "only the fake runtime counts" end
    local w = random(5, 5)
    local step = cuda.graph(function(x)
      for _ = 1, 10 do x = (x:matmul(w)):tanh() end
      return x
    end)
    local x = random(4, 5)
    for _ = 1, 3 do step(x) end
    counts()
    step(x)
    local n = counts()
    assert.same({ 3, 0 }, { n.launches, n.waits }) -- the argument's copy, the graph, the result's
  end)

  both.it("copies what the function makes of numbers in each launch", function()
    local steps = cuda.graph(function(x)
      local places = lt.arange(3, { device = "cuda", dtype = "f32" })
      places:add_(x)
      return places, lt.tensor({ { 1, 2 } }, { device = "cuda" })
    end)
    for k = 1, 6 do
      local places, table_ = steps(lt.full({ 3 }, k):cuda())
      collectgarbage()
      assert.same({ k + 0.0, k + 1.0, k + 2.0 }, places:tolist())
      assert.same({ { 1, 2 } }, table_:tolist())
    end
    assert.equal(3, steps.launched)
  end)

  both.it("returns results that later calls leave alone", function()
    local double = cuda.graph(function(x) return x * 2 end)
    local results = {}
    for k = 1, 6 do results[k] = double(lt.full({ 2 }, k):cuda()) end
    for k = 1, 6 do assert.same({ 2.0 * k, 2.0 * k }, results[k]:tolist()) end
  end)

  both.it("keeps what a captured function reads from outside, and writes there", function()
    local total = lt.zeros(2):cuda()
    local add = cuda.graph(function(x) total:add_(x) end)
    for _ = 1, 5 do add(lt.ones(2):cuda()) end
    assert.same({ 5.0, 5.0 }, total:tolist())
    local product = (lt.parameter(random(2)) * total):sum()
    add(lt.ones(2):cuda())
    assert.error_matches(function() product:backward() end, "cuda.graph")
    assert.same({ 6.0, 6.0 }, total:tolist())
  end)

  both.it("adds to the gradients that are there, and to none where there are none", function()
    local function accumulate(wrap)
      lt.seed(4)
      local w, all = lt.parameter(random(3)), {}
      local step = wrap(function(x) (w * x):tanh():sum():backward() end)
      for k = 1, 24 do
        if k % 4 == 1 then w.grad = nil end
        step(random(3))
        all[k] = w.grad:clone()
      end
      return all, step
    end
    local got, step = accumulate(cuda.graph)
    same(got, (accumulate(plain)))
    assert.is_true(step.launched >= 12, step.launched)
  end)

  both.it("captures shapes and values apart", function()
    local scaled = cuda.graph(function(x, by) return x * by end)
    for _ = 1, 5 do
      assert.same({ 3.0 }, scaled(lt.ones(1):cuda(), 3):tolist())
      assert.same({ 4.0 }, scaled(lt.ones(1):cuda(), 4):tolist())
      assert.same({ 3.0, 3.0 }, scaled(lt.ones(2):cuda(), 3):tolist())
    end
    assert.same({ 3, 6, 6 }, { scaled.captured, scaled.called, scaled.launched })
  end)

  both.it("captures at most eight graphs, and then calls the function", function()
    local double = cuda.graph(function(x) return x * 2 end)
    for n = 1, 10 do
      for _ = 1, 4 do assert.same({ n }, double(lt.ones(n):cuda()).shape) end
    end
    assert.equal(8, double.captured)
  end)

  both.it("is refused where the function waits for the GPU, with the line", function()
    local step = cuda.graph(function(x) return x:sum():item() end)
    local x = lt.ones(2):cuda()
    assert.equal(2.0, step(x))
    assert.equal(2.0, step(x))
    local line = debug.getinfo(1, "l").currentline - 4
    local _, why = pcall(step, x)
    assert.matches("graph_spec.lua:" .. line .. ": .*captured CUDA graph cannot give values", why)
    assert.equal(2.0, x:sum():item()) -- the stream is as it was
    local copy = cuda.graph(function(y) return y + lt.tensor { 1, 2 }:cuda() end)
    for _ = 1, 2 do copy(x) end
    assert.error_matches(function() copy(x) end,
      "cannot take values from the host: pass them as arguments")
    local wait = cuda.graph(function(y)
      cuda.synchronize()
      return y
    end)
    for _ = 1, 2 do wait(x) end
    assert.error_matches(function() wait(x) end, "cannot wait for the GPU")
    local other = cuda.graph(function(y)
      return cuda.stream(cuda.Stream(), function() return y * 2 end)
    end)
    for _ = 1, 2 do other(x) end
    assert.error_matches(function() other(x) end, "cannot use another stream or GPU")
  end)

  both.it("refuses optimizers that compute on the host, and wrong arguments", function()
    local w = lt.parameter(random(3, 3))
    local optimizer = lt.optim.Muon({ w }, { lr = 0.1 })
    local step = cuda.graph(function(x)
      optimizer:zero_grad();
      (w:matmul(x)):sum():backward()
      optimizer:step()
    end)
    for _ = 1, 2 do step(random(3, 3)) end
    assert.error_matches(function() step(random(3, 3)) end,
      "cuda.graph: a step of .*Muon.* cannot be captured")
    assert.error_matches(function() step(lt.ones(2)) end,
      "argument%[1%] is on cpu: pass tensors of the GPU")
    assert.error_matches(function() step(w) end, "argument%[1%] requires grad")
    assert.error_matches(function() cuda.graph(3) end, "cuda.graph: needs a function: got 3")
  end)

  both.it("is a part of the function that calls it while that is captured", function()
    local inner = cuda.graph(function(x) return x + 1 end)
    local outer = cuda.graph(function(x) return inner(x) * 2 end)
    for k = 1, 5 do assert.same({ 2.0 * k + 2 }, outer(lt.full({ 1 }, k):cuda()):tolist()) end
  end)

  both.it("frees its memory with the graph", function()
    local x = random(64, 64)
    collectgarbage()
    cuda.empty_cache()
    local before = cuda.mem_get_info()
    do
      local step = cuda.graph(function(y) return (y:matmul(y)):tanh() end)
      for _ = 1, 4 do step(x) end
    end
    collectgarbage()
    collectgarbage()
    cuda.empty_cache()
    assert.equal(before, (cuda.mem_get_info()))
  end)
end)
