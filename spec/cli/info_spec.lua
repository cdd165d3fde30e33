-- spec/cli/info_spec.lua: `ltrain info`.
local child = require "spec.cli.child"
local lt = require "ltrain"

describe("ltrain info", function()
  it("says what this build contains, and why the rest is missing", function()
    local status, out = child.run { "info" }
    assert.equal(0, status)
    assert.matches("^ltrain +%d+%.%d+%.%d+\nlua +Lua 5%.4%.%d+\n", out)
    assert.matches("\ncpu +yes: instructions of level %w+, bf16 [%w ]+, oneDNN [%d.]+\n", out)
    for _, part in ipairs(require("ltrain.c").runtime.parts()) do
      if not part.present then
        assert.matches(("\n%s +no: %%w"):format(part.name), out)
      end
    end
    assert.matches("\nthreads +%d+ an operation", out)
  end)

  it("says what a checkpoint holds", function()
    local folder = child.folder()
    local Net = lt.Module:extend("Net")
    function Net:init(o)
      self:save_hyperparameters(o)
      self.layer = lt.nn.Linear(o.width, 1)
    end
    function Net:training_step(batch) return self.layer(batch[1]):mean() end
    function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
    local trainer = lt.Trainer { max_steps = 3, logger = false, enable_checkpointing = false,
      enable_progress_bar = false, enable_model_summary = false, num_sanity_val_steps = 0 }
    local x = lt.ones(12, 3)
    trainer:fit(Net { width = 3 }, lt.data.DataLoader(lt.data.TensorDataset(x), { batch_size = 4 }))
    trainer:save_checkpoint(folder .. "/a.ckpt")
    local status, out, err = child.run { "info", folder .. "/a.ckpt" }
    assert.equal(0, status, err)
    assert.matches("class +Net\nposition +epoch %d, step 3\nresumes +yes\n", out)
    assert.matches("hparams +width = 3\nweights +4 numbers\n", out)
    assert.matches(" layer%.weight %[1, 3%] f32\n", out)
    child.remove(folder)
  end)

  it("reports a file that is none", function()
    local status, out, err = child.run { "info", "spec/cli/info_spec.lua" }
    assert.equal(1, status)
    assert.equal("", out)
    assert.matches("^ltrain: info: .*info_spec%.lua", err)
  end)

  it("lists the tensors of a file of lt.save", function()
    local folder = child.folder()
    assert(lt.save(folder .. "/a.st", { a = lt.ones(2), b = { lt.ones(2, 3):to "f64" }, c = 1 }))
    local status, out, err = child.run { "info", folder .. "/a.st" }
    assert.equal(0, status, err)
    assert.equal("file         written by lt.save\ntensors      8 numbers\n"
      .. "             a [2] f32\n             b.0 [2, 3] f64\n", out)
    local text = assert(io.open(folder .. "/a.st", "rb")):read "a"
    child.write(folder .. "/a.st", text:sub(1, -2) .. "x")
    status, out, err = child.run { "info", folder .. "/a.st" }
    assert.equal(1, status)
    assert.equal("", out)
    assert.matches("^ltrain: info: .*damaged: the bytes of tensor '%w[.0]*' have changed\n", err)
    child.remove(folder)
  end)

  it("lists the tensors and the metadata of any safetensors file, in print", function()
    local folder = child.folder()
    local header <const> = [[{"__metadata__":{"format":"pt"},]]
      .. [["w\u001b[2J":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}]]
    child.write(folder .. "/a", string.pack("<I8", #header) .. header .. ("\0"):rep(8))
    local status, out, err = child.run { "info", folder .. "/a" }
    assert.equal(0, status, err)
    assert.equal("file         safetensors\nmetadata     format = pt\ntensors      2 numbers\n"
      .. "             w\\27[2J [2] f32\n", out)
    child.remove(folder)
  end)

  it("lists the tensors of a file of torch.save", function()
    local status, out, err = child.run { "info", "spec/files/values.pt" }
    assert.equal(0, status, err)
    assert.matches("^file +written by torch.save\ntensors +3 numbers\n", out)
    assert.matches(" parameter %[2%] f32\n +state%.0%.step %[%] f32\n$", out)
    status, out, err = child.run { "info", "spec/files/model.pt" }
    assert.equal(1, status)
    assert.equal("", out)
    assert.matches("^ltrain: info: spec/files/model.pt: contains __main__%.Model: only", err)
  end)

  it("takes one file and no options", function()
    assert.equal(2, (child.run { "info", "a", "b" }))
    local status, _, err = child.run { "info", "--max_epochs", "3" }
    assert.equal(2, status)
    assert.matches("info: unknown option --max_epochs", err, 1, true)
  end)
end)
