-- spec/callbacks/prediction_writer_spec.lua: PredictionWriter: formats, loaders, ranks.
local lt = require "ltrain"
local c = require "ltrain.c"
local support = require "spec.dist.support"
local tiny = require "spec.trainer.tiny"

local PredictionWriter <const> = lt.callbacks.PredictionWriter

local function predict(options, step, batches, more)
  local net, folder = tiny.Line(), tiny.folder()
  net.predict_step = step
  options.path = folder .. "/" .. options.path
  tiny.trainer({ callbacks = { PredictionWriter(options) } }):predict(net, batches, more)
  return folder
end

local function read(path) return assert(c.io.read_file(path)) end

local batches <const> = tiny.batches({ 1, 2 }, { 3 })

local function named(_, x)
  return { id = x:to "i64", scores = lt.stack({ x, x * 0.5 }, 2), text = x[1]:item() == 1
    and { "a,b", 'say "c"' } or { "d" } }
end

describe("PredictionWriter", function()
  it("writes CSV, a column for each number of a sample", function()
    local folder = predict({ path = "out/p.csv" }, named, batches)
    assert.equal('id,scores_0,scores_1,text\n1,1.0,0.5,"a,b"\n2,2.0,1.0,"say ""c"""\n'
      .. "3,3.0,1.5,d\n", read(folder .. "/out/p.csv"))
    local t = lt.csv.read(folder .. "/out/p.csv")
    assert.same({ 1, 2, 3 }, t:tensor({ "id" }):reshape { -1 }:tolist())
  end)

  it("writes what predict does not return", function()
    local folder = predict({ path = "p.csv" }, function(_, x) return x end, batches,
      { return_predictions = false })
    assert.equal("prediction\n1\n2\n3\n", read(folder .. "/p.csv"))
  end)

  it("calls what has no name prediction", function()
    local folder = predict({ path = "p.csv" }, function(_, x) return x * 2 + 0.5 end, batches)
    assert.equal("prediction\n2.5\n4.5\n6.5\n", read(folder .. "/p.csv"))
  end)

  it("writes JSON lines", function()
    local folder, rows = predict({ path = "p.jsonl" }, named, batches), {}
    for row in lt.json.lines(folder .. "/p.jsonl") do rows[#rows + 1] = row end
    assert.same({ { id = 1, scores = { 1, 0.5 }, text = "a,b" },
      { id = 2, scores = { 2, 1 }, text = 'say "c"' }, { id = 3, scores = { 3, 1.5 }, text = "d" },
    }, rows)
  end)

  it("writes safetensors, each name a tensor of all samples", function()
    local folder = predict({ path = "p.safetensors" },
      function(_, x) return { y = x, z = lt.stack({ x, x }, 2) } end, batches)
    local tensors = assert(c.io.load_safetensors(folder .. "/p.safetensors"))
    assert.same({ 1, 2, 3 }, tensors.y:tolist())
    assert.same({ { 1, 1 }, { 2, 2 }, { 3, 3 } }, tensors.z:tolist())
  end)

  it("appends batches, and keeps nothing", function()
    local folder = predict({ path = "p.csv", write_interval = "batch" }, named, batches,
      { return_predictions = false })
    assert.equal('id,scores_0,scores_1,text\n1,1.0,0.5,"a,b"\n2,2.0,1.0,"say ""c"""\n'
      .. "3,3.0,1.5,d\n", read(folder .. "/p.csv"))
    folder = predict({ path = "p.jsonl", write_interval = "batch" },
      function(_, x) return x:to "i64" end, batches)
    assert.equal('{"prediction":1}\n{"prediction":2}\n{"prediction":3}\n',
      read(folder .. "/p.jsonl"))
  end)

  it("has a file for each of several loaders", function()
    local folder = predict({ path = "p.csv" }, function(_, x) return x[1]:to "i64" end,
      { lt.data.DataLoader(lt.data.TensorDataset(lt.tensor { 1.0 })),
        lt.data.DataLoader(lt.data.TensorDataset(lt.tensor { 2.0 })) })
    assert.equal("prediction\n1\n", read(folder .. "/p-0.csv"))
    assert.equal("prediction\n2\n", read(folder .. "/p-1.csv"))
  end)

  it("restores the order of ranks, or has a file for each", function()
    local folder = tiny.folder()
    support.ranks(2, ([[
      local net = lt.nn.Linear(1, 1)
      function net:predict_step(batch) return batch[1]:reshape{-1} end
      local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.arange(7):reshape{7, 1}),
        {batch_size = 2})
      for _, o in ipairs{{path = "%s/all.csv"}, {path = "%s/own.csv", write_interval = "batch"}} do
        lt.Trainer{logger = false, enable_checkpointing = false, enable_progress_bar = false,
          callbacks = {lt.callbacks.PredictionWriter(o)}}:predict(net, loader)
      end
    ]]):format(folder, folder))
    assert.equal("prediction\n0\n1\n2\n3\n4\n5\n6\n", read(folder .. "/all.csv"))
    local seen = {}
    for rank = 0, 1 do
      local text = read(("%s/own-rank%d.csv"):format(folder, rank))
      for batch, value in text:gmatch "(%d+),(%d+)\n" do seen[#seen + 1] = batch .. value end
    end
    table.sort(seen)
    assert.same({ "00", "01", "12", "13", "24", "25", "36" }, seen)
  end)

  it("reports what does not fit", function()
    assert.matches("the path must end in .csv, .jsonl or .safetensors, .*: got 'x.txt'",
      tiny.error_of(PredictionWriter, { path = "x.txt" }))
    assert.matches("safetensors cannot be appended to",
      tiny.error_of(PredictionWriter, { path = "x.safetensors", write_interval = "batch" }))
    assert.matches("'a' has 2 samples, 'b' has 1", tiny.error_of(predict, { path = "p.csv" },
      function() return { a = { 1, 2 }, b = { 1 } } end, batches))
    assert.matches("'prediction' must be a tensor .* or a list of numbers or texts: got a table",
      tiny.error_of(predict, { path = "p.csv" }, function(_, x) return { x } end, batches))
    assert.matches("must return a tensor, a list, or a table of them: got 3",
      tiny.error_of(predict, { path = "p.csv" }, function() return 3 end, batches))
  end)
end)
