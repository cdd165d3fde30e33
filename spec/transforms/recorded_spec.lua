-- spec/transforms/recorded_spec.lua: transforms without chance against torchvision and PIL.
local lt = require "ltrain"
local recorded = require "spec.recorded"

local function source(channels)
  local k = lt.arange(channels):view(-1, 1, 1)
  local y, x = lt.arange(11):view(-1, 1), lt.arange(14)
  local value = k * 83 + y * 37 + x * 29 + x * y * 5
  return (value % 256):to "u8"
end

local u8 <const> = source(3)
local env <const> = { T = lt.transforms, u8 = u8, f32 = u8:to "f32" / 255, grey = source(1) }

local function values_of(case)
  local raw = case.values:gsub("%x%x", function(pair) return string.char(tonumber(pair, 16)) end)
  local format, list, at = case.dtype == "f32" and "<f" or "B", {}, 1
  while at <= #raw do list[#list + 1], at = format:unpack(raw, at) end
  return lt.tensor(list, { dtype = case.dtype }):view(table.unpack(case.shape))
end

describe("transforms", function()
  for _, case in ipairs(recorded "spec/transforms/recorded.jsonl") do
    it("give what torchvision gives: " .. case.code, function()
      local got <const> = assert(load("return " .. case.code, "case", "t", env))()
      assert.equal(case.dtype, got.dtype)
      assert.same(case.shape, got.shape)
      local apart <const> = (got:to "f32" - values_of(case):to "f32"):abs()
      local share <const> = apart:gt(case.apart):to "f32":mean():item()
      assert(share <= case.few, ("%g of the values differ, by up to %g"):format(share,
        apart:max():item()))
    end)
  end
end)
