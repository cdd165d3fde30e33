-- spec/cli/error_file_spec.lua: a script that fails writes why to the file that its launcher names:
-- that of `ltrain launch`, or torchrun's in torchrun's format.
local c = require "ltrain.c"
local child = require "spec.cli.child"

-- What a script writes to the file in this variable; nil: nothing.
local function written(variable, script)
  local folder = child.folder()
  child.write(folder .. "/script.lua", script)
  local path = folder .. "/error.json"
  local status = child.run({ "run", "script.lua" }, { dir = folder, env = { [variable] = path } })
  local text = c.io.kind(path) and c.io.read_file(path)
  child.remove(folder)
  return text and c.io.json_decode(text, { plain = true }), status
end

local FIT <const> = [[
local lt = require "ltrain"
local net = lt.nn.Linear(1, 1)
function net:training_step(x)
  if self.trainer.global_step == 2 then error "a number is wrong" end
  return self(x):mean()
end
function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
lt.Trainer{max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false}:fit(net,
  {lt.ones(1, 1), lt.ones(1, 1), lt.ones(1, 1)})
]]

describe("a script that fails", function()
  it("writes its message, rank and step for ltrain launch", function()
    local report, status = written("LTRAIN_ERROR_FILE", FIT)
    assert.equal(1, status)
    assert.matches("^script.lua:4: a number is wrong", report.message)
    assert.same({ 0, 2 }, { math.tointeger(report.rank), math.tointeger(report.step) })
    assert.is_true(math.abs(report.time - c.runtime.time()) < 600)
  end)

  it("writes what PyTorch's record_exception writes for torchrun", function()
    local report = written("TORCHELASTIC_ERROR_FILE", "error 'boom'")
    assert.equal("script.lua:1: boom", report.message.message)
    assert.matches("^%d+$", report.message.extraInfo.timestamp)
    assert.matches("stack traceback", report.message.extraInfo.py_callstack, 1, true)
  end)

  it("writes of a script that cannot be compiled, too", function()
    local report = written("LTRAIN_ERROR_FILE", "local = 1")
    assert.matches("script.lua:1: <name> expected", report.message, 1, true)
  end)

  it("writes nothing when it ends well", function()
    local report, status = written("LTRAIN_ERROR_FILE", "print 'done'")
    assert.equal(0, status)
    assert.is_nil(report)
  end)
end)
