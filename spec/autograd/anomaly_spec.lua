-- spec/autograd/anomaly_spec.lua: lt.detect_anomaly, and what the Trainer's second run notes.
local c = require "ltrain.c"
local lt = require "ltrain"

local INF <const> = math.huge

local function parameter(...)
  return lt.parameter(lt.tensor { ... })
end

-- The message of the error that fn raises within the scope.
local function anomaly(fn)
  local ok, message = pcall(lt.detect_anomaly, fn)
  assert(not ok, "nothing was raised")
  return tostring(message)
end

local function noted(fn)
  c.runtime.note_anomalies(fn)
  return c.runtime.anomalies()
end

describe("detect_anomaly", function()
  it("raises where a result is nan", function()
    local x = parameter(-1.0, 4.0)
    assert.matches("anomaly_spec.lua:%d+: log: the result is nan, its inputs are not$",
      anomaly(function() return x:log() end))
  end)

  it("raises where a derivative is nan, with the line of the operation", function()
    local x = parameter(0.0)
    assert.matches("backward: the derivative of mul at [^ ]*anomaly_spec.lua:%d+ is nan; the first "
      .. "inf was made by sqrt at [^ ]*anomaly_spec.lua:%d+",
      anomaly(function()
        local y = x * 0
        local root = y:sqrt()
        root:sum():backward()
      end))
  end)

  it("raises in place too", function()
    local x = parameter(-1.0)
    assert.matches("sqrt_?: the result is nan", anomaly(function()
      local y = x * 1
      y:sqrt_()
    end))
  end)

  it("does not mind infinities, nor what no gradient belongs to", function()
    local x = parameter(-1.0, 0.0)
    local y = lt.detect_anomaly(function()
      lt.tensor({ -1.0 }):log()
      return 1 / (1 + (x * -1000):exp())
    end)
    assert.same({ 0.0, 0.5 }, y:tolist())
  end)

  it("does not blame what is handed a nan", function()
    local nan = lt.tensor { 0 / 0 }
    local x = parameter(1.0)
    local y = lt.detect_anomaly(function()
      local product = x * nan
      return product + 1
    end)
    assert.is_true(y:isnan():item())
  end)

  it("is a scope", function()
    local x = parameter(-1.0)
    do
      local _ <close> = lt.detect_anomaly()
      assert.is_false(pcall(x.log, x))
    end
    assert.is_true(x:log():isnan():item())
  end)
end)

describe("noting anomalies", function()
  it("keeps the first inf and the first nan, forward and backward", function()
    local x = parameter(1000.0)
    local made = noted(function()
      local a = x:exp()
      local b = a / a
      b:sum():backward()
    end)
    assert.matches("^exp at [^ ]*anomaly_spec.lua:%d+$", made.forward.inf)
    assert.matches("^div at ", made.forward.nan)
    assert.same({}, made.aside)
  end)

  it("leaves out infinities that are written", function()
    local x = parameter(1.0, 2.0)
    local made = noted(function()
      return x:masked_fill(lt.tensor { true, false }, -INF):softmax(1)
    end)
    assert.same({ forward = {}, backward = {}, aside = {} }, made)
  end)

  it("names a row of nothing but masked scores", function()
    local x = parameter(1.0, 2.0)
    local made = noted(function()
      return x:masked_fill(lt.tensor { true, true }, -INF):softmax(1)
    end)
    assert.matches("^softmax at ", made.forward.nan)
  end)

  it("distinguishes what no gradient belongs to", function()
    local made = noted(function() return lt.zeros(1):log() end)
    assert.matches("^log at ", made.aside.inf)
    assert.same({}, made.forward)
  end)
end)
