-- spec/trainer/sharded_files_spec.lua: sharded checkpoints and what reads them besides a fit:
-- convert, inspect, hash, lt.load; files that are damaged.
-- tags: half, slow
local NET <const> = require "spec.trainer.sharded"
local trained = require "spec.dist.trained"

local scripts <const> = trained.with(NET .. [[
local binary = c.io.follow "/proc/self/exe"
-- What `ltrain ...` prints, and its exit status.
local function ltrain(words)
  local pipe <close> = assert(io.popen("'" .. binary .. "' " .. words .. " 2>&1; echo $?"))
  local text, status = pipe:read("a"):match "^(.-)(%d+)\n$"
  return text, math.tointeger(tonumber(status))
end
local function bytes_of(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end
-- Whether two files are equal. A device's metrics may be one tensor with two names, which a file
-- has once: there the contents are.
local function equal(a, b)
  if not os.getenv "LT_TEST_DEVICE" then return bytes_of(a) == bytes_of(b) end
  local x, of_x = lt.load(a, {metadata = true})
  local y, of_y = lt.load(b, {metadata = true})
  return lt.hash(x) == lt.hash(y) and of_x.ltrain == of_y.ltrain
end
]])

local function prints(wanted, script)
  local out, err = scripts.output(nil, script)
  assert.equal(wanted, (out:gsub("\t", " ")))
  return err
end

describe("ltrain convert", function()
  it("makes the file that rank 0 would have saved, byte for byte", function()
    prints(" 0\ntrue\n", [[
      cut({"zero1", state_dict_type = "full"}, 2, 3, "full.ckpt")
      cut("zero1", 2, 3, "cut.ckpt")
      print(ltrain "convert cut.ckpt one.ckpt")
      print(equal("one.ckpt", "full.ckpt"))
    ]])
  end)

  it("cuts a file into the parts of N ranks, which resume the run", function()
    prints("rank-0 rank-1 rank-2 rank-3 true true\n", [[
      cut({"zero1", state_dict_type = "full"}, 2, 3, "full.ckpt")
      assert(select(2, ltrain "convert full.ckpt parts --ranks 4") == 0)
      for r = 0, 3 do io.write(files "parts":match("rank%-" .. r), " ") end
      ltrain "convert parts again.ckpt"
      io.write(tostring(equal("again.ckpt", "full.ckpt")), " ")
      print(same((fit("ddp", 2)), (fit("zero1", 2, nil, {ckpt_path = "parts"}))))
    ]])
  end)

  it("keeps weights with two names as one", function()
    prints("true\ntrue\n", [[
      local Tied = Net:extend("Net")
      function Tied:init() Net.init(self) self.first = self.a end
      function Tied:on_train_batch_end() self.trainer:save_checkpoint(self.trainer.to) end
      for _, type in ipairs {"full", "sharded"} do
        lt.Trainer.to = type .. ".ckpt"
        fit({"zero1", state_dict_type = type}, 2, {max_steps = 1}, nil, Tied)
      end
      ltrain "convert sharded.ckpt one.ckpt"
      print(equal("one.ckpt", "full.ckpt"))
      ltrain "convert one.ckpt two.ckpt --ranks 2"
      local a = ltrain("hash --all full.ckpt"):match "^%x+"
      print(a == ltrain("hash --all two.ckpt"):match "^%x+"
        and a == ltrain("hash --all sharded.ckpt"):match "^%x+")
    ]])
  end)

  it("has one tensor in memory at a time", function()
    -- 12 tensors of 8 MB: the most that a process has taken, beside one that prints its version.
    local out = scripts.output(nil, [[
      local saved = {state_dict = {}, epoch = 0, global_step = 0}
      for i = 1, 12 do saved.state_dict["w" .. i] = lt.rand(1 << 21) end
      require "ltrain.files.checkpoint_file".write(saved, "full.ckpt")
      ltrain "convert full.ckpt cut.ckpt --ranks 3"
      local function most(words)
        local text = ltrain(("-e 'arg = {[0] = \"ltrain\"} local c = require \"ltrain.c\" %s "
          .. "print(c.io.read_file(\"/proc/self/status\"):match \"VmHWM:%%s+(%%d+)\")'")
          :format(words))
        return tonumber(text) / 1024
      end
      local base = most ""
      local taken = most [=[
        local host = {write = print, complain = print}
        require("ltrain.cli.convert").main("convert", {script = "cut.ckpt", args = {"one.ckpt"},
          options = {}}, host)]=] - base
      io.stderr:write(("convert of 96 MB takes %.1f MB\n"):format(taken))
      print(taken < 2 * 8.4 + 4, equal("one.ckpt", "full.ckpt"))
    ]])
    assert.equal("true\ttrue\n", out)
  end)

  it("says what is wrong with its names", function()
    prints("true true true true\n", [[
      local function says(words, text)
        local said = ltrain(words)
        if not said:find(text, 1, true) then io.stderr:write(said, "\n") end
        return said:find(text, 1, true) ~= nil
      end
      print(says("convert a", "convert: needs two names"),
        says("convert nothing b", "nothing is not a folder: --ranks N says"),
        says("convert nothing b --ranks 2", "cannot open nothing"),
        says("convert . b", ".: not a checkpoint: a folder without index.safetensors"))
    ]])
  end)
end)

describe("a sharded checkpoint", function()
  it("is inspected, hashed and loaded as a file is", function()
    prints("true true true\ntrue\n", [[
      cut({"zero1", state_dict_type = "full"}, 2, 3, "full.ckpt")
      cut("zero1", 2, 3, "cut.ckpt")
      local said, file = ltrain "inspect cut.ckpt", ltrain "inspect full.ckpt"
      print(said:find("checkpoint in parts of 2 ranks", 1, true) ~= nil,
        said:find(file, 1, true) ~= nil,
        ltrain("hash --all cut.ckpt"):match "^%x+" == ltrain("hash --all full.ckpt"):match "^%x+")
      print(lt.hash((assert(lt.load "cut.ckpt"))) == lt.hash((assert(lt.load "full.ckpt"))))
    ]])
  end)

  it("with a file that is damaged, missing or of another run says which", function()
    local out = scripts.output(nil, [[
      cut("zero1", 2, 3, "other.ckpt")
      cut("zero1", 2, 3, "cut.ckpt")
      local function change(path, fn)
        local text = bytes_of(path)
        local file <close> = assert(io.open(path, "wb"))
        file:write(fn(text))
      end
      local function flip(text) -- a byte in the middle
        local at = #text // 2
        return text:sub(1, at - 1) .. string.char(text:byte(at) ~ 1) .. text:sub(at + 1)
      end
      local rank_1 = "bad.ckpt/rank-1.safetensors"
      local ways = {
        function() os.remove(rank_1) end,
        function() change(rank_1, function(text) return text:sub(1, -9) end) end,
        function() change(rank_1, flip) end,
        function() os.execute("cp other.ckpt/rank-1.safetensors bad.ckpt/") end,
        function() os.execute("cp cut.ckpt/rank-0.safetensors " .. rank_1) end,
        function() change("bad.ckpt/index.safetensors", function(text)
          return (text:gsub('global_step\\":3', 'global_step\\":4'))
        end) end,
        function() os.remove "bad.ckpt/index.safetensors" end,
      }
      for i, way in ipairs(ways) do
        os.execute "rm -rf bad.ckpt && cp -r cut.ckpt bad.ckpt"
        way()
        local ok, message = pcall(fit, "single_device", 1, nil, {ckpt_path = "bad.ckpt"})
        assert(not ok, i)
        local value, why = lt.load "bad.ckpt"
        assert(value == nil, i)
        assert(select(2, ltrain "inspect bad.ckpt") ~= 0)
        print((message:gsub("^[^:]*:%d+: ", "")))
        print((why:gsub("^load: ", "")))
      end
    ]])
    local wanted = {
      "cannot open bad.ckpt/rank%-1.safetensors: No such file",
      "bad.ckpt/rank%-1.safetensors: damaged: it has %d+ bytes of %d+: is it cut off%?",
      "bad.ckpt/rank%-1.safetensors: damaged: the bytes of tensor '[%w_.]+' have changed",
      "bad.ckpt/rank%-1.safetensors: of another checkpoint, or another rank: its id is '%x+'",
      "bad.ckpt/rank%-1.safetensors: ",
      "bad.ckpt/index.safetensors: damaged: the bytes of the header have changed",
      "bad.ckpt",
    }
    local i = 0
    for line in out:gmatch "[^\n]+" do
      i = i + 1
      assert.matches(wanted[(i + 1) // 2], line)
    end
    assert.equal(2 * #wanted, i, out)
  end)

  it("that is damaged ends a fit of several ranks with the file's name", function()
    local status, _, err = scripts.run(nil, [[
      cut("zero1", 2, 3, "cut.ckpt")
      local text = bytes_of "cut.ckpt/rank-1.safetensors"
      local file <close> = assert(io.open("cut.ckpt/rank-1.safetensors", "wb"))
      file:write(text:sub(1, -2), string.char(text:byte(-1) ~ 1))
      file:close()
      fit("zero1", 3, nil, {ckpt_path = "cut.ckpt"})
    ]])
    assert.equal(1, status)
    assert.matches("cut.ckpt/rank%-1.safetensors: damaged: the bytes of tensor '[%w_.]+' have "
      .. "changed", err)
  end)
end)
