-- spec/host/locale_spec.lua: no output or input of ours depends on the locale, which a host or a
-- script may have set; the host's own stays as it is.
local c = require "ltrain.c"
local child = require "spec.cli.child"

local build = os.getenv("LT_BUILD")

-- A locale with decimal commas, made for this file in a folder of its own.
local NAME <const> = "de_DE.iso88591"
local folder = child.folder()
local made = os.execute(("localedef -i de_DE -f ISO-8859-1 '%s/%s' 2>/dev/null"):format(folder,
  NAME))
teardown(function() child.remove(folder) end)

local SCRIPT <const> = [[
local lt = require "ltrain"
assert(os.setlocale("]] .. NAME .. [["))
local Net = lt.Module:extend("Net")
function Net:init() self.w = lt.parameter(lt.tensor {0.5}) end
function Net:training_step(x)
  local loss = (x * self.w - 1):square():mean()
  self:log("vl", loss, {on_epoch = true, on_step = false})
  return loss
end
function Net:validation_step(x) self:log("val", (x * self.w):mean()) end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.125}) end
local saving = lt.callbacks.ModelCheckpoint {monitor = "vl", filename = "{vl:.2f}"}
local trainer = lt.Trainer {max_epochs = 1, enable_progress_bar = false, callbacks = {saving},
  enable_model_summary = false, num_sanity_val_steps = 0}
trainer:fit(Net(), {lt.ones(2)})
trainer:validate(Net(), {lt.ones(2)})
print(lt.tensor {0.5, 1.25})
assert(lt.save("saved.safetensors", {rate = 0.1}))
print(lt.load("saved.safetensors").rate == 0.1)
print(select(2, pcall(lt.arange, 0, 1, -0.5)))
]]

local WANTED <const> = [[
val                0.5
tensor([0.5000, 1.2500])
true
]]

-- Runs the script by a command; its standard output, and the folder that it ran in.
local function run(command, more)
  local own = folder .. "/run"
  child.remove(own)
  assert(c.io.make_folder(own))
  assert(c.io.write_file(own .. "/script.lua", SCRIPT .. (more or "")))
  local pipe = assert(io.popen(("cd '%s' && LOCPATH='%s' %s script.lua 2>err"):format(own, folder,
    command)))
  local text = pipe:read("a")
  assert(pipe:close(), text .. (c.io.read_file(own .. "/err") or ""))
  return text, own .. "/ltrain_logs/version_0"
end

local function check_files(where)
  assert.equal("epoch,step,vl,val\n0,0,0.25,\n1,1,,0.5\n", c.io.read_file(where
    .. "/metrics.csv"))
  assert.same({ "vl=0.25.ckpt" }, c.io.list_folder(where .. "/checkpoints"))
end

describe("in a locale with decimal commas", function()
  if not made then
    pending("needs localedef and the sources of de_DE (package locales)")
    return
  end

  it("a script of the program writes and reads points", function()
    local out, where = run(("'%s' run"):format(os.getenv("LTRAIN") or arg[-1]),
      'print(("%.1f"):format(0.5), 0.5)')
    local text = WANTED:gsub("%p", "%%%0")
    assert.matches("^" .. text .. ".*arange: step %-0%.5 does not lead.*\n0%.5\t0%.5\n$", out)
    check_files(where)
  end)

  it("a guest in stock Lua does, and what the host writes has its commas", function()
    if not build then
      pending("needs LT_BUILD, the build folder")
      return
    end
    local preload = os.getenv("LT_PRELOAD")
    local out, where = run(("env %s LUA_CPATH_5_4='%s/lua/5.4/?.so' lua5.4"):format(
      preload and "LD_PRELOAD=" .. preload or "", build), [[
      print(("%.1f"):format(0.5))
      for _ in trainer:steps("fit", Net(), {lt.ones(2)}) do print(("%.1f"):format(0.5)) break end
      print(("%.1f"):format(0.5))
    ]])
    assert.matches("0,5\n0,5\n0,5\n$", out)
    assert.matches("tensor([0.5000, 1.2500])", out, 1, true)
    check_files(where)
  end)
end)
