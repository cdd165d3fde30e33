-- spec/cli/printed_spec.lua: escape sequences in files of others: no command gives them to the
-- terminal.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local zip = require "spec.files.zip"

-- A title, a colour, a jump of the cursor, one byte that begins a sequence, and a turned text.
local HOSTILE <const> = "\27]0;x\7\27[31m\27[2J\r\u{9B}1m\u{202E}z"

local folder
setup(function()
  folder = child.folder()
  local function write(path, text) child.write(folder .. "/" .. path, text) end
  local function json(value) return c.io.json_encode(value, { plain = true }) .. "\n" end
  local dict = ("{'descr': '%s', 'fortran_order': False, 'shape': (2,), }\n"):format(HOSTILE)
  write("a.npy", ("\x93NUMPY\1\0%s%s%s"):format(string.pack("<I2", #dict), dict, ("x"):rep(8)))
  write("a.npz", zip { { HOSTILE .. ".npy", "no array" } })
  write("a.json", json { [HOSTILE] = HOSTILE })
  write("a.ckpt", "no checkpoint")
  local head = json { [HOSTILE] = { dtype = "F32", shape = { 1 }, data_offsets = { 0, 4 } },
    __metadata__ = { [HOSTILE] = HOSTILE } }
  write("a.safetensors", string.pack("<I8", #head) .. head .. "abcd")
  for _, run in ipairs { "a", "b" } do
    assert(c.io.make_folder(folder .. "/runs/" .. run .. HOSTILE))
    local path = ("runs/%s%s/"):format(run, HOSTILE)
    write(path .. "metrics.csv", ('epoch,step,"%s"\n0,0,1\n0,1,2\n'):format(HOSTILE))
    write(path .. "hparams.json", json { [HOSTILE] = HOSTILE, lr = run })
    write(path .. "run.json", json { format = 1, status = HOSTILE, error = HOSTILE, started = 1,
      script = HOSTILE, command = { HOSTILE }, best_checkpoint = HOSTILE })
  end
  write("say.lua", [[
    local lt = require "ltrain"
    local x, message = lt.numpy.load "a.npz"
    print(message)
    local net = lt.nn.Linear(1, 1)
    function net:training_step(batch)
      self:log(text, 1.0, { prog_bar = true })
      return self(batch):mean()
    end
    function net:validation_step() self:log(text, 1.0) end
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
    text = lt.json.read("a.json")
    text = next(text)
    local trainer = lt.Trainer { max_epochs = 1 }
    trainer:fit(net, { lt.ones(1, 1) }, { lt.ones(1, 1) })
    trainer:validate(net, { lt.ones(1, 1) })
    trainer:warn(text)
    error(text)
  ]])
end)
teardown(function() child.remove(folder) end)

local function check(...)
  local _, out, err = child.run({ ... }, { dir = folder, env = { LC_ALL = "C.UTF-8" } })
  local text = out .. err
  for _, control in ipairs { "\27", "\7", "\r", "\u{9B}", "\u{202E}" } do
    assert.is_nil(text:find(control, 1, true), ("%q in %q"):format(control, text))
  end
  return text
end

describe("escape sequences in files of others", function()
  for _, command in ipairs {
    "inspect a.npy", "inspect a.npz", "inspect a.json", "inspect a.safetensors", "inspect a.ckpt",
    "hash a.safetensors", "info a.ckpt", "inspect runs", "plot runs", "compare runs",
    "plot runs --metric none", "compare runs --metric none", "run say.lua", "say.lua",
    "check a.json",
  } do
    it("do not reach the terminal: ltrain " .. command, function()
      local words = {}
      for word in command:gmatch "%S+" do words[#words + 1] = word end
      check(table.unpack(words))
    end)
  end

  it("are written as digits", function()
    assert.matches("\\27]0;x\\7\\27[31m\\27[2J\\13\\u{9B}1m\\u{202E}z", check("compare", "runs"), 1,
      true)
  end)
end)
