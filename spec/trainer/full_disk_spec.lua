-- spec/trainer/full_disk_spec.lua: a disk that fills up while a fit saves: a real one.
local child = require "spec.cli.child"

-- A file of about 96 KiB at each epoch; all are kept.
local FIT <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend("Net")
function Net:init() self.w = lt.parameter(lt.zeros(24, 1024)) end
function Net:training_step(x)
  self:log("loss", (self.w * x):sum())
  return (self.w * x):sum()
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 1 }) end
lt.Trainer {
  max_epochs = 20, default_root_dir = arg[1], enable_progress_bar = false,
  enable_model_summary = false, log_every_n_steps = 1,
  callbacks = { lt.callbacks.ModelCheckpoint { dirpath = arg[1] .. "/saved", save_top_k = -1,
    save_last = true, filename = "{epoch}", auto_insert_metric_name = false } },
}:fit(Net(), { lt.ones(1) }, { ckpt_path = arg[2] })
]]

-- Names the files, and what the weights of each are.
local LIST <const> = [[
local lt, c = require "ltrain", require "ltrain.c"
for _, name in ipairs(c.io.list_folder(arg[1] .. "/saved")) do
  local tensors, why = c.io.load_safetensors(arg[1] .. "/saved/" .. name)
  print(name, tensors and tensors["model.w"]:min():item() or why)
end
]]

describe("a fit on a disk that fills up", function()
  local folder, unshare

  before_each(function()
    folder = child.folder()
    os.execute(("mkdir '%s/disk'"):format(folder))
    for _, words in ipairs { "unshare -m", "unshare -rm" } do
      if os.execute(("%s mount -t tmpfs ltrain '%s/disk' 2>/dev/null"):format(words, folder)) then
        unshare = words
        break
      end
    end
    child.write(folder .. "/fit.lua", FIT)
    child.write(folder .. "/list.lua", LIST)
  end)
  after_each(function() child.remove(folder) end)

  -- Runs lines of shell where the disk is mounted: it is gone with the last of them. A file that
  -- is no business of ours leaves room for about four of the fit's.
  local function on_disk(lines)
    local script = ([[
      mount -t tmpfs -o size=4m ltrain disk || exit 1
      head -c 3600K /dev/zero > disk/else
      ltrain() { timeout -k 1 30 '%s' "$@" 2>&1; echo "status $?"; }
      %s]]):format(os.getenv("LTRAIN") or arg[-1], lines)
    child.write(folder .. "/lines.sh", script)
    local pipe <close> = assert(io.popen(("cd '%s' && timeout -k 1 60 %s sh lines.sh 2>&1"):format(
      folder, unshare)))
    return pipe:read("a")
  end

  it("ends in an error with name and reason; all former files load, no temporary stays", function()
    if not unshare then return pending("this user may not mount a small disk") end
    local out = on_disk("ltrain fit.lua disk; ltrain list.lua disk; ls -A disk/saved")
    local failed = out:match("save_checkpoint: cannot write disk/saved/(%w+%.ckpt): "
      .. "No space left on device\nstatus 1\n")
    assert.truthy(failed, out)
    local newest = -1
    for epoch, least in out:gmatch("(%d+)%.ckpt\t(%-%d+)%.0\n") do
      assert.equal(-epoch - 1, tonumber(least))
      newest = math.max(newest, tonumber(epoch))
    end
    assert.truthy(newest >= 2, out)
    local last = failed == "last.ckpt" and newest or newest + 1
    assert.matches(("last.ckpt\t%d.0\n"):format(-last), out, 1, true)
    assert.not_matches("saving", out, 1, true)
  end)

  it("resumes from the last file once there is room", function()
    if not unshare then return pending("this user may not mount a small disk") end
    local out = on_disk([[
      ltrain fit.lua disk >/dev/null
      rm disk/else
      ltrain fit.lua disk disk/saved/last.ckpt
      ltrain list.lua disk]])
    assert.not_matches("No space", out, 1, true)
    assert.matches("19.ckpt\t-20.0", out, 1, true)
    assert.matches("last.ckpt\t-20.0", out, 1, true)
  end)
end)
