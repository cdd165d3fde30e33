-- spec/parity/recorded_spec.lua: what PyTorch answered to a few hundred random calls; ./dev parity
-- compares many more with a PyTorch that is there.
local recorded = require "spec.recorded"
local subjects = require "spec.parity.subjects"
local written = require "spec.parity.written"

local TOLERANCE <const> = {f64 = 1e-10, f32 = 3e-5, f16 = 4e-3, bf16 = 3e-2}

local function check(got, want, what)
  assert.same(want.shape, got.shape, what)
  assert.equal(want.dtype, got.dtype, what)
  for k, v in ipairs(want.values) do
    local own, bound = got.values[k], (TOLERANCE[want.dtype] or 0) * math.max(1, math.abs(v))
    own = own == true and 1 or own == false and 0 or own
    local same = own == v or (own ~= own and v ~= v) or math.abs(own - v) <= bound
    assert(same, ("%s: element %d is %s, PyTorch gives %s"):format(what, k, own, v))
  end
end

-- A gradient that is not there is zero.
local function zeros_like(want)
  local values = {}
  for k = 1, #(want and want.values or values) do values[k] = 0.0 end
  return want and {shape = want.shape, dtype = want.dtype, values = values}
end

local by_op, names = {}, {}
local calls <const> = recorded "spec/parity/recorded.jsonl"
local samples <const> = recorded "spec/parity/samples.jsonl"
for _, case in ipairs(table.move(samples, 1, #samples, #calls + 1, calls)) do
  if not by_op[case.op] then
    by_op[case.op] = {}
    names[#names + 1] = case.op
  end
  table.insert(by_op[case.op], case)
end

describe("what PyTorch answered", function()
  it("is recorded for a few hundred calls", function() assert.is_true(#calls >= 300) end)

  it("is asked of every operation, layer, optimizer and scheduler but those with a reason",
    function()
      local have, lack = subjects.names()
      assert.same({}, lack)
      for _, name in ipairs(have) do assert(by_op[name], name .. " is not recorded") end
      for name, row in pairs(written) do
        assert(by_op[name] or row.unsampled, name .. " is not recorded")
      end
    end)

  for _, name in ipairs(names) do
    it("is what " .. name .. " gives", function()
      for n, case in ipairs(by_op[name]) do
        local answer = subjects.run(case)
        for k, want in ipairs(case.answer.results) do
          check(answer.results[k], want, ("case %d, result %d"):format(n, k))
        end
        for _, kind in ipairs{"grads", "second"} do
          for k, want in ipairs(case.answer[kind] or {}) do
            local got = (answer[kind] or {})[k] or zeros_like(want)
            if want then check(got, want, ("case %d, %s %d"):format(n, kind, k)) end
          end
        end
      end
    end)
  end
end)
