-- spec/cuda/capability_spec.lua: a GPU of compute capability 7.5, which has f16, but neither bf16
-- nor TF32, nor what the attention of tensor cores is made of: the same results by other kernels.
-- tags: slow
local child = require "spec.cli.child"
local counts = require "spec.cuda.counts"

-- Largest differences between the CPU and the GPU, of results and gradients, for each dtype.
local SCRIPT <const> = [[
local lt = require "ltrain"
lt.set_float32_matmul_precision "high"

local function parts(device, dtype)
  lt.seed(3)
  local all = {}
  local function leaf(...)
    local t = lt.randn(...):to(dtype):to(device)
    t.requires_grad = true
    all[#all + 1] = t
    return t
  end
  local function attend(t) return lt.scaled_dot_product_attention(t, t, t, { causal = true }) end
  local y = lt.nn.functional.linear(leaf(6, 16), leaf(8, 16), leaf(8)):sum()
    + lt.conv2d(leaf(2, 3, 6, 6), leaf(4, 3, 3, 3)):sum() + attend(leaf(1, 2, 8, 16)):sum()
    + leaf(2, 5, 7):matmul(leaf(2, 7, 3)):sum()
  y:to("f32"):backward()
  local list = { y }
  for k, t in ipairs(all) do list[k + 1] = t.grad end
  return list
end

for _, dtype in ipairs { "f32", "f16", "bf16" } do
  local here, there, most = parts("cpu", dtype), parts("cuda", dtype), 0
  for k, t in ipairs(here) do
    local a, b = t:to "f64", there[k]:to("cpu"):to "f64"
    local off = ((a - b):abs() / a:abs():clamp(1)):max():item()
    most = off <= most and most or off
  end
  local exact <const> = os.getenv "FAKERT_CAPABILITY" == "75" and 1e-5 or 0.01
  print(dtype, most <= (dtype == "f32" and exact or dtype == "f16" and 0.01 or 0.06) or most)
end
]]

describe("a GPU of compute capability 7.5", function()
  local title <const> = "computes what the CPU does in f32, f16 and bf16"
  if not counts then return pending(title .. " (only the fake runtime has one)") end
  it(title, function()
    local folder = child.folder()
    child.write(folder .. "/script.lua", SCRIPT)
    for _, capability in ipairs { "75", "80", "120" } do
      local status, out, err = child.run({ "script.lua" }, { dir = folder,
        env = { FAKERT_CAPABILITY = capability, LTRAIN_BACKENDS = os.getenv "LTRAIN_BACKENDS" } })
      assert.equal("f32\ttrue\nf16\ttrue\nbf16\ttrue\n", out, capability .. ": " .. err)
      assert.equal(0, status)
    end
    child.remove(folder)
  end)
end)
