-- spec/apps/inspect_spec.lua: `ltrain inspect` of each kind of file; info_spec has checkpoints.
-- tags: slow
local child = require "spec.cli.child"
local lt = require "ltrain"

describe("ltrain inspect", function()
  local folder <const> = child.folder()
  teardown(function() child.remove(folder) end)

  local function inspected(name)
    local status, out, err = child.run({ "inspect", name }, { dir = folder })
    assert.equal("", err)
    assert.equal(0, status)
    return out
  end

  local function refused(name, text)
    child.write(folder .. "/" .. name, text)
    local status, out, err = child.run({ "inspect", name }, { dir = folder })
    assert.equal("", out)
    assert.equal(1, status)
    return err
  end

  it("lists arrays of NumPy, of IDX files and of images", function()
    assert(lt.numpy.save(folder .. "/a.npy", lt.ones(2, 3)))
    assert(lt.numpy.savez(folder .. "/a.npz", { x = lt.ones(2), y = lt.ones(3):long() }))
    assert(lt.image.write(folder .. "/a.png", lt.zeros(3, 4, 5):to "u8"))
    child.write(folder .. "/a-idx", "\0\0\8\2\0\0\0\2\0\0\0\3abcdef")
    assert.equal("file         NumPy array (npy)\ntensors      6 numbers\n"
      .. "             array [2, 3] f32\n", inspected "a.npy")
    assert.matches("(npz)\ntensors      5 numbers\n             x [2] f32\n"
      .. "             y [3] i64\n", inspected "a.npz", 1, true)
    assert(lt.numpy.savez_compressed(folder .. "/packed.npz", { x = lt.zeros(1000, 1000) }))
    assert.matches("tensors      1000000 numbers\n             x [1000, 1000] f32\n",
      inspected "packed.npz", 1, true)
    assert.matches("pixels [3, 4, 5] u8", inspected "a.png", 1, true)
    assert.matches("array [2, 3] u8", inspected "a-idx", 1, true)
  end)

  it("names columns, values and tokens", function()
    child.write(folder .. "/a.csv", "a,b\n1,x\n2,y\n")
    child.write(folder .. "/a.json", '{"a": 1, "b": [1, 2]}')
    child.write(folder .. "/long.json", ('{"long": ["%s", "%s", "%s"]}'):format(("x"):rep(60),
      ("x"):rep(60), ("x"):rep(60)))
    local tokenizer = lt.text.BPETokenizer.train({ "hello world" }, { vocab_size = 300 })
    assert(tokenizer:save(folder .. "/tokenizer.json"))
    assert.equal("file         csv of 2 rows\n             a\n             b\n", inspected "a.csv")
    assert.equal("file         JSON\n             a = 1\n             b = {1, 2}\n",
      inspected "a.json")
    assert.matches('\n +long = {"[x.]+", "[x.]+", "[x.]+"}\n$', inspected "long.json")
    assert.matches(("model        BPE\nvocabulary   %d tokens\n"):format(tokenizer.vocab_size),
      inspected "tokenizer.json", 1, true)
  end)

  it("reads the first rows of a long csv, and says so", function()
    local rows = {}
    for i = 1, 800000 do rows[i] = ('%d,"a\nb",%d\n'):format(i % 9, i % 7) end
    child.write(folder .. "/long.csv", "a,text,b\n" .. table.concat(rows))
    local out = inspected "long.csv"
    local about, read = out:match "^file +csv of about ([%d.e+]+) rows, by the first (%d+) %("
    assert.equal(8e5, tonumber(about), out)
    assert.is_true(tonumber(read) > 2e5 and tonumber(read) < 8e5, out)
    assert.matches("(4.0 MiB of ", out, 1, true)
  end)

  it("does not read a JSON file that is too large to be listed", function()
    child.write(folder .. "/large.json", '{"a": [' .. ("1, 2, 3, 4\n"):rep(6 << 20) .. "]}")
    assert.matches("^file +JSON of %d+%.%d MiB: too large to be listed\nbegins +{\"a\": %[1, 2",
      inspected "large.json")
  end)

  it("says of a run how it ended and what it logged", function()
    local path <const> = folder .. "/run"
    local net = { w = lt.parameter(lt.ones(1)) }
    function net:training_step()
      self:log("loss", self.w:sum())
      return self.w:sum()
    end
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.5 }) end
    lt.Trainer { max_epochs = 1, enable_progress_bar = false, enable_model_summary = false,
      log_every_n_steps = 1, default_root_dir = path }:fit(net, { lt.ones(1), lt.ones(1) })
    local runs = assert(lt.runs.find(path))
    assert.matches("folder +1 run\n +run/[^\n]*version_0: finished\n", inspected "run")
    local out = inspected("run" .. runs[1]:sub(#path + 1))
    assert.matches("^run +finished\n", out)
    local file <close> = assert(io.open(runs[1] .. "/run.json", "r+"))
    local text = assert(file:read "a"):gsub('"finished"', '"interrupted"')
    assert(file:seek("set", 0))
    assert(file:write((text:gsub("^{", '{"error": "interrupted: saved x.ckpt",', 1))))
    assert(file:flush())
    out = inspected("run" .. runs[1]:sub(#path + 1))
    assert.matches("^run +interrupted: saved x%.ckpt\n", out)
    assert.matches("\nmetric +loss: last 0.5, best 0.5 %(step %d%)\n", out)
    assert.matches("\ncheckpoint +checkpoints/[^\n]+%.ckpt\n", out)
  end)

  it("says of a file of another kind that it is one", function()
    assert.equal("ltrain: inspect: nothing is empty\n", refused("nothing", ""))
    assert.matches("note.txt is a text, which no reader takes", refused("note.txt", "hello"), 1,
      true)
    assert.matches("bytes is of no kind that is known here", refused("bytes", ("\7\1\2"):rep(30)),
      1, true)
  end)

  it("says what is wrong with a damaged file, in a sentence", function()
    assert.matches("^ltrain: inspect: bad%.npy: not a %.npy file of NumPy: ",
      refused("bad.npy", "\x93NUMPY\1\0xx"))
    assert.matches("^ltrain: inspect: bad%.png: the file is cut off",
      refused("bad.png", "\x89PNG\r\n\26\nxx"))
    assert.matches("^ltrain: inspect: bad%.idx is not an IDX file: ",
      refused("bad.idx", "\0\0\8\2\0\0\0\2\0\0\0\3ab"))
    assert.matches("^ltrain: inspect: bad%.json: not JSON: ", refused("bad.json", '{"a": '))
    assert.equal("ltrain: inspect: a.lua is a text, which no reader takes: neither JSON nor csv by "
      .. "its name\n", (refused("a.lua", "local lt = require 'ltrain'\n")))
    assert.matches("^ltrain: inspect: empty is empty",
      refused("empty", ""))
    local status, _, err = child.run({ "inspect", "nowhere" }, { dir = folder })
    assert.equal(1, status)
    assert.equal("ltrain: inspect: cannot open nowhere: No such file or directory\n", err)
    status, _, err = child.run { "inspect" }
    assert.equal(1, status)
    assert.matches("^ltrain: inspect: which file%? %(", err)
  end)
end)
