-- spec/profiler/profiler_spec.lua: `profiler = "simple"` and `"trace"`.
local c = require "ltrain.c"
local console = require "ltrain.core.console"
local lt = require "ltrain"
local profiler_ranges = require "ltrain.core.profiler_ranges"
local tiny = require "spec.trainer.tiny"

local root
before_each(function() root = tiny.folder() end)
after_each(function() os.execute("rm -rf '" .. root .. "'") end)

-- Fits three batches for two epochs; returns the Trainer and what it has written to the console.
local function fit(profiler, net)
  local before, written = console.write, {}
  console.write = function(text) written[#written + 1] = text end
  local trainer = tiny.trainer { logger = true, default_root_dir = root, max_epochs = 2,
    profiler = profiler }
  local ok, message = pcall(trainer.fit, trainer, net or tiny.Line(), tiny.same(3))
  console.write = before
  return trainer, table.concat(written), ok, message
end

local function calls_of(text, name)
  return math.tointeger(tonumber(text:match("\n" .. name .. " +(%d+) ")))
end

describe("profiler = 'simple'", function()
  it("counts and times hooks, reading and operations", function()
    local trainer, text = fit "simple"
    assert.same({ 6, 6, 6, 6, 6 }, { calls_of(text, "training_step"), calls_of(text, "backward"),
      calls_of(text, "optimizer_step"), calls_of(text, "dataloader_next"),
      calls_of(text, "sgd_step") })
    assert.matches("^profile of fit: %d+%.%d%d%d s\n", text)
    assert.equal(text, c.io.read_file(trainer.log_dir .. "/profile.txt"))
    assert.is_nil(c.io.kind(trainer.log_dir .. "/trace.json"))
    assert.is_nil(profiler_ranges.open)
  end)

  it("has a table of a fit that failed too, and leaves nothing behind", function()
    local net = tiny.Line()
    function net:on_train_batch_end(_, _, index)
      if index == 1 then error "it broke" end
    end
    local trainer, text, ok, message = fit("simple", net)
    assert.is_false(ok)
    assert.matches("it broke", message)
    assert.equal(2, calls_of(text, "training_step"))
    assert.is_nil(profiler_ranges.open)
    assert.equal("failed", assert(lt.runs.read(trainer.log_dir)).status)
    local _, after = fit(nil)
    assert.equal("", after)
  end)

  it("takes no more time than there was", function()
    local _, text = fit "simple"
    local total = tonumber(text:match "^profile of fit: ([%d.]+) s")
    local sum, is_operation = 0, false
    for line in text:gmatch "[^\n]+" do
      is_operation = is_operation or line:find "^operation" ~= nil
      local seconds = line:match "^%S+ +%d+ +[%d.]+ +([%d.]+) "
      if is_operation and seconds then sum = sum + tonumber(seconds) end
    end
    assert.is_true(sum <= total + 0.01)
  end)
end)

describe("profiler = 'trace'", function()
  it("writes events that chrome://tracing shows", function()
    local trainer = fit "trace"
    local text = c.io.read_file(trainer.log_dir .. "/trace.json")
    local trace = assert(c.io.json_decode(text, { plain = true }))
    assert.equal("ms", trace.displayTimeUnit)
    local steps, operations, last = 0, 0, {}
    for _, event in ipairs(trace.traceEvents) do
      assert.is_true(event.ph == "M" or event.ph == "X" and event.dur >= 0 and event.ts >= 0)
      if event.name == "training_step" then steps, last = steps + 1, event end
      if event.cat == "operation" then
        operations = operations + 1
        assert.same({ 0, 1 }, { event.pid, event.tid })
      end
    end
    assert.equal(6, steps)
    assert.is_true(operations > 6 * 4)
    local within = 0
    for _, event in ipairs(trace.traceEvents) do
      if event.cat == "operation" and event.ts >= last.ts
        and event.ts + event.dur <= last.ts + last.dur then
        within = within + 1
      end
    end
    assert.is_true(within >= 4) -- of (w x - 2 x) squared and its mean
  end)
end)

describe("profiler = 'advanced'", function()
  it("times functions and lines of the script", function()
    local net = tiny.Line()
    local function twice(x)
      local y = x * 2
      return y
    end
    local line = debug.getinfo(1, "l").currentline
    function net:training_step(x)
      local y = twice(twice(x))
      local loss = self:loss(y)
      return loss
    end
    local _, text = fit("advanced", net)
    local file = "spec/profiler/profiler_spec.lua:"
    local function row(name) return calls_of(text, (name:gsub("%.", "%%."))) end
    assert.equal(6, row("training_step " .. file .. line + 1))
    assert.equal(12, row("twice " .. file .. line - 4))
    assert.same({ 6, 6, 12 }, { row(file .. line + 2), row(file .. line + 3),
      row(file .. line - 3) })
    assert.is_nil(text:find("ltrain.trainer", 1, true))
    assert.is_nil((debug.gethook()))
  end)
end)

describe("trainer.profiler", function()
  it("times parts that the script names", function()
    local net = tiny.Line()
    function net:training_step(x)
      local profiler = self.trainer.profiler
      profiler:start "outer part"
      local y, two = profiler:profile("inner part", function() return x + 1, 2 end)
      do
        local _ <close> = profiler:profile "block"
        y = y * two
      end
      profiler:stop "outer part"
      return self:loss(y)
    end
    local trainer, text = fit("simple", net)
    assert.same({ 6, 6, 6 }, { calls_of(text, "outer part"), calls_of(text, "inner part"),
      calls_of(text, "block") })
    assert.equal(text, trainer.profiler:summary())
    local plain = fit(nil, net)
    assert.equal("", plain.profiler:summary())
  end)

  it("raises for what was not started, and what was", function()
    local profiler = tiny.trainer().profiler
    assert.matches("profiler:stop: 'a' was not started",
      tiny.error_of(profiler.stop, profiler, "a"))
    profiler:start "a"
    assert.matches("profiler:start: 'a' has started already",
      tiny.error_of(profiler.start, profiler, "a"))
    profiler:stop "a"
    assert.matches("profiler:start: the name must be a string",
      tiny.error_of(profiler.start, profiler, 3))
  end)
end)

describe("profiler", function()
  it("is one of four words", function()
    assert.matches("Trainer: profiler must be 'simple', 'advanced', 'trace' or 'xla': got "
      .. "'sample'; did you mean 'simple'?",
      tiny.error_of(tiny.trainer, { profiler = "sample" }), 1, true)
  end)

  it("looks at operations within its scope alone, composites not counted", function()
    local x = lt.ones(3)
    local profile = c.runtime.profile(true)
    x:add(1)
    x:view(3, 1)
    local before = profile:count()
    profile:close()
    x:add(1)
    assert.same({ 2, 2 }, { before, profile:count() })
    assert.equal("add", (profile:event(1)))
    local names = {}
    for i, op in ipairs(profile:ops()) do names[i] = op[1] .. " " .. op[2] end
    assert.equal(2, #names)
    assert.has_error(function() profile:event(3) end)
  end)

  it("sees what another trace sees", function()
    local list = {}
    do
      local _ <close> = c.runtime.trace(list)
      local profile <close> = c.runtime.profile(false)
      lt.ones(2):add(1)
      assert.equal(1, profile:ops()[1][2])
    end
    assert.equal("add", list[#list].op)
  end)
end)
