-- spec/callbacks/base_prediction_writer_spec.lua: BasePredictionWriter: what it is called with.
local lt = require "ltrain"
local support = require "spec.dist.support"
local tiny = require "spec.trainer.tiny"

local Base <const> = lt.callbacks.BasePredictionWriter

local function loader(n, options)
  return lt.data.DataLoader(lt.data.TensorDataset(lt.arange(n):float()), options)
end

-- A writer that notes its calls.
local function noting(interval)
  local Writer = Base:extend "Writer"
  function Writer:write_on_batch_end(_, _, prediction, indices, batch, batch_idx, loader_idx)
    assert(batch)
    table.insert(self.calls, { prediction, indices, batch_idx, loader_idx })
  end
  function Writer:write_on_epoch_end(_, _, predictions, indices)
    self.all = { predictions, indices }
  end
  local writer = Writer(interval)
  writer.calls = {}
  return writer
end

local function predict(writer, data, options)
  local net = tiny.Line()
  net.predict_step = function(_, batch) return (batch[1] or batch):tolist() end
  return tiny.trainer({ callbacks = { writer } }):predict(net, data, options)
end

describe("callbacks.BasePredictionWriter", function()
  it("is called with the positions of a batch's samples", function()
    local writer = noting "batch"
    assert.same({ { 2, 0 }, { 1 } }, predict(writer, loader(3, { batch_size = 2,
      sampler = { 3, 1, 2 } })))
    assert.same({ { { 2, 0 }, { 3, 1 }, 0, 1 }, { { 1 }, { 2 }, 1, 1 } }, writer.calls)
    assert.is_nil(writer.all)
  end)

  it("is called at the end with all, also if predict returns none", function()
    local writer = noting "epoch"
    assert.is_nil(predict(writer, loader(3, { batch_size = 2 }), { return_predictions = false }))
    assert.same({ { { 0, 1 }, { 2 } }, { { 1, 2 }, { 3 } } }, writer.all)
    assert.same({}, writer.calls)
    writer = noting "batch_and_epoch"
    predict(writer, { loader(1), loader(2, { batch_size = 2 }) })
    assert.same({ { { { 0 } }, { { 0, 1 } } }, { { { 1 } }, { { 1, 2 } } } }, writer.all)
    assert.same({ { { 0 }, { 1 }, 0, 1 }, { { 0, 1 }, { 1, 2 }, 0, 2 } }, writer.calls)
  end)

  it("knows no positions of iterables", function()
    local writer = noting "batch_and_epoch"
    predict(writer, tiny.batches({ 1, 2 }))
    assert.same({ { 1, nil, 0, 1 } }, writer.calls)
    assert.same({ { 1 }, { {} } }, writer.all)
  end)

  it("refuses an interval that it does not know, and a method that is not there", function()
    assert.matches("write_interval", tiny.error_of(Base, "step"))
    assert.matches("Mine: define write_on_batch_end, or set write_interval = 'epoch'",
      tiny.error_of(predict, Base:extend "Mine"(), loader(1)))
  end)

  it("has the positions in the whole data set on several ranks", function()
    local out = support.ranks(2, [[
      local Writer = lt.callbacks.BasePredictionWriter:extend("Writer")
      function Writer:write_on_batch_end(_, _, prediction, indices, _, batch_idx)
        print(("batch %d: %s at %s on %d"):format(batch_idx, table.concat(prediction, " "),
          table.concat(indices, " "), dist.rank()))
      end
      function Writer:write_on_epoch_end(_, _, predictions, indices)
        for i, list in ipairs(predictions) do
          print(("all %d on %d: %s at %s"):format(i, dist.rank(), table.concat(list, " "),
            table.concat(indices[i], " ")))
        end
      end
      local net = lt.nn.Identity()
      function net:predict_step(batch) return batch[1]:tolist() end
      local loader = lt.data.DataLoader(lt.data.TensorDataset(lt.arange(7)), {batch_size = 3,
        sampler = {7, 6, 5, 4, 3, 2, 1}})
      lt.Trainer{accelerator = "cpu", logger = false, enable_checkpointing = false,
        enable_progress_bar = false, callbacks = {Writer("batch_and_epoch")}}:predict(net, loader)
    ]])
    for _, line in ipairs { "batch 0: 6 5 4 at 7 6 5 on 0", "batch 1: 3 2 1 at 4 3 2 on 1",
      "batch 2: 0 at 1 on 0", "all 1 on 0: 6 5 4 at 7 6 5", "all 2 on 0: 3 2 1 at 4 3 2",
      "all 3 on 0: 0 at 1" } do
      assert.matches(line, out, 1, true)
    end
    assert.not_matches("on 1: ", out)
  end)
end)
