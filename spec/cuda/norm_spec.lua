-- spec/cuda/norm_spec.lua: norms and cross-entropy of a GPU, and their gradients, are the CPU's.
-- tags: kernels, slow, threads
local both = require "spec.cuda.both"
local lt = require "ltrain"

local BOUND <const> = { f32 = 5e-5, f64 = 1e-11, bf16 = 4e-2 }

local function leaf(t, device)
  if not t then return nil end
  t = t:to(device):detach()
  t.requires_grad = true
  return t
end

-- fn(x, weight, bias, device): its results and the gradients of all three.
local function check(what, inputs, fn)
  local function run(device)
    local x, w, b = leaf(inputs.x, device), leaf(inputs.w, device), leaf(inputs.b, device)
    local y, mean, variance = fn(x, w, b, device)
    lt.seed(5)
    ;(y * lt.randn(y.shape):to(y.dtype):to(device)):sum():backward()
    return { y = y:detach(), x = x.grad, w = w and w.grad, b = b and b.grad, mean = mean,
             variance = variance }
  end
  local want, got = run("cpu"), run("cuda")
  for name, t in pairs(want) do
    both.close(got[name], t, BOUND[inputs.x.dtype], ("%s: %s"):format(what, name))
  end
end

describe("a GPU's layer norm", function()
  both.it("is the CPU's over one dim or two, weighted or not", function()
    local cases = { { { 7, 10 }, 1 }, { { 3, 1030 }, 1 }, { { 33, 7, 3 }, 2 }, { { 200, 66 }, 1 } }
    for _, case in ipairs(cases) do
      local size, n = case[1], case[2]
      local shape = { table.unpack(size, #size - n + 1) }
      for _, dtype in ipairs { "f32", "f64", "bf16" } do
        for mode = 1, 3 do
          local inputs = { x = lt.randn(size):add(1):to(dtype),
                           w = mode > 1 and lt.rand(shape) or nil,
                           b = mode > 2 and lt.randn(shape) or nil }
          check(("%s [%s] %d"):format(dtype, table.concat(size, ", "), mode), inputs,
                function(x, w, b) return lt.layer_norm(x, shape, w, b) end)
        end
      end
    end
  end)
end)

describe("a GPU's RMS norm", function()
  both.it("is the CPU's over one dim or two, weighted or not", function()
    for _, case in ipairs { { { 7, 10 }, 1 }, { { 3, 1030 }, 1 }, { { 33, 7, 3 }, 2 },
      { { 200, 66 }, 1 }, { { 2, 14000 }, 1 } } do
      local size, n = case[1], case[2]
      local shape = { table.unpack(size, #size - n + 1) }
      for _, dtype in ipairs { "f32", "f64", "bf16" } do
        for mode = 1, 2 do
          local inputs = { x = lt.randn(size):add(1):to(dtype),
                           w = mode > 1 and lt.rand(shape) or nil }
          check(("%s [%s] %d"):format(dtype, table.concat(size, ", "), mode), inputs,
                function(x, w) return lt.rms_norm(x, shape, w) end)
        end
      end
    end
  end)

  both.it("of no rows has gradients of zero", function()
    check("[0, 4]", { x = lt.zeros(0, 4), w = lt.ones(4) },
          function(x, w) return lt.rms_norm(x, { 4 }, w) end)
  end)
end)

describe("a GPU's group norm", function()
  both.it("is the CPU's of rows and planes, weighted or not", function()
    local cases = { { { 7, 12 }, 4 }, { { 3, 6, 5 }, 6 }, { { 5, 8, 4, 8 }, 2 },
      { { 2, 6, 37, 41 }, 3 }, { { 2, 2, 13000 }, 1 }, { { 130, 66 }, 33 } }
    for _, case in ipairs(cases) do
      local size, groups = case[1], case[2]
      for _, dtype in ipairs { "f32", "f64", "bf16" } do
        for mode = 1, 4 do
          local x = lt.randn(size):add(1):to(dtype)
          if mode == 4 then x = x:transpose(1, 2):contiguous():transpose(1, 2) end
          local inputs = { x = x, w = mode > 1 and lt.rand { 2 * size[2] } or nil,
                           b = mode > 2 and lt.randn { size[2] } or nil }
          check(("%s [%s] %d"):format(dtype, table.concat(size, ", "), mode), inputs,
                function(a, w, b)
                  w = w and w:slice(1, 1, 2 * size[2], 2)
                  return lt.group_norm(a, groups, w, b)
                end)
        end
      end
    end
  end)

  both.it("of no rows has gradients of zero", function()
    check("[0, 4, 3]", { x = lt.zeros(0, 4, 3), w = lt.ones(4), b = lt.ones(4) },
          function(x, w, b) return lt.group_norm(x, 2, w, b) end)
  end)
end)

describe("a GPU's batch norm", function()
  both.it("is the CPU's in planes, channels-last and rows, with given statistics", function()
    for _, size in ipairs { { 300, 5 }, { 3, 4, 7, 7 }, { 2, 33, 3, 4 }, { 2, 3, 64, 64 } } do
      local c = size[2]
      for mode = 1, 3 do
        local x = lt.randn(size):add(3)
        if mode == 2 and #size > 2 then x = x:movedim(2, #size):contiguous():movedim(#size, 2) end
        local m, v = lt.randn { c }, lt.rand { c }:add(0.5)
        check(("[%s] %d"):format(table.concat(size, ", "), mode),
              { x = x, w = mode > 1 and lt.rand { c } or nil,
                b = mode > 1 and lt.randn { c } or nil },
              function(a, w, b, device)
                if mode == 3 then return lt.batch_norm(a, m:to(device), v:to(device), w, b) end
                local y, mean, variance = lt.batch_norm(a, nil, nil, w, b, { eps = 1e-5 })
                return y, mean:detach(), variance:detach()
              end)
      end
    end
  end)
end)

describe("a GPU's cross-entropy", function()
  both.it("is the CPU's of ids and probabilities, with weights and smoothing", function()
    for _, size in ipairs { { 7, 10 }, { 2, 1100 }, { 33, 7, 3 } } do
      local rows = { size[1], size[3] }
      local ids = lt.randint(0, size[2], rows):masked_fill(lt.rand(rows):lt(0.2), -100)
      for _, target in ipairs { ids, lt.randn(size):softmax(2) } do
        for _, smoothing in ipairs { 0, 0.1 } do
          for _, reduction in ipairs { "mean", "sum", "none" } do
            check(("[%s] %g %s"):format(table.concat(size, ", "), smoothing, reduction),
                  { x = lt.randn(size):mul(3) }, function(x, _, _, device)
                    local weight = lt.arange(size[2]):to("f32"):add(1):to(device)
                    return x:cross_entropy(target:to(device), weight,
                                           { reduction = reduction, label_smoothing = smoothing })
                  end)
          end
        end
      end
    end
  end)

  both.it("refuses ids that are no class", function()
    local x = lt.randn({ 3, 4 }, { device = "cuda" })
    local ids = lt.tensor({ 0, 4, 1 }, { dtype = "i64", device = "cuda" })
    local ok, why = pcall(function() return x:cross_entropy(ids):item() end)
    assert.is_false(ok)
    assert.truthy(tostring(why):find("targets are ids 0..3; got 4 with C = 4", 1, true))
  end)
end)
