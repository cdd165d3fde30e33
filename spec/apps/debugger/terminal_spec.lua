-- spec/apps/debugger/terminal_spec.lua: the debugger's prompt on a terminal: which rank has it, and
-- for whom Ctrl-C is.
-- tags: slow
local child = require "spec.cli.child"

local SCRIPT <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend("Net")
function Net:init() self.fc = lt.nn.Linear(4, 3) end
function Net:training_step(batch, batch_idx)
  local rank = self.trainer.global_rank
  if batch_idx == 1 and rank == 1 then lt.breakpoint() end
  local loss = self.fc(batch):sum()
  return loss
end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
local trainer = lt.Trainer { max_epochs = 1, logger = false, enable_checkpointing = false,
  devices = 2, accelerator = "cpu" }
trainer:fit(Net(), lt.data.DataLoader(lt.randn(16, 4):unbind(), { batch_size = 4 }))
print "ended well"
]]

-- Runs the script in a terminal. `keys` is a shell script that prints what is typed: sees TEXT N
-- waits until TEXT has been printed N times.
local function type_keys(folder, keys, term)
  child.write(folder .. "/s.lua", SCRIPT)
  child.write(folder .. "/out", "")
  child.write(folder .. "/keys", [[
    sees() {
      for _ in $(seq 400); do
        [ "$(grep -aFo "$1" out | wc -l)" -lt "$2" ] || return 0
        sleep 0.05
      done
    }
    cd "$1"
    ]] .. keys)
  local command <const> = ("%s run s.lua --debug"):format(os.getenv("LTRAIN") or arg[-1])
  os.execute(("sh %s/keys %s | (cd %s && XDG_STATE_HOME=%s TERM=%s env --default-signal=INT "
    .. "timeout 40 script -qec '%s' /dev/null >>out 2>&1)"):format(folder, folder, folder, folder,
    term, command))
  local file <close> = assert(io.open(folder .. "/out"))
  local raw = file:read "a"
  local out = raw:gsub("\r", ""):gsub("\27%[[%d;?]*%a", ""):gsub("\27[78]", "")
  if out:find("failed to create pseudo-terminal", 1, true) then return nil end
  return out, raw
end

describe("the debugger's prompt on a terminal", function()
  for _, term in ipairs { "dumb", "xterm" } do
    it("belongs to rank 1, with Ctrl-C, and the run ends well: TERM=" .. term, function()
      local folder = child.folder()
      local out, raw = type_keys(folder, [[
        sees 'debug> ' 1; printf 'rank + 40\n'; sees 41 1
        printf 'print("in it") while true do end\n'; sees 'in it' 2; sleep 0.3; printf '\003'
        sees 'interrupted' 1; printf 'rank + 41\n'; sees 42 1
        printf 'rank ='; sleep 0.3; printf '\003'; sleep 0.3
        printf 'rank + 42\n'; sees 43 1; printf ':continue\n'; sees 'ended well' 1
      ]], term)
      child.remove(folder)
      if not out then return pending("no pseudo-terminals here") end
      assert.matches("rank 1: lt.breakpoint()", out, 1, true)
      -- The bar of rank 0 is cleared first; rank 0 may draw it once more meanwhile.
      if term == "xterm" then assert.matches("\r\27[K", raw, 1, true) end
      assert.matches("stdin:1: interrupted", out, 1, true)
      assert.matches("\n43\n", out, 1, true)
      assert.matches("ended well", out, 1, true)
      assert.not_matches("late", out)
    end)
  end
end)
