-- spec/cli/limits_spec.lua: what the system sets bounds to: threads, disks, files, a terminal's
-- abilities, and the first milliseconds.
-- tags: slow
local child = require "spec.cli.child"

local BINARY <const> = os.getenv("LTRAIN") or arg[-1] or "ltrain"

-- Status and both streams of a shell command in a folder of its own.
local function shell(command)
  local folder = child.folder()
  local pipe <close> = assert(io.popen(("cd '%s' && { %s; } 2>&1; echo \"exit $?\""):format(folder,
    command:gsub("LTRAIN", function() return "'" .. BINARY .. "'" end))))
  local text, status = pipe:read "a":match "^(.*)exit (%d+)\n$"
  child.remove(folder)
  return tonumber(status), text
end

describe("the binary", function()
  it("takes a number of threads that no machine has for the most it can use", function()
    local work <const> = "local lt = require 'ltrain' "
      .. "print(require 'ltrain.c'.runtime.get_threads(), "
      .. "lt.ones(300, 300):matmul(lt.ones(300, 300)):exp():sum():item() > 1)"
    local status, text = shell(("OMP_NUM_THREADS=999999 LTRAIN -e %q"):format(work))
    assert.equal("ltrain: note: OMP_NUM_THREADS=999999: 1024 threads are used\n1024\ttrue\n", text)
    assert.equal(0, status)
    status, text = shell(("echo %q >s.lua; LTRAIN run s.lua --threads 99999999999"):format(work))
    assert.equal("ltrain: note: --threads 99999999999: 1024 are used\n1024\ttrue\n", text)
    assert.equal(0, status)
  end)

  it("fails when what it prints cannot be written", function()
    for _, words in ipairs { "--help", "run --help", "-e 'print(1)'", "-e 'print(1) os.exit(0)'" }
    do
      local status, text = shell("LTRAIN " .. words .. " >/dev/full")
      assert.equal("ltrain: cannot write standard output\n", text)
      assert.equal(1, status)
    end
  end)

  it("raises where a file may not grow further", function()
    local status, text = shell([[bash -c 'ulimit -f 8; exec "$0" -e "$1"' LTRAIN ]]
      .. [['print(lt.save("x.st", {a = lt.ones(100000)}))']])
    assert.equal("nil\tsave: cannot write x.st: File too large\n", text)
    assert.equal(0, status)
  end)

  it("is never puzzled by a Ctrl-C in its first milliseconds", function()
    for step = 0, 19 do
      local _, text = shell(("echo 'while true do end' >s.lua; "
        .. "env --default-signal=INT timeout -s INT %.4f LTRAIN run s.lua"):format(0.001
        + 0.0004 * step))
      assert.matches("^[^\n]*\n?$", text)
      if text ~= "" then assert.matches("interrupted\n$", text) end
    end
  end)

  it("draws no bar on a terminal that knows no escape codes", function()
    local program <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend "Net"
function Net:init() self.layer = lt.nn.Linear(1, 1) end
function Net:training_step(x) return self.layer(x[1]):mean() end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
return {model = Net(), data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 1)))}
]]
    local folder = child.folder()
    child.write(folder .. "/s.lua", program)
    local function shown(term)
      local _, text = child.on_terminal("ltrain run s.lua --max_epochs 2",
        { dir = folder, env = { TERM = term } })
      return text
    end
    local plain, rich = shown "dumb", shown "xterm"
    child.remove(folder)
    if not plain then return pending "script is missing" end
    assert.matches("epoch 1", plain, 1, true)
    assert.not_matches("\27", plain, 1, true)
    assert.matches("\27", rich, 1, true)
  end)
end)
