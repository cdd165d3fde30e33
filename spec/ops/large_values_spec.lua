-- spec/ops/large_values_spec.lua: logits far from 0 cost no precision: the maximum goes first.
local lt = require "ltrain"

-- A row shifted by `shift`, exact in each dtype, and its log_softmax by the formula.
local LOGITS <const> = {0, 1, -1, 2, 0.5, -2, 0, 1}
local function row(shift, dtype)
  local list = {}
  for i, v in ipairs(LOGITS) do list[i] = shift + v end
  return lt.tensor(list, {dtype = dtype})
end
local function expected()
  local sum, list = 0, {}
  for _, v in ipairs(LOGITS) do sum = sum + math.exp(v) end
  for i, v in ipairs(LOGITS) do list[i] = v - math.log(sum) end
  return list
end
local SHIFT <const> = {f32 = 1048576, f64 = 2.0 ^ 49, bf16 = 64, f16 = 512}
local WITHIN <const> = {f32 = 1e-6, f64 = 1e-14, bf16 = 1e-2, f16 = 2e-3}

local function near(wanted, got, within, what)
  assert.is_true(math.abs(wanted - got) <= within,
    ("%s: wanted %.17g, got %.17g"):format(what, wanted, got))
end

-- Each layout takes another loop: one long row, short rows, columns.
local function layouts(x)
  local n = #x.shape == 1 and x.shape[1] or error("a row is wanted")
  local long = lt.cat{x, lt.full({4096}, -math.huge, {dtype = x.dtype})}
  return {
    long = {long:view(1, n + 4096), 2}, short = {x:view(1, n):expand(3, n):clone(), 2},
    columns = {x:view(n, 1):expand(n, 5):clone(), 1},
  }
end

describe("large logits", function()
  for _, dtype in ipairs{"f32", "f64", "bf16", "f16"} do
    it("keep log_softmax exact: " .. dtype, function()
      local small = dtype == "bf16" and lt.tensor({64, 65, 63.5}, {dtype = dtype})
      local x = small or row(SHIFT[dtype], dtype)
      local wanted = expected()
      if small then
        local sum = 1 + math.exp(1) + math.exp(-0.5)
        wanted = {-math.log(sum), 1 - math.log(sum), -0.5 - math.log(sum)}
      end
      for name, case in pairs(layouts(x)) do
        local got = case[1]:log_softmax(case[2])
        if case[2] == 1 then got = got:t() end
        for i, v in ipairs(wanted) do
          near(v, got[1][i]:item(), WITHIN[dtype], name .. " " .. i)
        end
      end
    end)
  end

  for _, dtype in ipairs{"f32", "f64"} do
    it("keep cross_entropy and its gradient exact: " .. dtype, function()
      local wanted = expected()
      local near_zero, far = row(0, dtype), row(SHIFT[dtype], dtype)
      for name, case in pairs(layouts(far)) do
        if case[2] == 2 then
          local x = case[1]:clone():requires_grad_()
          local ids = lt.full({x.shape[1]}, 3)
          local loss = lt.cross_entropy(x, ids)
          near(-wanted[4], loss:item(), WITHIN[dtype], name)
          loss:backward()
          near(0, x.grad:sum():item(), WITHIN[dtype], name .. " sum of gradients")
          for i = 1, #wanted do
            local p = (math.exp(wanted[i]) - (i == 4 and 1 or 0)) / x.shape[1]
            near(p, x.grad[1][i]:item(), WITHIN[dtype], name .. " gradient " .. i)
          end
        end
      end
      for _, options in ipairs{{label_smoothing = 0.3}, {reduction = "sum"}} do
        local shares = near_zero:softmax(1):view(1, -1)
        for _, target in ipairs{lt.tensor{2}, shares} do
          local a = near_zero:view(1, -1):clone():requires_grad_()
          local b = far:view(1, -1):clone():requires_grad_()
          local la, lb = lt.cross_entropy(a, target, options), lt.cross_entropy(b, target, options)
          near(la:item(), lb:item(), WITHIN[dtype], "shifted loss")
          la:backward()
          lb:backward()
          near(0, (a.grad - b.grad):abs():max():item(), WITHIN[dtype], "shifted gradient")
        end
      end
    end)
  end

  it("keep attention's gradients exact", function()
    local q = lt.tensor({{{1024.0, 1}}})
    local k = lt.tensor({{{1024.0, 0}, {1024, 1}, {1024, -2}}})
    local v = lt.tensor({{{1.0, 2}, {3, 5}, {-1, 4}}})
    local function gradients(shift)
      local kk = (k * lt.tensor{shift, 1}):requires_grad_()
      local qq, vv = q:clone(), v:clone():requires_grad_()
      lt.scaled_dot_product_attention(qq, kk, vv, {scale = 1}):sum():backward()
      return vv.grad
    end
    local wanted, got = gradients(0), gradients(1)
    near(0, (wanted - got):abs():max():item(), 1e-6, "gradient of v")
  end)
end)
