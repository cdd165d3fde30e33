-- spec/cli/hash_spec.lua: `ltrain hash`, and lt.hash, which it prints.
local child = require "spec.cli.child"
local lt = require "ltrain"

-- What sha256sum says of these bytes.
local function sha256sum(bytes)
  local folder = child.folder()
  child.write(folder .. "/x", bytes)
  local pipe <close> = assert(io.popen("sha256sum '" .. folder .. "/x'"))
  local digest = pipe:read("a"):match("^%x+")
  child.remove(folder)
  return digest
end

local Net = lt.Module:extend("Net")
function Net:init()
  self.second = lt.nn.Linear(3, 3)
  self.first = self.second -- one tensor with two names, the later one sorted first
end
function Net:training_step(batch) return self.first(batch):mean() end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 0.1 }) end

local function fit(net, steps)
  local trainer = lt.Trainer { max_steps = steps, logger = false, enable_checkpointing = false,
    enable_progress_bar = false, enable_model_summary = false, num_sanity_val_steps = 0 }
  trainer:fit(net, { lt.ones(2, 3), lt.ones(2, 3), lt.ones(2, 3) })
  return trainer
end

describe("lt.hash", function()
  it("is SHA-256 over the names in order, each with dtype, shape and bytes", function()
    local x = lt.tensor({ { 1, 2 }, { 3, 4 } }, { dtype = "f32" })
    local bytes = "a i64 [1]\n" .. ("<i8"):pack(7)
      .. "b.0 f32 [2, 2]\n" .. ("<ffff"):pack(1, 2, 3, 4)
      .. "b.1 string 2 hi\nc float 0x1p-1\nd integer 3\n"
    local tree = { d = 3, c = 0.5, b = { x, "hi" }, a = lt.tensor({ 7 }, { dtype = "i64" }) }
    assert.equal(sha256sum(bytes), lt.hash(tree))
  end)

  it("reads tensors in row-major order whatever their strides", function()
    local x = lt.arange(6):to("f32"):reshape { 2, 3 }
    assert.equal(lt.hash(x:transpose(1, 2):contiguous()), lt.hash(x:transpose(1, 2)))
    assert.not_equal(lt.hash(x), lt.hash(x:transpose(1, 2)))
    assert.not_equal(lt.hash(x), lt.hash(x:reshape { 3, 2 }))
  end)

  it("knows dtypes, empty tensors and single bits", function()
    assert.not_equal(lt.hash(lt.zeros(2)), lt.hash(lt.zeros(2, { dtype = "i32" })))
    assert.not_equal(lt.hash(lt.zeros(0, 2)), lt.hash(lt.zeros(2, 0)))
    assert.not_equal(lt.hash(lt.tensor { 0.0 }), lt.hash(lt.tensor { -0.0 }))
  end)

  it("names what cannot be hashed", function()
    local ok, message = pcall(lt.hash, { a = { print } })
    assert.is_false(ok)
    assert.matches("hash: value%.a%[1%] is neither .*: got a function", message)
    local loop = {}
    loop.x = loop
    ok, message = pcall(lt.hash, loop)
    assert.is_false(ok)
    assert.matches("hash: value%.x contains itself", message)
  end)
end)

describe("ltrain hash", function()
  it("prints lt.hash of the weights, whatever else the file holds", function()
    local folder, net = child.folder(), Net()
    fit(net, 3):save_checkpoint(folder .. "/a.ckpt")
    assert(lt.save(folder .. "/b.st", net:state_dict()))
    local again = Net()
    again:load_state_dict(net:state_dict())
    fit(again, 0):save_checkpoint(folder .. "/c.ckpt", { weights_only = true })
    local digest = lt.hash(net:state_dict())
    local status, out, err = child.run({ "hash", "a.ckpt", "b.st", "c.ckpt" }, { dir = folder })
    assert.equal(0, status, err)
    assert.equal(("%s  a.ckpt\n%s  b.st\n%s  c.ckpt\n"):format(digest, digest, digest), out)
    child.remove(folder)
  end)

  it("takes the optimizer's state too with --all", function()
    local folder, net = child.folder(), Net()
    local trainer = fit(net, 2)
    trainer:save_checkpoint(folder .. "/a.ckpt")
    trainer:save_checkpoint(folder .. "/b.ckpt")
    local state = trainer.optimizers[1].state
    for _, parameter in ipairs(net:parameters()) do state[parameter].exp_avg:fill_(9) end
    trainer:save_checkpoint(folder .. "/c.ckpt")
    local _, plain = child.run({ "hash", "a.ckpt", "c.ckpt" }, { dir = folder })
    assert.equal(plain:match("^%x+"), plain:match("\n(%x+)"))
    local status, out, err = child.run({ "hash", "--all", "a.ckpt", "b.ckpt", "c.ckpt" },
      { dir = folder })
    assert.equal(0, status, err)
    local a, b, c = out:match("^(%x+)  a.ckpt\n(%x+)  b.ckpt\n(%x+)  c.ckpt\n$")
    assert.equal(a, b)
    assert.not_equal(a, c)
    assert.not_equal(a, plain:match("^%x+"))
    child.remove(folder)
  end)

  it("continues after a file that it cannot read, and ends with 1", function()
    local folder = child.folder()
    assert(lt.save(folder .. "/a.st", { lt.ones(2) }))
    child.write(folder .. "/b.st", "nonsense")
    local status, out, err = child.run({ "hash", "none", "b.st", "a.st" }, { dir = folder })
    assert.equal(1, status)
    assert.equal(lt.hash { lt.ones(2) } .. "  a.st\n", out)
    assert.matches("ltrain: hash: cannot open none: ", err)
    assert.matches("ltrain: hash: b%.st is not a safetensors file", err)
    child.remove(folder)
  end)

  it("wants a file", function()
    local status, _, err = child.run { "hash" }
    assert.equal(2, status)
    assert.matches("hash: which file%?", err)
  end)
end)
