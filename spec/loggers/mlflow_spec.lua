-- spec/loggers/mlflow_spec.lua: file stores of MLflow. spec/loggers/read_mlflow.py prints what the
-- mlflow package reads in one.
local c = require "ltrain.c"
local lt = require "ltrain"
local tiny = require "spec.trainer.tiny"

local root
before_each(function() root = tiny.folder() end)
after_each(function() os.execute("rm -rf '" .. root .. "'") end)

-- The values of a meta.yaml whose values are JSON.
local function meta(folder)
  local values = {}
  for name, text in c.io.read_file(folder .. "/meta.yaml"):gmatch "([%w_]+): ([^\n]*)\n" do
    values[name] = c.io.json_decode("[" .. text .. "]", { plain = true })[1]
  end
  return values
end

-- Values and steps of a metric; each line has a time.
local function metric(logger, name)
  local list = {}
  for line in c.io.read_file(logger.run_dir .. "/metrics/" .. name):gmatch "[^\n]+" do
    local time, value, step = line:match "^(%d+) (%S+) (%d+)$"
    assert.is_true(math.abs(time / 1000 - os.time()) < 1000)
    list[#list + 1] = value .. " " .. step
  end
  return list
end

local function field(logger, path) return c.io.read_file(logger.run_dir .. "/" .. path) end

local function run(options, rows)
  options.save_dir = root
  local logger = lt.loggers.MLFlowLogger(options)
  logger:begin "fit"
  for _, row in ipairs(rows or {}) do logger:log_metrics(row[1], row[2]) end
  logger:save()
  return logger
end

describe("MLFlowLogger", function()
  it("writes a run into the store: meta, metrics, parameters, tags, artifacts", function()
    local logger = run({ experiment_name = "my digits", run_name = "first",
      tags = { note = "n", api_key = "k" } },
      { { { ["train/loss"] = 0.5, epoch = 0 }, 3 }, { { ["train/loss"] = 0 / 0 }, 4 },
        { { ["train/loss"] = math.huge, ["../a b:c"] = 1 }, 5 } })
    logger:log_hyperparams { lr = 1e-3, act = "relu", opt = { betas = { 0.9, 0.99 }, fused = true },
      password = "p" }
    logger:log_text("notes", "hello", 5)
    logger:log_image("pictures", { lt.zeros(1, 2, 2, { dtype = "u8" }) }, 5)
    assert.same({ "0.5 3", "nan 4", "inf 5" }, metric(logger, "train/loss"))
    assert.same({ "0 3" }, metric(logger, "epoch"))
    assert.same({ "1 5" }, metric(logger, "_/a_b_c"))
    assert.same({ "0.001", "relu", "[0.9,0.99]", "true", "[redacted]" },
      { field(logger, "params/lr"), field(logger, "params/act"), field(logger, "params/opt/betas"),
        field(logger, "params/opt/fused"), field(logger, "params/password") })
    assert.same({ "first", "n", "[redacted]" }, { field(logger, "tags/mlflow.runName"),
      field(logger, "tags/note"), field(logger, "tags/api_key") })
    assert.equal("hello", field(logger, "artifacts/notes/000005.txt"))
    assert.matches("^\137PNG", field(logger, "artifacts/media/pictures/000005.png"))
    local experiment = meta(root .. "/mlruns/" .. logger.experiment_id)
    local of_run = meta(logger.run_dir)
    assert.same({ "my digits", logger.experiment_id, "active" },
      { experiment.name, experiment.experiment_id, experiment.lifecycle_stage })
    assert.same({ logger.run_id, "first", logger.experiment_id, 1, 4 }, { of_run.run_id,
      of_run.run_name, of_run.experiment_id, of_run.status, of_run.source_type })
    assert.equal(32, #logger.run_id:match "^%x+$")
    assert.equal("file://" .. logger.run_dir .. "/artifacts", of_run.artifact_uri)
    logger:finalize "interrupted"
    assert.equal(5, meta(logger.run_dir).status)
    assert.is_true(meta(logger.run_dir).end_time >= of_run.start_time)
  end)

  it("takes the experiment of its name, also one that MLflow has made", function()
    local rows = { { { a = 1 }, 1 } }
    local first = run({ experiment_name = "e" }, rows)
    local second = run({ experiment_name = "e", tracking_uri = "file://" .. root .. "/mlruns" },
      rows)
    assert.equal(first.experiment_id, second.experiment_id)
    assert.not_equal(first.run_id, second.run_id)
    assert.not_equal(first.experiment_id, run({ experiment_name = "f" }, rows).experiment_id)
    c.io.make_folder(root .. "/mlruns/12")
    c.io.write_file(root .. "/mlruns/12/meta.yaml",
      "experiment_id: '12'\nlifecycle_stage: active\nname: of mlflow\n")
    assert.equal("12", run({ experiment_name = "of mlflow" }, rows).experiment_id)
  end)

  it("continues its run from a checkpoint, without what came later", function()
    local logger = run({ version = 0 }, { { { a = 1 }, 1 }, { { a = 2, b = 2 }, 2 } })
    local state = logger:state_dict()
    logger:log_metrics({ a = 3 }, 3)
    logger:finalize "failed"
    assert.equal(4, meta(logger.run_dir).status)
    local again = lt.loggers.MLFlowLogger({ save_dir = root, version = 0 })
    again:begin "fit"
    again:resume(2, state)
    again:log_metrics({ a = 4 }, 3)
    again:finalize "success"
    assert.equal(logger.run_dir, again.run_dir)
    assert.same({ "1 1", "2 2", "4 3" }, metric(again, "a"))
    assert.same({ 3, state.started },
      { meta(again.run_dir).status, meta(again.run_dir).start_time })
  end)

  it("is a word of the Trainer", function()
    local trainer = tiny.trainer { logger = "mlflow", default_root_dir = root,
      log_every_n_steps = 1 }
    local Line = tiny.Line:extend "Line"
    function Line:training_step(x)
      self:log("loss", 0.25)
      return self:loss(x)
    end
    trainer:fit(Line(), tiny.same(2))
    assert.same({ "0.25 0", "0.25 1" }, metric(trainer.logger, "loss"))
    assert.equal(3, meta(trainer.logger.run_dir).status)
    assert.equal("version_0", meta(trainer.logger.run_dir).run_name)
    assert.truthy(c.io.kind(trainer.log_dir .. "/metrics.csv"))
  end)

  it("refuses servers", function()
    assert.matches("tracking_uri must be a folder: got 'http://localhost:5000': servers and "
      .. "databases take one with `mlflow migrate%-filestore`",
      tiny.error_of(lt.loggers.MLFlowLogger, { tracking_uri = "http://localhost:5000" }))
  end)
end)
